// Adds up orders.
const prices = { apple: 3, bread: 4, cheese: 7 };

function price(item, quantity) {
    const unit = prices[item];
    const total = unit * quantity;
    return total;
}

let sum = 0;
for (const [item, quantity] of [['apple', 2], ['bread', 1], ['cheese', 3]]) {
    sum += price(item, quantity);
}
console.log(`sum: ${sum}`);
