"""Divides a bill that nobody ordered."""


def share(bill, guests):
    return bill / guests


print(share(31, 0))
