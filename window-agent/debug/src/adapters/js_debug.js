// Runs js-debug so that nobody but its user reaches what it opens, steps come back, and exit codes are told:
// `node -e THIS SERVER SOCKET`.
//
// Its sockets and files lie beside the socket that it is told, in a folder of ours. By its own wish node tells the
// address of a program's debugger to everybody who asks over HTTP, so as not to print it; who knows it runs code.
const childProcess = require("node:child_process");
const fs = require("node:fs");
const Module = require("node:module");
const os = require("node:os");
const path = require("node:path");

const [, server, socket] = process.argv;
const folder = path.dirname(socket);
os.tmpdir = () => folder;

const spawn = childProcess.spawn;
childProcess.spawn = (...words) => {
  let isProgram = false;
  for (const word of words) {
    const options = word?.env?.NODE_OPTIONS;
    if (options) {
      const told = options.replaceAll("--inspect-publish-uid=http", "--inspect-publish-uid=stderr");
      word.env = { ...word.env, NODE_OPTIONS: told };
    }
    isProgram ||= word?.env?.VSCODE_INSPECTOR_OPTIONS !== undefined;
  }
  const child = spawn(...words);
  if (isProgram) {
    // js-debug waits for the same, and tells the end without the code. What a signal ended is told as by debugpy.
    child.once("exit", (code, signal) => {
      try {
        fs.writeSync(2, `program exited: ${code ?? 256 - os.constants.signals[signal]}\n`);
      } catch {
        // Nobody is there any more to hear it.
      }
    });
  }
  return child;
};

// Where node's own code stops a program, js-debug steps on until it is in the program's (0 is into, 2 is out). Two
// things are mended in that:
// - What node starts there to go on later (a pipe, the rest of a write), V8 takes for what is to be stepped into: after a
//   step into `console.log` a program runs on, to its end. Nothing is lost where that code is stepped out of at once.
// - In a program that was attached to, which may idle for hours, only a step into something goes on.
const NEXT_STEP =
  /async getSmartStepDirection\((\w+),(\w+)\)\{(.{0,200}?let (\w+)=\(await \1\.stackTrace\.loadFrames\(1\)\).{0,80}?===0\)\{this\.resetSmartStepCount\(\);return\})/;
const MENDED = [
  "async getSmartStepDirection($1,$2){",
  'if(this.launchConfig.request==="attach"&&!($2?.reason==="step"&&$2.direction===0))return;',
  "$3",
  "if(/^node:internal\\/(bootstrap|console|streams)\\//.test((await $4?.uiLocation())?.source.url))return 2;",
].join("");

// An expression may take as long as its request says (`timeout`, in milliseconds; js-debug has that for what the mouse
// is over). What was interrupted has no value; js-debug answers with an empty one.
const TIMEOUT = /timeout:(\w+)\.context==="hover"\?/;
const TAKEN = 'timeout:$1.timeout?$1.timeout:$1.context==="hover"?';
const NO_VALUE =
  /if\(!(\w+)\)return\{name:\w+\.expression,value:"",variablesReference:0\};(if\(\1\.exceptionDetails\)\{.{0,120}?throw new (\w+)\((\w+)\()/;
const REFUSED = 'if(!$1)throw new $3($4("no reason given"));$2';

const compile = Module.prototype._compile;
Module.prototype._compile = function (text, ...rest) {
  const mended = text.replace(NEXT_STEP, MENDED).replace(TIMEOUT, TAKEN).replace(NO_VALUE, REFUSED);
  return compile.call(this, mended, ...rest);
};

require(path.resolve(server));
