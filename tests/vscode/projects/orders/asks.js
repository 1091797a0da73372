// Prints what it was started with.
console.log(`greets ${process.argv[2]} in ${process.env.MOOD} mood`);
