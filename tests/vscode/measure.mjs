// Measures what users feel, in real windows: `cargo xtask bench vscode`. With a folder as argument it takes the
// pictures of docs/images instead: `node measure.mjs docs/images`.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { connect } from './client.mjs';
import { Editor, until } from './editor.mjs';

const N_WINDOWS = 5;
const N_TAKEOVERS = 20;
const N_STARTS = 10;

const rows = [];
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

function row(what, aim, values, unit = 'ms', digits = 0) {
    const show = (value) => `${value.toFixed(digits)} ${unit}`;
    rows.push([what, aim, show(median(values)), show(Math.max(...values)), String(values.length)]);
    console.error(`  ${what}: ${show(median(values))}`);
}

function table() {
    console.log('| what | aim | median | maximum | n |\n|---|---|---|---|---|');
    rows.forEach((cells) => console.log(`| ${cells.join(' | ')} |`));
}

/** The same VS Code without Baton. */
class Plain extends Editor {
    installExtensions(options) {
        super.installExtensions(options);
        fs.rmSync(path.join(this.run, 'ext/baton.baton-0.1.0'), { recursive: true });
    }
}

/** VS Code with a Baton that the probe activates, at its time. */
class Later extends Editor {
    installExtensions(options) {
        super.installExtensions(options);
        const manifest = path.join(this.run, 'ext/baton.baton-0.1.0/package.json');
        const text = JSON.parse(fs.readFileSync(manifest, 'utf8'));
        fs.writeFileSync(manifest, JSON.stringify({ ...text, activationEvents: [] }));
    }
}

/** Opens the windows of a new editor; gives it with what the opening took, by what came. */
async function openAll(Kind, expected, env = {}) {
    const editor = await Kind.start({ extensions: ['probe'], env });
    const took = expected.map(() => []);
    const windows = [];
    try {
        for (let n = 0; n < N_WINDOWS; n += 1) {
            const window = await editor.open(editor.project('orders', `orders-${n}`), null);
            const at = performance.now();
            await Promise.all(expected.map(async (text, what) => {
                await window.page.locator('.statusbar-item', { hasText: text }).first().waitFor({ timeout: 90_000 });
                took[what].push(performance.now() - at);
            }));
            windows.push(window);
        }
    } catch (error) {
        await editor.stop();
        throw error;
    }
    return { editor, windows, took };
}

/**
 * What the activation adds to the memory of an extension host, in MB, by host: what lives on its heap, and what the
 * process occupies. Hosts differ by more than that from each other, so each is compared with itself, less what it
 * grows by in the same time without an activation.
 */
async function measureMemory() {
    const probe = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-probe-'));
    const { editor } = await openAll(Later, ['Probe: started'], { PROBE_FOLDER: probe });
    try {
        const answers = () => fs.readdirSync(probe).filter((name) => name.endsWith('.json'));
        await until('every extension host has looked', () => answers().length >= N_WINDOWS);
        const hosts = answers().map((name) => JSON.parse(fs.readFileSync(path.join(probe, name), 'utf8')));
        const added = (of) => hosts.map((looks) => {
            const [early, before, after, late] = looks.map((usage) => of(usage) / 1e6);
            return after - before - (before - early + late - after) / 2;
        });
        const heap = (usage) => usage.heapUsed + usage.external;
        row('memory added to an extension host: heap after a collection', '8 MB', added(heap), 'MB', 1);
        row('memory added to an extension host: resident', '8 MB', added((usage) => usage.rss), 'MB', 1);
    } finally {
        await editor.stop();
        fs.rmSync(probe, { recursive: true });
    }
}

async function measure() {
    console.error('windows without Baton ...');
    const plain = await openAll(Plain, ['Probe: started']);
    await plain.editor.stop();
    console.error('windows with Baton activated late ...');
    await measureMemory();
    console.error('windows with Baton ...');
    const { editor, windows, took } = await openAll(Editor, ['Probe: started', /Baton: (live|standby)/]);
    try {
        const [started, registered] = took;
        row('workbench ready to an empty extension started, without Baton', '-', plain.took[0]);
        row('the same with Baton beside it', '-', started);
        row('from there to this window registered', '1 s', registered.map((ms, n) => ms - started[n]));
        row('activation, time of the extension host', '50 ms', activations(editor), 'ms', 1);
        await measureTakeovers(windows);
        await measureStarts(editor, windows);
    } finally {
        await editor.stop();
    }
    table();
}

function activations(editor) {
    const logs = path.join(editor.run, 'user/logs');
    const files = fs.readdirSync(logs, { recursive: true }).filter((file) => file.endsWith('Baton.log'));
    const texts = files.map((file) => fs.readFileSync(path.join(logs, file), 'utf8'));
    return texts.flatMap((text) => [...text.matchAll(/activated in ([\d.]+) ms/g)].map(([, ms]) => Number(ms)));
}

async function measureTakeovers([first, second]) {
    const takeovers = [];
    const [a, b] = (await first.status()) === 'Baton: live' ? [second, first] : [first, second];
    for (let n = 0; n < N_TAKEOVERS; n += 1) {
        const [to, from] = n % 2 === 0 ? [a, b] : [b, a];
        await to.page.bringToFront();
        await to.statusItem.click();
        const entry = to.page.locator('.quick-input-widget .monaco-list-row', { hasText: 'Take over' }).first();
        await entry.waitFor();
        const [box, at] = [await entry.boundingBox(), performance.now()];
        await to.page.mouse.click(box.x + 40, box.y + box.height / 2);
        await Promise.all([to.waitForStatus('live'), from.waitForStatus('standby')]);
        takeovers.push(performance.now() - at);
    }
    // The first click draws the panel for the first time.
    row('click on "take over" to both status bars', '300 ms', takeovers.slice(2));
}

async function measureStarts(editor, windows) {
    const live = editor.status().live;
    const folder = editor.status().windows.find(({ id }) => id === live).folders[0];
    const window = windows.find((known) => known.folder === folder);
    const { page } = window;
    const client = await connect(editor);
    const isIdle = async () => (await page.locator('.debug-toolbar:visible').count()) === 0;
    const line = page.locator('.debug-top-stack-frame-line').first();
    await page.bringToFront();
    await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6 });
    const [byHand, byClient, shown] = [[], [], []];
    const steps = async ({ session_id, thread_id }, n, into) => {
        for (let step = 0; step < n; step += 1) {
            const at = performance.now();
            await client.call('step_execution', { session_id, thread_id, step_type: 'over' });
            into.push(performance.now() - at);
        }
        await client.call('stop_debugging', { session_id });
        await until('the editor is idle', isIdle);
    };
    const [inNode, inPython] = [[], []];
    for (let n = 0; n <= N_STARTS; n += 1) {
        await page.locator('.monaco-workbench').click({ position: { x: 640, y: 300 } });
        let at = performance.now();
        await page.keyboard.press('F5');
        await line.waitFor({ timeout: 60_000 });
        byHand.push(performance.now() - at);
        await page.keyboard.press('Shift+F5');
        await until('the editor is idle', isIdle);
        at = performance.now();
        const isShown = line.waitFor({ timeout: 60_000 }).then(() => shown.push(performance.now() - at));
        const stop = await client.call('start_debugging', { configuration_name: 'orders' });
        byClient.push(performance.now() - at);
        await isShown;
        await steps(stop.stop_event_data, 2, inNode);
    }
    await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 15 });
    for (let n = 0; n <= N_STARTS; n += 1) {
        const stop = await client.call('start_debugging', { configuration_name: 'bill' });
        await steps(stop.stop_event_data, 2, inPython);
    }
    await client.close();
    // The first of each wakes js-debug.
    row('F5 to the stop shown in the editor, Node', '-', byHand.slice(1));
    row('`start_debugging` to its answer with that stop', 'F5 + 100 ms', byClient.slice(1));
    row('`start_debugging` to the stop shown in the editor', 'F5 + 100 ms', shown.slice(1));
    row('what `start_debugging` takes more than F5', '100 ms', byClient.slice(1).map((ms, n) => ms - byHand[n + 1]));
    row('`step_execution` with its stop, Node', '60 ms', inNode.slice(2));
    row('`step_execution` with its stop, Python', '60 ms', inPython.slice(2));
}

/** The pictures of docs/images. */
async function takePictures(folder) {
    const editor = await Editor.start();
    try {
        const orders = await editor.open(editor.project('orders'));
        const shop = await editor.open(editor.project('shop'));
        const client = await connect(editor);
        await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6 });
        const stop = await client.call('start_debugging', { configuration_name: 'orders' });
        await orders.page.bringToFront();
        await until('the editor shows it', () => orders.page.locator('.debug-top-stack-frame-line').count());
        await orders.screenshot(path.join(folder, 'debugging.png'));
        await orders.command('View: Show Baton');
        await orders.page.locator('.pane-body .monaco-list-row', { hasText: 'orders.js:6' }).waitFor();
        await orders.screenshot(path.join(folder, 'view.png'));
        await client.call('stop_debugging', { session_id: stop.stop_event_data.session_id });
        await shop.screenshot(path.join(folder, 'standby.png'));
        await shop.statusItem.click();
        await shop.page.locator('.quick-input-widget .monaco-list-row').first().waitFor();
        await shop.page.screenshot({ path: path.join(folder, 'panel.png') });
        await shop.page.keyboard.press('Escape');
        await shop.command('Welcome: Open Walkthrough...');
        await shop.pick('Get Started with Baton');
        await shop.page.getByText('Connect an AI client', { exact: true }).first().waitFor();
        await shop.screenshot(path.join(folder, 'walkthrough.png'));
        await client.close();
    } finally {
        await editor.stop();
    }
}

const pictures = process.argv[2];
await (pictures ? takePictures(pictures) : measure());
process.exit(0);
