// What is wrong around Baton is one sentence and a button that helps: a port held by a stranger, a folder without
// trust, an agent of another version.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import { connect } from './client.mjs';
import { until } from './editor.mjs';
import { BIN, freePort } from './place.mjs';
import { commandOf, isAlive, naming } from './processes.mjs';
import { stage } from './stage.mjs';

/** The programs that the extension starts: at first an agent that only ends. */
const bin = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-bin-'));
after(() => fs.rmSync(bin, { recursive: true, force: true }));

/** The silence that the extension bears, on a busy machine. */
const SILENT_MS = 60_000;
/** An agent that hangs is told of within six seconds; a busy machine gets more. */
const HUNG_MS = 15_000;
/** For a language server to start and to build, on a busy machine. */
const SERVER_MS = 150_000;
/** What an agent says first of all. */
const NO_STANDING = { state: null, live: null, why: '', url: null, problem: null };

let startEditor, editor, window;

stage(async (start) => {
    startEditor = start;
    fs.symlinkSync(path.join(BIN, 'baton'), path.join(bin, 'baton'));
    putAgent('#!/bin/sh\necho "error: unexpected argument" >&2\nexit 2\n');
    editor = await start({ bin });
    window = await editor.open(editor.project('orders'), /error/);
});

/** Puts a script in the place of the agent; a rename, because the old one may be running. */
function putAgent(script) {
    const file = path.join(bin, 'baton-agent');
    fs.writeFileSync(`${file}.new`, script, { mode: 0o755 });
    fs.renameSync(`${file}.new`, file);
}

/** The processes that play the agent. */
function agents() {
    return naming(editor.run).filter((pid) => commandOf(pid).startsWith('sleep 600'));
}

/** A script that says one message in the extension's protocol, and ends with its input. */
function saying(message) {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message });
    return `#!/bin/sh\nprintf 'Content-Length: ${text.length}\\r\\n\\r\\n%s' '${text}'\nexec cat > /dev/null\n`;
}

/** One sentence, and that button. */
async function expectToast(of, sentence, button, timeout = 30_000) {
    const toast = of.page.locator('.notification-toast', { hasText: sentence }).first();
    await toast.waitFor({ timeout });
    const press = toast.locator('.monaco-button', { hasText: button }).first();
    await press.waitFor();
    return {
        // Not by mouse: the tooltip of a status item that was clicked may lie over it.
        press: () => press.press('Enter'),
    };
}

async function closeToasts(of) {
    await of.command('Notifications: Clear All Notifications');
}

test('an agent that ends at once: said, with the logs at hand', async () => {
    await window.waitForStatus('error');
    const toast = await expectToast(window, 'exited unexpectedly (exit code 2)', 'Show logs');
    const logs = window.page.locator('.part.panel .view-lines', { hasText: /unexpected\sargument/ });
    await until('the logs are shown', async () => {
        // When the agent ends once more, VS Code puts a new toast in the place of this one.
        await toast.press();
        return logs.waitFor({ timeout: 3_000 }).then(() => true, () => false);
    });
    await closeToasts(window);
    await window.command('View: Hide Panel');
});

test('an agent of another version: both versions are named, and it is not started again and again', async () => {
    putAgent(saying({ method: 'window/standing', params: { ...NO_STANDING, version: '9.9.9' } }));
    await window.choose('Try again');
    await expectToast(window, "Baton's agent is version 9.9.9, but this extension requires 0.1.0.", 'Try again');
    await window.waitForStatus('error');
    await closeToasts(window);
});

test('an agent that talks nonsense throws nothing into VS Code', async () => {
    putAgent('#!/bin/sh\necho "Hello, I am no agent"\necho "Content-Length: many"\necho\nexit 1\n');
    await window.choose('Try again');
    await expectToast(window, 'exited unexpectedly', 'Try again');
    await closeToasts(window);
});

test('an agent that says nothing: said after fifteen seconds, and the button ends it', async () => {
    // It does not even end with its input.
    putAgent('#!/bin/sh\nexec sleep 600\n');
    await window.choose('Try again', 'Restart');
    await window.waitForStatus('starting');
    const toast = await expectToast(window, "Baton's agent started but is not responding.", 'Try again', SILENT_MS);
    await window.waitForStatus('error');
    const [silent] = agents();
    putAgent(saying({ method: 'window/standing', params: { ...NO_STANDING, version: '0.1.0' } }));
    await toast.press();
    await until('it has been ended', () => !agents().includes(silent));
    await window.waitForStatus('starting');
    await closeToasts(window);
});

test('no agent at all; with the right one there again, the button helps', async () => {
    fs.rmSync(path.join(bin, 'baton-agent'));
    await window.choose('Try again', 'Restart');
    const toast = await expectToast(window, "Can't start Baton's agent", 'Try again');
    await window.waitForStatus('error');
    fs.symlinkSync(path.join(BIN, 'baton-agent'), path.join(bin, 'baton-agent'));
    await toast.press();
    await window.waitForStatus('live');
});

test('a state folder that cannot be used: why, and what to try', async () => {
    const { home } = editor;
    const { pid } = editor.known(window);
    fs.chmodSync(home, 0o777);
    process.kill(pid, 'SIGKILL');
    await expectToast(window, `Can't start Baton's agent: refusing to use ${home}: it is writable by other users; run`, 'Try again');
    fs.chmodSync(home, 0o700);
    // It is tried again by itself, with the button or without.
    await window.waitForStatus('live', 60_000);
    await closeToasts(window);
});

test('an agent that hangs: said; over by itself when it goes on; and the button replaces it', async () => {
    const { pid: hung } = editor.known(window);
    process.kill(hung, 'SIGSTOP');
    const hungAt = Date.now();
    await window.waitForStatus('error');
    assert.ok(Date.now() - hungAt < HUNG_MS, `said after ${Date.now() - hungAt} ms`);
    await expectToast(window, "Baton's agent in this window is not responding.", 'Try again');
    process.kill(hung, 'SIGCONT');
    await window.waitForStatus('live');
    await closeToasts(window);
    process.kill(hung, 'SIGSTOP');
    const toast = await expectToast(window, "Baton's agent in this window is not responding.", 'Try again');
    await toast.press();
    await until('it has been ended', () => !isAlive(hung));
    await window.waitForStatus('live');
    await closeToasts(window);
});

for (const port of [80, 70_000, 'mine']) {
    test(`a port in the settings that cannot be (${port}) is refused, and the working one stays`, async () => {
        editor.writeMachineSettings({ 'baton.port': port });
        const toast = await expectToast(window, `Baton can't use port ${port}`, 'Change the port');
        await window.waitForStatus('live');
        assert.equal(editor.status().port, editor.batonPort);
        await toast.press();
        await window.page.locator('.quick-input-widget input').waitFor();
        await window.page.keyboard.press('Escape');
        editor.writeMachineSettings({});
        await closeToasts(window);
    });
}

test('a port in the settings that a stranger holds is not taken, and the working one stays', async () => {
    const stranger = await listen(await freePort());
    const { port } = stranger.address();
    editor.writeMachineSettings({ 'baton.port': port });
    const toast = await expectToast(window, `Port ${port} is in use`, 'Change the port');
    assert.equal(editor.status().port, editor.batonPort);
    await window.waitForStatus('live');
    await toast.press();
    await window.page.locator('.quick-input-widget input').waitFor();
    await window.page.keyboard.press('Escape');
    editor.writeMachineSettings({});
    stranger.close();
    await closeToasts(window);
});

test('a port that a stranger holds is not taken by the panel, and the working one stays', async () => {
    const stranger = await listen(await freePort());
    await window.choose('Change the port');
    await window.page.locator('.quick-input-widget input').fill(String(stranger.address().port));
    await window.page.keyboard.press('Enter');
    await expectToast(window, `Port ${stranger.address().port} is in use`, 'Change the port');
    assert.equal(editor.status().port, editor.batonPort);
    await window.waitForStatus('live');
    stranger.close();
    await closeToasts(window);
});

test('a stranger on Baton\'s own port: said who, and another port helps', async () => {
    const other = await startEditor();
    const stranger = await listen(other.batonPort);
    const page = await other.open(other.project('shop'), /error/);
    const toast = await expectToast(page, `Port ${other.batonPort} is in use by`, 'Change the port');
    await toast.press();
    const port = await freePort();
    await page.page.locator('.quick-input-widget input').fill(String(port));
    await page.page.keyboard.press('Enter');
    await page.waitForStatus('live');
    assert.equal(other.status().port, port);
    stranger.close();
});

test('a stranger on Baton\'s own port that goes away: Baton comes by itself', async () => {
    const other = await startEditor();
    const stranger = await listen(other.batonPort);
    const page = await other.open(other.project('shop'), /error/);
    stranger.close();
    await page.waitForStatus('live');
});

test('a folder without trust: nothing is debugged, the user is asked, and trust helps', async () => {
    const settings = { 'security.workspace.trust.startupPrompt': 'never', 'security.workspace.trust.banner': 'never' };
    const other = await startEditor({ trust: true, settings });
    const folder = other.project('orders');
    const canary = putCrate(folder);
    const page = await other.open(folder, /live/);
    const client = await connect(other);
    await page.waitForStatus('live, restricted');
    assert.match(await tooltipOf(page), /Restricted Mode: no debugging and no language servers until you trust this folder\./);
    const refused = await client.call('start_debugging', { configuration_name: 'bill' });
    assert.equal(refused.status, 'error', JSON.stringify(refused));
    assert.equal(refused.code, 'untrusted', JSON.stringify(refused));
    assert.match(refused.message, /trust/, JSON.stringify(refused));
    assert.equal(await page.toolbar().count(), 0);
    // Servers run what they find in a folder: none is started, and whoever asks hears why.
    const problems = await client.call('lcp_get_diagnostics', { file_path: 'bill.py' });
    assert.match(JSON.stringify(problems), /not trusted this folder/);
    const unbuilt = await client.call('lcp_get_diagnostics', { file_path: 'src/main.rs' });
    assert.match(JSON.stringify(unbuilt), /not trusted this folder/);
    const servers = /pyright|basedpyright|\bty\b|ruff|rust-analyzer|cargo|rustc/;
    assert.deepEqual(naming(other.run).map(commandOf).filter((command) => servers.test(command)), []);
    assert.ok(!fs.existsSync(canary), 'build.rs of a folder without trust has run');
    const toast = await expectToast(page, 'you do not trust this workspace yet', 'Manage trust');
    await toast.press();
    await page.page.locator('.workspace-trust-editor .monaco-button', { hasText: /^Trust$/ }).first().click();
    // The same question, so that it is known to lead to the build script.
    await until('trusted, its build script is run by its language server', async () => {
        await client.call('lcp_get_diagnostics', { file_path: 'src/main.rs' });
        return fs.existsSync(canary);
    }, SERVER_MS);
    await page.waitForStatus('live');
    await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
    const stop = await until('trusted, it is debugged', async () => {
        const answer = await client.call('start_debugging', { configuration_name: 'bill' });
        return answer.status === 'stopped' ? answer : undefined;
    });
    await client.call('stop_debugging', { session_id: stop.stop_event_data.session_id });
    await client.close();
});

/** Makes a folder a crate whose build script leaves a file outside of it: gives that file. */
function putCrate(folder) {
    const canary = path.join(path.dirname(path.dirname(folder)), 'canary');
    fs.mkdirSync(path.join(folder, 'src'));
    fs.writeFileSync(path.join(folder, 'Cargo.toml'), '[package]\nname = "orders"\nversion = "0.1.0"\nedition = "2021"\n');
    fs.writeFileSync(path.join(folder, 'build.rs'), `fn main() { std::fs::write(${JSON.stringify(canary)}, "").unwrap(); }\n`);
    fs.writeFileSync(path.join(folder, 'src/main.rs'), 'fn main() {}\n');
    return canary;
}

/** What the status bar item says when the mouse is over it. */
async function tooltipOf({ page, statusItem }) {
    await page.bringToFront();
    await statusItem.hover();
    const tooltip = page.locator('.monaco-hover', { hasText: 'answers AI clients' }).first();
    await tooltip.waitFor();
    // VS Code puts spaces there at which no line ends.
    const text = (await tooltip.innerText()).replaceAll('\u00a0', ' ');
    await page.mouse.move(400, 300);
    await tooltip.waitFor({ state: 'hidden' });
    return text;
}

function listen(port) {
    return new Promise((resolve, reject) => {
        const server = net.createServer((socket) => socket.destroy());
        server.once('error', reject);
        // A test that fails before it closes the server must not keep this program.
        server.listen(port, '127.0.0.1', () => resolve(server)).unref();
    });
}
