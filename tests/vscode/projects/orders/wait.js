// Runs until somebody creates the file `go` beside it, for calls that have to be in flight for a while.
const fs = require('node:fs');
const path = require('node:path');

function look() {
    if (fs.existsSync(path.join(__dirname, 'go'))) {
        console.log('went');
    } else {
        setTimeout(look, 20);
    }
}

console.log('waiting');
look();
