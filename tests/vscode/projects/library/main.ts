import { Basket, price } from './shop.js';

const basket = new Basket();
basket.add('apple');
console.log(basket.total(), price('cheese'));
