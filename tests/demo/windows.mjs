// `cargo xtask demo --vscode`: the main job in three real VS Code windows, with a timeline in milliseconds.
//
// The windows are pages of a Chromium, which is visible where there is a display; each step leaves a picture.
// With --stay everything goes on running.

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { connect } from '../vscode/client.mjs';
import { Editor, until } from '../vscode/editor.mjs';
import { BIN, CHROMIUM, ROOT, freePort, playwright } from '../vscode/place.mjs';

const stay = process.argv.includes('--stay');
const hasDisplay = Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY);
const pictures = path.join(ROOT, 'target/demo');

/** An editor whose server and browser can live on without this program. */
class Stage extends Editor {
    async startServer(options) {
        await super.startServer({ ...options, detached: true });
    }

    async startBrowser() {
        const port = await freePort();
        const flags = [
            `--user-data-dir=${path.join(this.run, 'chromium')}`, `--remote-debugging-port=${port}`, '--no-sandbox',
            '--no-first-run', '--no-default-browser-check', '--disable-gpu', '--disable-background-networking',
            '--disable-component-update', '--disable-sync', '--window-size=1280,860', '--lang=en-US',
            ...(hasDisplay ? [] : ['--headless=new']),
        ];
        const log = fs.openSync(path.join(this.run, 'chromium.log'), 'w');
        this.chromium = spawn(CHROMIUM, [...flags, 'about:blank'], { detached: true, stdio: ['ignore', log, log] });
        this.chromium.once('error', (error) => (this.chromiumFailure = error));
        const address = `http://127.0.0.1:${port}`;
        await until('Chromium answers', async () => {
            if (this.chromiumFailure || this.chromium.exitCode !== null) {
                throw new Error('Chromium has ended');
            }
            return (await fetch(`${address}/json/version`)).ok;
        });
        const connected = await playwright().chromium.connectOverCDP(address);
        this.browser = connected.contexts()[0];
        await this.browser.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: this.base });
        this.blank = this.browser.pages()[0];
    }

    async open(folder) {
        const window = await super.open(folder);
        await window.page.setViewportSize({ width: 1280, height: 800 });
        await this.blank?.close();
        this.blank = undefined;
        return window;
    }

    address(window) {
        return `${this.base}/?folder=${encodeURIComponent(window.folder)}`;
    }

    async stop() {
        for (const { page } of this.windows) {
            await page.close({ runBeforeUnload: false }).catch(() => {});
        }
        end(this.chromium, 'SIGTERM');
        await until('Chromium has ended', () => !this.chromium || this.chromium.exitCode !== null || this.chromium.signalCode !== null, 5_000)
            .catch(() => end(this.chromium, 'SIGKILL'));
        this.browser = undefined;
        await super.stop();
    }
}

/** Ends a process with all it started. */
function end(child, signal) {
    try {
        process.kill(-child.pid, signal);
    } catch {
        // It has ended, or never began.
    }
}

const start = performance.now();
let last = start;
let nPictures = 0;

function say(what) {
    const now = performance.now();
    const column = (ms, width) => String(Math.round(ms)).padStart(width);
    const took = `+${Math.round(now - last)}`;
    console.log(`${column(now - start, 7)} ms  ${took.padStart(7)} ms  ${what}`);
    last = now;
}

function heading(what) {
    console.log(`\n${what}`);
    last = performance.now();
}

function expect(condition, what) {
    if (!condition) {
        throw new Error(what);
    }
}

async function picture(window, name) {
    nPictures += 1;
    await window.screenshot(path.join(pictures, `${nPictures}-${name}.png`));
    last = performance.now();
}

/** Sets a breakpoint through the URL, starts the program, and looks at the editor. */
async function debugToStop(client, window, { file, line, configuration }) {
    const name = path.basename(window.folder);
    const set = await client.call('set_breakpoint', { file_path: file, line_number: line });
    expect(set.status === 'success', JSON.stringify(set));
    say(`the client set breakpoint ${set.breakpoint.id} in ${name}/${file}:${line}`);
    const answer = await client.call('start_debugging', { configuration_name: configuration });
    expect(answer.status === 'stopped', JSON.stringify(answer));
    const stop = answer.stop_event_data;
    const [local] = stop.top_frame_variables.variables;
    expect(stop.line === line && stop.source.path === path.join(window.folder, file), JSON.stringify(stop));
    say(`start_debugging answers: stopped at line ${stop.line}; ${local.name} = ${local.value}`);
    await until('the breakpoint is in the gutter', () => window.page.locator('.codicon-debug-breakpoint').count());
    await until('the editor shows the line', () => window.page.locator('.debug-top-stack-frame-line').count());
    say(`the editor of ${name} shows the breakpoint in its gutter, and where the program stands`);
    return stop;
}

async function step(client, { session_id, thread_id }) {
    const answer = await client.call('step_execution', { session_id, thread_id, step_type: 'over' });
    expect(answer.status === 'stopped', JSON.stringify(answer));
    say(`stepped to line ${answer.stop_event_data.line}`);
    return answer.stop_event_data;
}

async function names(client) {
    const { configurations } = await client.call('get_debugger_configurations');
    return configurations.map(({ name }) => name);
}

async function play(stage) {
    heading('1. three VS Code windows open, rules decide');
    const windows = {};
    for (const name of ['orders', 'weather', 'robots']) {
        const window = await stage.open(stage.project(name));
        windows[name] = window;
        say(`${name}: the status bar says "${await window.status()}"`);
    }
    const { orders, weather, robots } = windows;
    expect((await orders.status()) === 'Baton: live', 'the first window is live (R1)');
    for (const window of [weather, robots]) {
        expect((await window.status()) === 'Baton: standby', 'the others yield (R2)');
    }
    console.log('\n  To look at them yourself, open these in a browser (each page is one more VS Code window):');
    [orders, weather, robots].forEach((window) => console.log(`    ${stage.address(window)}`));
    console.log(`  From another machine: ssh -L ${stage.port}:127.0.0.1:${stage.port} THIS-MACHINE`);
    console.log(`  Pictures of each step: ${path.relative(process.cwd(), pictures)}/`);

    heading(`2. an MCP client connects to http://127.0.0.1:${stage.batonPort}/mcp and debugs in the editor`);
    const client = await connect(stage);
    say('connected');
    const stop = await debugToStop(client, orders, { file: 'orders.js', line: 6, configuration: 'orders' });
    await picture(orders, 'debugging');
    await step(client, stop);

    heading('3. the user clicks "Take over" in another window, in the middle; the same client session goes on');
    await weather.choose('Take over');
    const dialog = weather.page.locator('.monaco-dialog-box');
    await dialog.waitFor();
    say(`weather asks: ${(await dialog.locator('.dialog-message-text').innerText()).trim()}`);
    await picture(weather, 'take-over');
    await dialog.getByText('Take over', { exact: true }).click();
    await Promise.all([weather.waitForStatus('live'), orders.waitForStatus('standby')]);
    say('weather: "Baton: live", orders: "Baton: standby"');
    const next = await debugToStop(client, weather, { file: 'main.py', line: 9, configuration: 'warmest' });
    await picture(weather, 'debugging-there');
    const { session_id, thread_id } = await step(client, next);
    await client.call('remove_breakpoint', { clear_all: true });
    const done = await client.call('continue_debugging', { session_id, thread_id });
    expect(done.status === 'completed', JSON.stringify(done));
    say('ran to its end');

    heading('4. the live window is closed');
    await weather.close();
    say('weather is gone');
    // On a busy machine the window answers once more before it has gone.
    const answered = await until('another window answers', async () => {
        const found = await names(client);
        return !found.includes('warmest') && found;
    });
    const successor = [orders, robots].find(({ folder }) => path.basename(folder) === (answered.includes('walk') ? 'robots' : 'orders'));
    await successor.waitForStatus('live');
    say(`the next call waited for a window; ${path.basename(successor.folder)} answers it (${answered.join(', ')})`);
    await picture(successor, 'successor');

    heading('5. the coordinator is killed -9');
    const before = stage.status();
    process.kill(before.pid, 'SIGKILL');
    say(`coordinator ${before.pid} is gone`);
    const after = await until('a successor', () => {
        const now = stage.status();
        return now.running && now.generation > before.generation && now.live === before.live && now.windows.length === 2 && now;
    });
    say(`coordinator ${after.pid} runs, generation ${after.generation}; the same windows, the same one is live`);
    const again = await names(client);
    expect(again.join() === answered.join(), again.join());
    await successor.waitForStatus('live');
    say('the same client session goes on');
    await client.close();
}

/** What names this run's folder in its environment or command line. */
function survivors(run) {
    const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
    return pids.filter((pid) => {
        try {
            const read = (file) => fs.readFileSync(`/proc/${pid}/${file}`, 'latin1');
            return (read('environ').includes(run) || read('cmdline').includes(run)) && !/\) [ZX] /.test(read('stat'));
        } catch {
            return false;
        }
    });
}

async function leave(stage) {
    // The window that was closed comes back, so that there are three again.
    const folder = path.join(stage.run, 'projects/weather');
    await stage.open(folder);
    const baton = (...args) => execFileSync(path.join(BIN, 'baton'), args, { env: stage.environment(), encoding: 'utf8' }).trim();
    console.log(`\nEverything stays up. URL: http://127.0.0.1:${stage.batonPort}/mcp`);
    console.log('\nWindows to open in a browser:');
    ['orders', 'weather', 'robots'].forEach((name) => console.log(`  ${stage.address({ folder: path.join(stage.run, 'projects', name) })}`));
    for (const args of [['config', 'claude-code', '--http'], ['config', 'cursor', '--stdio']]) {
        console.log(`\nbaton ${args.join(' ')}:\n${baton(...args)}`);
    }
    console.log(`\nFor commands: export BATON_HOME=${stage.home} BATON_PORT=${stage.batonPort}`);
    console.log(`\nTo end it all: kill -- -${stage.chromium.pid} -${stage.server.pid}; BATON_HOME=${stage.home} ${path.join(BIN, 'baton')} down; rm -r ${stage.run}`);
}

fs.rmSync(pictures, { recursive: true, force: true });
fs.mkdirSync(pictures, { recursive: true });
say(hasDisplay ? 'starting code-server and Chromium' : 'starting code-server and a Chromium without a display');
let stage;
let ending;
const stop = () => (ending ??= stage?.stop());
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => void stop()?.finally(() => process.exit(1)));
}
try {
    stage = await Stage.start();
    say(`code-server answers at ${stage.base}`);
    await play(stage);
    if (stay) {
        await leave(stage);
        process.exit(0);
    }
    heading('6. everything ends');
    await stop();
    const left = await until('nothing is left', () => survivors(stage.run).length === 0 && [], 5_000).catch(() => survivors(stage.run));
    if (left.length > 0) {
        say(`left running, and killed: ${left.join(' ')}`);
        left.forEach((pid) => process.kill(Number(pid), 'SIGKILL'));
        process.exit(1);
    }
    say('nothing is left running');
    process.exit(0);
} catch (error) {
    if (ending) {
        await ending;
    } else {
        console.error(`\nThe demo failed: ${error.message}`);
        for (const window of stage?.windows ?? []) {
            console.error(`  ${path.basename(window.folder)}: ${await window.status().catch(() => 'closed')}`);
        }
        await stop();
    }
    process.exit(1);
}
