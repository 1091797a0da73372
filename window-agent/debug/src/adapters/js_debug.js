// Runs js-debug so that nobody but its user reaches what it opens: `node -e THIS SERVER SOCKET`.
//
// Its sockets and files lie beside the socket that it is told, in a folder of ours. By its own wish node tells the
// address of a program's debugger to everybody who asks over HTTP, so as not to print it; who knows it runs code.
const childProcess = require("node:child_process");
const os = require("node:os");
const path = require("node:path");

const [, server, socket] = process.argv;
const folder = path.dirname(socket);
os.tmpdir = () => folder;

const spawn = childProcess.spawn;
childProcess.spawn = (...words) => {
  for (const word of words) {
    const options = word?.env?.NODE_OPTIONS;
    if (options) {
      const told = options.replaceAll("--inspect-publish-uid=http", "--inspect-publish-uid=stderr");
      word.env = { ...word.env, NODE_OPTIONS: told };
    }
  }
  return spawn(...words);
};

require(path.resolve(server));
