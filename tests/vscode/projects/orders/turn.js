// Turns until somebody creates the file `go` beside it: a program that can be stopped at any moment.
const fs = require('node:fs');
const path = require('node:path');

const flag = path.join(__dirname, 'go');
let turns = 0;

console.log('turning');
while (!fs.existsSync(flag)) {
    turns += 1;
}
console.log('turned');
