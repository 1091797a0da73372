export const late = new Basket();
