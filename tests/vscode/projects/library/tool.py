def weigh(item):
    return len(item)


print(weigh("apple"))
