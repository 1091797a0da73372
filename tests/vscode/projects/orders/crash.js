// Divides a bill that nobody ordered.
function share(bill, guests) {
    if (guests === 0) {
        throw new Error('nobody is there');
    }
    return bill / guests;
}

console.log(share(31, 0));
