// What a thing costs.
export function price(item: string): number {
    return item.length * 3;
}

export class Basket {
    private sum = 0;

    add(item: string): void {
        this.sum += price(item);
    }

    total(): number {
        return this.sum;
    }
}
