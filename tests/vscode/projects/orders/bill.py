"""Adds up what is in a basket."""

PRICES = {"apple": 3, "bread": 4, "cheese": 7}


def price(item, quantity):
    unit = PRICES[item]
    total = unit * quantity
    return total


def main():
    basket = {"apple": 2, "bread": 1, "cheese": 3}
    bill = 0
    for item, quantity in basket.items():
        bill += price(item, quantity)
    print(f"bill: {bill}")


if __name__ == "__main__":
    main()
