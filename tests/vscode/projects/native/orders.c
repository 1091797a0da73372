/* Adds up orders. */
#include <stdio.h>

int sum = 0;

int price(int unit, int quantity) {
    int total = unit * quantity;
    sum += total;
    return total;
}

int main(void) {
    int units[] = {3, 4, 7};
    int quantities[] = {2, 1, 3};
    for (int idx = 0; idx < 3; idx += 1) {
        price(units[idx], quantities[idx]);
    }
    printf("sum: %d\n", sum);
    return 0;
}
