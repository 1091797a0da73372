// The panel: every entry by mouse and by keyboard, every command, and what comes into the clipboard.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import { until } from './editor.mjs';
import { freePort } from './place.mjs';
import { stage } from './stage.mjs';

const CLIENTS = [
    ['Claude Code', 'claude-code'], ['Claude Desktop', 'claude-desktop'], ['Cursor', 'cursor'], ['Cline', 'cline'],
    ['Roo Code', 'roo'], ['VS Code', 'vscode'], ['Windsurf', 'windsurf'], ['Codex', 'codex'],
    ['Gemini CLI', 'gemini'], ['Zed', 'zed'],
];

/** Where Codex keeps its configuration. */
const codex = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-codex-'));
after(() => fs.rmSync(codex, { recursive: true, force: true }));

let editor, window, other;

stage(async (start) => {
    editor = await start({ env: { CODEX_HOME: codex } });
    window = await editor.open(editor.project('shop'), /live/);
    other = await editor.open(editor.project('robots'), /standby/);
}, () => {}, () => editor.baton('take', 'shop'));

/** Opens the panel and chooses an entry, without the mouse. */
async function type(...labels) {
    await window.command('Baton: Open Panel');
    for (const label of labels) {
        const row = window.page.locator('.quick-input-widget .monaco-list-row', { hasText: label }).first();
        await row.waitFor();
        await window.page.keyboard.type(label);
        await window.page.locator('.quick-input-widget .monaco-list-row.focused', { hasText: label }).waitFor();
        await window.page.keyboard.press('Enter');
        await window.panelGone();
    }
}

/** The clipboard holds what `baton config` prints. */
async function expectCopied(...args) {
    const expected = editor.baton('config', ...args);
    assert.ok(expected.includes('baton'), expected);
    await until(`the configuration for ${args} is in the clipboard`, async () => (await window.clipboard()).trim() === expected);
}

async function expectStatus(mine, others) {
    await window.waitForStatus(mine);
    await other.waitForStatus(others);
}

test('the panel says who answers, and where, and has every entry', async () => {
    await window.statusItem.click();
    const panel = window.page.locator('.quick-input-widget');
    await panel.locator('.monaco-list-row').first().waitFor();
    const text = await panel.innerText();
    const entries = ['Stop', 'Restart', 'Hand over', 'Auto-start is on', 'Change the port', 'Connect an AI client', 'Open in the browser', 'Show logs'];
    assert.equal(await panel.locator('input').first().getAttribute('placeholder'), 'This window answers AI clients.');
    for (const part of ['Baton: live', ...entries, `:${editor.batonPort}/mcp`]) {
        assert.ok(text.includes(part), `${part} in ${text}`);
    }
    assert.ok(!text.includes('Take over'), text);
    await window.page.keyboard.press('Escape');
});

test('the panel shows what changes while it is open, and keeps what is marked', async () => {
    await window.page.bringToFront();
    await window.statusItem.click();
    const panel = window.page.locator('.quick-input-widget');
    const rows = panel.locator('.monaco-list-row');
    await rows.filter({ hasText: 'no window answers until one is started' }).waitFor();
    for (const label of ['Restart', 'Hand over']) {
        await window.page.keyboard.press('ArrowDown');
        await panel.locator('.monaco-list-row.focused', { hasText: label }).waitFor();
    }
    editor.baton('take', 'robots');
    await rows.filter({ hasText: /Take over.*from robots/ }).waitFor();
    await panel.locator('.quick-input-title', { hasText: 'Baton: standby' }).waitFor();
    assert.equal(await panel.locator('input').first().getAttribute('placeholder'), 'robots answers AI clients.');
    await panel.locator('.monaco-list-row.focused', { hasText: 'Hand over' }).waitFor();
    for (const label of ['Restart', 'Stop', 'Take over']) {
        await window.page.keyboard.press('ArrowUp');
        await panel.locator('.monaco-list-row.focused', { hasText: label }).waitFor();
    }
    editor.baton('take', 'shop');
    await rows.filter({ hasText: 'no window answers until one is started' }).waitFor();
    // What was marked is gone: Enter chooses nothing in its place.
    assert.equal(await panel.locator('.monaco-list-row.focused').count(), 0);
    await window.page.keyboard.press('Escape');
    await expectStatus('live', 'standby');
});

test('the tooltip says who answers, and where', async () => {
    await window.page.bringToFront();
    await window.statusItem.hover();
    const tooltip = window.page.locator('.monaco-hover', { hasText: 'This window answers AI clients.' });
    await tooltip.first().waitFor();
    assert.match(await tooltip.first().innerText(), new RegExp(`http://127.0.0.1:${editor.batonPort}/mcp`));
    await tooltip.first().locator('a[data-href^="command:baton.copyClientConfig"]').click();
    await window.page.locator('.quick-input-title', { hasText: 'Copy the configuration' }).waitFor();
    await window.page.keyboard.press('Escape');
    await window.page.mouse.move(400, 300);
});

test('with the mouse: stop, start, restart, take over, hand over, auto-start', async () => {
    await window.choose('Stop');
    await expectStatus('off', 'standby');
    await window.choose('Start');
    await expectStatus('live', 'standby');
    const { pid } = editor.known(window);
    await window.choose('Restart');
    await until('another agent runs', () => editor.known(window) && editor.known(window).pid !== pid);
    await expectStatus('live', 'standby');
    assert.equal(await window.page.locator('.notification-toast').count(), 0);
    await other.choose('Take over');
    await expectStatus('standby', 'live');
    await window.choose('Hand over to another window');
    await window.page.locator('.notification-toast', { hasText: 'There is no other window to hand over to.' }).waitFor();
    await window.command('Notifications: Clear All Notifications');
    await window.choose('Take over');
    await expectStatus('live', 'standby');
    await window.choose('Auto-start is on');
    await until('auto-start is off', () => editor.known(window).auto_start === false);
    await window.choose('Auto-start is off');
    await until('auto-start is on', () => editor.known(window).auto_start);
    await expectStatus('live', 'standby');
});

test('with the keyboard: stop, start, restart, take over, hand over, auto-start', async () => {
    await type('Stop');
    await expectStatus('off', 'standby');
    await type('Start');
    await expectStatus('live', 'standby');
    const { pid } = editor.known(window);
    await type('Restart');
    await until('another agent runs', () => editor.known(window) && editor.known(window).pid !== pid);
    await expectStatus('live', 'standby');
    assert.equal(await window.page.locator('.notification-toast').count(), 0);
    await type('Hand over to another window', 'robots');
    await expectStatus('standby', 'live');
    await type('Take over');
    await expectStatus('live', 'standby');
    await type('Auto-start is on');
    await until('auto-start is off', () => editor.known(window).auto_start === false);
    await type('Auto-start is off');
    await until('auto-start is on', () => editor.known(window).auto_start);
    await expectStatus('live', 'standby');
});

test('every command is in the palette', async () => {
    const offered = await window.offered('Baton: St', 'Stop in This Window');
    assert.ok(!offered.some((row) => row.includes('Start in This Window')), `it is live already: ${offered}`);
    await window.command('Baton: Stop in This Window');
    await expectStatus('off', 'standby');
    await window.command('Baton: Start in This Window');
    await expectStatus('live', 'standby');
    const { pid } = editor.known(window);
    await window.command('Baton: Restart in This Window');
    await until('another agent runs', () => editor.known(window) && editor.known(window).pid !== pid);
    await expectStatus('live', 'standby');
    assert.equal(await window.page.locator('.notification-toast').count(), 0);
    await window.command('Baton: Hand Over to Another Window');
    await window.pick('robots');
    await expectStatus('standby', 'live');
    await window.command('Baton: Take Over');
    await expectStatus('live', 'standby');
    await window.command('Baton: Toggle Auto-Start for This Window');
    await until('auto-start is off', () => editor.known(window).auto_start === false);
    await window.command('Baton: Toggle Auto-Start for This Window');
    await until('auto-start is on', () => editor.known(window).auto_start);
});

for (const [label, id] of CLIENTS) {
    test(`the copied configuration of ${label} is what \`baton config\` prints`, async () => {
        await window.choose('Connect an AI client');
        await window.pick(label, { begins: true });
        await window.pick('Recommended');
        await expectCopied(id);
    });
}

test('the configuration is written for the user who asks for it', async () => {
    await window.command('Notifications: Clear All Notifications');
    await window.choose('Connect an AI client');
    await window.pick('Codex', { begins: true });
    await window.pick('Recommended');
    const item = (text) => window.page.locator('.notification-list-item', { hasText: text }).first();
    const offered = item(`Paste it into ${codex}/config.toml`);
    const told = item(`Added Baton to ${codex}/config.toml`);
    // A toast moves up when another one goes, and a key that is pressed meanwhile is lost, as it is to a person.
    await until('it is written', async () => {
        const button = offered.locator('.monaco-button', { hasText: 'Write it for me' });
        // On a busy machine it has gone before anybody could press it: then it is in the list of all.
        if (!(await button.isVisible()) && !(await told.isVisible())) await window.command('Notifications: Show Notifications');
        if (await button.isVisible()) await button.press('Enter', { timeout: 2_000 });
        await told.waitFor({ timeout: 3_000 });
        return true;
    });
    assert.match(fs.readFileSync(path.join(codex, 'config.toml'), 'utf8'), /\[mcp_servers\.baton\]/);
    await window.command('Notifications: Clear All Notifications');
});

test('what was copied last is copied by one pick', async () => {
    await window.choose('Connect an AI client');
    await window.pick('Zed', { begins: true });
    await window.pick('HTTP');
    await expectCopied('zed', '--http');
    await window.page.evaluate(() => globalThis.navigator.clipboard.writeText(''));
    await window.choose('Connect an AI client');
    await window.pick(/Zed.*HTTP, as last time/);
    await expectCopied('zed', '--http');
    await window.command('Notifications: Clear All Notifications');
});

test('a configuration by HTTP and one by stdio, with the keyboard', async () => {
    await type('Connect an AI client', 'Cursor', 'HTTP');
    await expectCopied('cursor', '--http');
    assert.match(await window.clipboard(), new RegExp(`127.0.0.1:${editor.batonPort}/mcp`));
    await type('Connect an AI client', 'Roo Code', 'stdio');
    await expectCopied('roo', '--stdio');
    assert.ok(!(await window.clipboard()).includes(editor.baton('token')));
});

test('the logs are shown, by mouse and by keyboard', async () => {
    const panel = window.page.locator('.part.panel');
    const lines = panel.locator('.view-lines', { hasText: /where\s+this\s+window\s+stands/ });
    await window.choose('Show logs');
    await lines.waitFor();
    await window.command('View: Hide Panel');
    await panel.waitFor({ state: 'hidden' });
    await type('Show logs');
    await lines.waitFor();
    await window.command('View: Hide Panel');
    await panel.waitFor({ state: 'hidden' });
});

test('the page opens in the browser', async () => {
    const opened = window.page.context().waitForEvent('page');
    await window.choose('Open in the browser');
    // VS Code asks nobody: names under localhost are this machine.
    const page = await opened;
    await page.locator('#windows tr', { hasText: 'robots' }).waitFor();
    assert.match(await page.locator('#windows').innerText(), /shop/);
    await page.close();
    await window.page.bringToFront();
});

test('a port that is no port is refused in the box', async () => {
    await window.choose('Change the port');
    const input = window.page.locator('.quick-input-widget input');
    for (const bad of ['80', 'abc', '70000', '']) {
        await input.fill(bad);
        await window.page.locator('.quick-input-widget', { hasText: 'A number from 1024 to 65535' }).waitFor();
    }
    await window.page.keyboard.press('Escape');
});

test('the port is changed with two windows open, and a configuration is offered', async () => {
    const port = await freePort();
    await type('Change the port');
    await window.page.locator('.quick-input-widget input').fill(String(port));
    await window.page.keyboard.press('Enter');
    await until('the coordinator is there', () => editor.status().port === port);
    const toast = window.page.locator('.notification-toast', { hasText: 'Update your clients with the new URL' }).first();
    await toast.waitFor();
    await expectStatus('live', 'standby');
    assert.equal(editor.status().windows.length, 2);
    // The bar's tooltip would lie over it.
    await window.page.mouse.move(400, 300);
    await toast.getByText('Connect an AI client', { exact: false }).first().click();
    await window.pick('Codex', { begins: true });
    await window.pick('HTTP');
    await expectCopied('codex', '--http');
    assert.match(await window.clipboard(), new RegExp(`127.0.0.1:${port}/mcp`));
});

test('an agent that is killed is started again', async () => {
    const { pid } = editor.known(window);
    process.kill(pid, 'SIGKILL');
    await until('another agent runs', () => editor.known(window) && editor.known(window).pid !== pid);
    await expectStatus('live', 'standby');
});

test('a window that is closed takes its agent along', async () => {
    const { pid } = editor.known(window);
    await window.close();
    await until('the agent has ended', () => !fs.existsSync(`/proc/${pid}`));
    await other.waitForStatus('live');
});
