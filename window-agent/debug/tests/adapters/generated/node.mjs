// Plays a plan (see gdb.py) with node's own inspector: `node --experimental-websocket node.mjs PLAN`.
import { spawn } from 'node:child_process';
import fs from 'node:fs';

const MOVES = { continue: 'resume', over: 'stepOver', into: 'stepInto', out: 'stepOut' };
const OPERATORS = {
    '==': (n, count) => n === count,
    '>': (n, count) => n > count,
    '>=': (n, count) => n >= count,
    '<': (n, count) => n < count,
    '<=': (n, count) => n <= count,
    '%': (n, count) => n % count === 0,
};

const plan = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const child = spawn(process.execPath, ['--inspect-brk=127.0.0.1:0', plan.source], { stdio: ['ignore', 'pipe', 'pipe'] });
let printed = '';
child.stdout.on('data', (piece) => { printed += piece; });
const ended = new Promise((resolve) => child.on('close', resolve));
const address = await new Promise((resolve, reject) => {
    let text = '';
    child.stderr.on('data', (piece) => {
        text += piece;
        const found = /listening on (ws:\S+)/.exec(text);
        if (found) resolve(found[1]);
    });
    child.on('close', () => reject(new Error(text)));
});

const socket = new WebSocket(address);
await new Promise((resolve) => { socket.onopen = resolve; });
const waiting = new Map();
const pauses = [];
let wake = () => {};
let isOver = false;
let scriptId;
socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.id) waiting.get(message.id)(message);
    if (message.method === 'Debugger.scriptParsed' && message.params.url === `file://${plan.source}`) scriptId = message.params.scriptId;
    if (message.method === 'Debugger.paused') pauses.push(message.params);
    if (message.method === 'Runtime.executionContextDestroyed') isOver = true;
    wake();
};

let last = 0;
function ask(method, params = {}) {
    last += 1;
    const id = last;
    socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve) => waiting.set(id, resolve));
}

/** The next pause, or nothing at the end. */
async function paused() {
    while (pauses.length === 0 && !isOver) await new Promise((resolve) => { wake = resolve; });
    return pauses.shift();
}

async function evaluate(frame, expression) {
    const { result } = await ask('Debugger.evaluateOnCallFrame', { callFrameId: frame.callFrameId, expression });
    if (!result || result.exceptionDetails || result.result.type === 'undefined') return null;
    return result.result.description ?? String(result.result.value);
}

const isOwn = (frame) => frame?.location.scriptId === scriptId;
const points = new Map();

async function look(pause, asked) {
    const own = pause.callFrames.filter(isOwn);
    const stop = {
        stack: own.map((frame) => [frame.functionName, frame.location.lineNumber + 1]),
        hit: (pause.hitBreakpoints ?? []).map((id) => points.get(id)?.line).filter(Boolean).sort((one, other) => one - other),
        locals: {},
        value: null,
    };
    const [frame] = pause.callFrames;
    if (isOwn(frame)) {
        for (const name of plan.names) {
            const value = await evaluate(frame, name);
            if (value !== null) stop.locals[name] = value;
        }
        stop.value = await evaluate(frame, asked);
    }
    return stop;
}

/** Whether a breakpoint that counts stops this time, and does not log. */
async function counts(pause) {
    const hit = (pause.hitBreakpoints ?? []).map((id) => points.get(id)).filter(Boolean);
    for (const point of hit) point.count += 1;
    const counted = hit.filter(({ hits, count }) => !hits || OPERATORS[hits.operator](count, hits.count));
    for (const { line } of counted.filter((point) => point.logs)) {
        await evaluate(pause.callFrames[0], `console.log('say log ${line} ' + a)`);
    }
    return hit.length === 0 || counted.some((point) => !point.logs);
}

await ask('Runtime.enable');
await ask('Debugger.enable');
await ask('Debugger.setBlackboxPatterns', { patterns: ['^node:'] });
for (const point of plan.points) {
    const place = { lineNumber: point.line - 1, columnNumber: 0, url: `file://${plan.source}` };
    const { result } = await ask('Debugger.setBreakpointByUrl', { ...place, condition: point.condition ?? '' });
    points.set(result.breakpointId, { ...point, count: 0 });
}
await ask('Runtime.runIfWaitingForDebugger');
await paused();
await ask('Debugger.resume');
const stops = [];
let pause = await paused();
for (let idx = 0; pause && idx < plan.moves.length; ) {
    let move = 'continue';
    if (await counts(pause)) {
        const stop = await look(pause, plan.asked[idx]);
        stops.push(stop);
        move = plan.moves[idx] === 'out' && stop.stack.length < 2 ? 'continue' : plan.moves[idx];
        idx += 1;
    }
    await ask(`Debugger.${MOVES[move]}`);
    pause = await paused();
    while (pause && !isOwn(pause.callFrames[0])) {
        // Node's own code.
        await ask('Debugger.stepOut');
        pause = await paused();
    }
}
if (!isOver) child.kill('SIGKILL');
socket.close();
const exit = await ended;
fs.writeFileSync(plan.output, printed);
fs.writeFileSync(plan.told, JSON.stringify({ stops, over: isOver, exit: isOver ? exit : null }));
