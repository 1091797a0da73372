// What the page costs, and how quickly it is there: 100 windows, 10 calls a second, a real browser. Prints a table.
// By hand: `node tests/vscode/measure-page.mjs`, after `cargo build --release --bins`.

import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';

import { CHROMIUM, ROOT, freePort, playwright } from './place.mjs';

const N_WINDOWS = 100;
const CALLS_PER_S = 10;
const MEASURED_S = 20;
const HEARTBEAT_MS = 1_500;

const baton = path.join(ROOT, 'target/release/baton');
const run = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-page-'));
const home = path.join(run, 'state');
const env = { ...process.env, BATON_HOME: home, BATON_PORT: String(await freePort()), HOME: run };
const call = (...args) => spawnSync(baton, args, { env, encoding: 'utf8' }).stdout.trim();
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const socketPath = path.join(home, 'sockets/coordinator');
const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });

function ask(method, to, body, own = agent) {
    return new Promise((resolve, reject) => {
        const headers = { host: 'localhost', 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
        const request = http.request({ socketPath, method, path: to, headers, agent: own }, (answer) => {
            if (to.includes('/events')) {
                answer.resume();
                resolve();
                return;
            }
            let text = '';
            answer.on('data', (piece) => { text += piece; }).on('end', () => resolve(text));
        });
        request.on('error', reject);
        request.end(body && JSON.stringify(body));
    });
}

const pid = () => JSON.parse(call('status', '--json')).pid;
const memoryKib = (of) => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${of}/status`, 'utf8'))[1]);
const processorS = (of) => {
    const fields = fs.readFileSync(`/proc/${of}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
};

call('up');
const coordinator = pid();
for (let idx = 0; idx < N_WINDOWS; idx += 1) {
    const id = `w${idx}`;
    const register = { protocol: 2, version: '0', name: `project ${idx}`, kind: 'headless', folders: [`/src/project-${idx}`], auto_start: true, pid: process.pid, port: 40_000 + idx, incarnation: 1 };
    await ask('POST', `/v1/windows/${id}/register`, register);
    await ask('GET', `/v1/windows/${id}/events?incarnation=1`, undefined, false);
}
let seq = 0;
const beats = setInterval(() => {
    seq += 1;
    for (let idx = 0; idx < N_WINDOWS; idx += 1) {
        void ask('POST', `/v1/windows/w${idx}/heartbeat`, { incarnation: 1, seq, focused: false }).catch(() => {});
    }
}, HEARTBEAT_MS);
const message = (id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'list_windows', arguments: {} } });
let n = 0;
const calls = setInterval(() => { n += 1; void ask('POST', '/mcp', message(n)).catch(() => {}); }, 1_000 / CALLS_PER_S);

async function cost() {
    const [memory, processor] = [memoryKib(coordinator), processorS(coordinator)];
    await wait(MEASURED_S * 1_000);
    return { memory: memoryKib(coordinator), grown: memoryKib(coordinator) - memory, percent: (100 * (processorS(coordinator) - processor)) / MEASURED_S };
}

await wait(3_000);
const closed = await cost();
const browser = await playwright().chromium.launch({ executablePath: CHROMIUM, headless: true, chromiumSandbox: false });
const context = await browser.newContext();
const page = await context.newPage();
let received = 0;
const session = await context.newCDPSession(page);
await session.send('Network.enable');
session.on('Network.dataReceived', ({ encodedDataLength, dataLength }) => { received += encodedDataLength || dataLength; });
const url = call('open', '--print');
const opened = Date.now();
await page.goto(url);
await page.locator('#windows tr').nth(N_WINDOWS - 1).waitFor();
const drawn = Date.now() - opened;
const transferred = received;
const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
await page.evaluate(() => {
    globalThis.longest = 0;
    let last = performance.now();
    const frame = (now) => {
        globalThis.longest = Math.max(globalThis.longest, now - last);
        last = now;
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
});
const open = await cost();
const longest = await page.evaluate(() => globalThis.longest);
await browser.close();
clearInterval(beats);
clearInterval(calls);
call('down');
fs.rmSync(run, { recursive: true });

const rows = [
    ['first paint', `${paint.toFixed(0)} ms`, '200 ms'],
    [`from the link to ${N_WINDOWS} windows drawn`, `${drawn} ms`, ''],
    ['transferred until then', `${(transferred / 1024).toFixed(0)} KiB`, '100 KiB'],
    [`longest frame in ${MEASURED_S} s, ${N_WINDOWS} windows, ${CALLS_PER_S} calls/s`, `${longest.toFixed(0)} ms`, '100 ms'],
    ['coordinator, memory more with an open page', `${((open.memory - closed.memory) / 1024).toFixed(1)} MiB`, '1 MiB'],
    ['coordinator, of a core: no page, an open page', `${closed.percent.toFixed(1)} %, ${open.percent.toFixed(1)} %`, '1 % more'],
];
console.log(rows.map((row) => `| ${row.join(' | ')} |`).join('\n'));
process.exit(0);
