// What the settings written by hand do, and the port when something is in its way or Baton was ended: a sentence, and a
// button that helps.

import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';

import { connect } from './client.mjs';
import { until } from './editor.mjs';
import { freePort } from './place.mjs';
import { stage } from './stage.mjs';

/** For what follows a click or a call, on a busy machine. */
const SOON_MS = 30_000;

let editor, window;
const strangers = [];

stage(
    async (start) => {
        editor = await start();
        window = await editor.open(editor.project('shop'), /live/);
    },
    () => strangers.forEach((stranger) => stranger.close()),
);

/** Kills the coordinator, and takes its port while nobody can start a successor. */
async function takePort() {
    const { port, windows } = editor.status();
    const agents = windows.map(({ pid }) => pid);
    agents.forEach((pid) => process.kill(pid, 'SIGSTOP'));
    try {
        editor.killCoordinator();
        await until('the port is ours', () => new Promise((resolve) => {
            const stranger = net.createServer();
            stranger.once('error', () => resolve(false));
            stranger.listen(port, '127.0.0.1', () => resolve(strangers.push(stranger)));
        }), SOON_MS);
    } finally {
        agents.forEach((pid) => process.kill(pid, 'SIGCONT'));
    }
    return port;
}

test('a port written into the settings by hand is carried out, and a configuration is offered', async () => {
    const next = await freePort();
    editor.writeMachineSettings({ 'baton.port': next });
    await until('the coordinator is there', () => editor.status().port === next, SOON_MS);
    const url = `http://127.0.0.1:${next}/mcp`;
    const toast = window.page.locator('.notification-toast', { hasText: `Baton is now at ${url}.` }).first();
    await toast.waitFor({ timeout: SOON_MS });
    await window.waitForStatus('live', SOON_MS);
    await toast.getByText('Connect an AI client', { exact: false }).first().click();
    await window.pick('Codex', { begins: true });
    await window.pick('HTTP');
    await until('it is in the clipboard', async () => (await window.clipboard()).includes(url), SOON_MS);
    // Another setting does not carry it out again, and `baton port` moves it from there.
    const later = await freePort();
    editor.baton('port', String(later));
    editor.writeMachineSettings({ 'baton.port': next, 'baton.routing': 'any' });
    await until('the other setting is carried out', () => editor.settings().routing === 'any', SOON_MS);
    assert.equal(editor.status().port, later);
    editor.writeMachineSettings({});
    await until('it is taken back', () => editor.settings().routing === 'live', SOON_MS);
    await window.waitForStatus('live', SOON_MS);
});

test('debugging that is turned off in the settings is refused with what turns it on', async () => {
    const client = await connect(editor, 'typescript', '?toolsets=debug,code');
    try {
        assert.equal((await client.call('debug', { action: 'sessions' })).code, undefined);
        editor.writeMachineSettings({ 'baton.debugEnabled': false });
        const refused = await until('it is refused', async () => {
            const answer = await client.call('debug', { action: 'sessions' });
            return answer.code && answer;
        }, SOON_MS);
        assert.equal(refused.code, 'debug_disabled', JSON.stringify(refused));
        assert.ok((await client.list()).every((name) => name !== 'debug'));
        editor.writeMachineSettings({});
        await until('it is offered again', async () => (await client.list()).includes('debug'), SOON_MS);
    } finally {
        await client.close();
    }
});

test('a stranger holds the port: the user is told who, and moves Baton with the button', async () => {
    const port = await takePort();
    await window.waitForStatus('error', SOON_MS);
    const toast = window.page.locator('.notification-toast', { hasText: `Port ${port} is in use by node` }).first();
    await toast.waitFor({ timeout: SOON_MS });
    await toast.getByText('Change the port...').click();
    const box = window.page.locator('.quick-input-widget input');
    await box.waitFor();
    const next = await freePort();
    await box.fill(String(next));
    await window.page.keyboard.press('Enter');
    await window.waitForStatus('live', SOON_MS);
    assert.equal(editor.status().port, next);
});

test('`baton port` moves a Baton whose port is held, and a later coordinator stays there', async () => {
    await takePort();
    await window.waitForStatus('error', SOON_MS);
    const next = await freePort();
    assert.equal(editor.baton('port', String(next)), `http://127.0.0.1:${next}/mcp`);
    await window.waitForStatus('live', SOON_MS);
    const { pid } = editor.status();
    editor.killCoordinator();
    const after = await until('a successor', () => {
        const now = editor.status();
        return now.running && now.pid !== pid && now;
    }, SOON_MS);
    // Neither the setting nor the environment of the window moves it back.
    assert.equal(after.port, next);
    await window.waitForStatus('live', SOON_MS);
});

test('after `baton down` the window is off, says why, and starts Baton again', async () => {
    const { port } = editor.status();
    editor.baton('down');
    await window.waitForStatus('off', SOON_MS);
    await window.page.mouse.move(400, 300);
    await window.statusItem.click();
    const input = window.page.locator('.quick-input-widget input');
    await input.waitFor();
    assert.equal(await input.getAttribute('placeholder'), 'Baton was stopped with `baton down`.');
    await window.pick('Start');
    await window.waitForStatus('live', SOON_MS);
    assert.equal(editor.status().port, port);
});
