// The panel and its entries, by mouse and by keyboard, in both languages; what the user sees when something is wrong.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';

import { Editor, until } from './editor.mjs';
import { freePort } from './place.mjs';

let editor, window;

before(async () => {
    editor = await Editor.start();
    window = await editor.open(editor.project('shop'), /live/);
});
after(() => editor?.stop());

test('the tooltip and the panel say who answers, and where', async () => {
    await window.statusItem.click();
    const panel = window.page.locator('.quick-input-widget');
    await panel.locator('.monaco-list-row').first().waitFor();
    const text = await panel.innerText();
    for (const part of ['Baton: live', 'Stop', 'Restart', 'Hand over', 'Auto-start is on', 'Change the port', 'Copy a client', 'Show logs', `:${editor.batonPort}/mcp`]) {
        assert.ok(text.includes(part), `${part} in ${text}`);
    }
    await window.page.keyboard.press('Escape');
});

for (const [label, id] of [['Claude Code', 'claude-code'], ['Codex', 'codex'], ['Claude Desktop', 'claude-desktop']]) {
    test(`the copied configuration of ${label} is what \`baton config\` prints`, async () => {
        await window.choose('Copy a client');
        await window.pick(label);
        await window.pick('Recommended');
        const expected = editor.baton('config', id);
        await until('it is in the clipboard', async () => (await window.clipboard()).trim() === expected);
    });
}

test('with the keyboard alone: the palette, the panel, an entry', async () => {
    await window.command('Baton: Open Panel');
    await window.page.locator('.quick-input-widget .monaco-list-row', { hasText: 'Stop' }).waitFor();
    await window.page.keyboard.type('Stop');
    await window.page.keyboard.press('Enter');
    await window.waitForStatus('off');
    await window.command('Baton: Start in This Window');
    await window.waitForStatus('live');
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

test('the port is changed with the window open', async () => {
    const port = await freePort();
    await window.choose('Change the port');
    await window.page.locator('.quick-input-widget input').fill(String(port));
    await window.page.keyboard.press('Enter');
    await until('the coordinator is there', () => editor.status().port === port);
    await window.page.locator('.notification-toast', { hasText: 'Your clients need the new URL' }).first().waitFor();
    await window.waitForStatus('live');
    assert.equal(editor.status().windows.length, 1);
});

test('an agent that is killed is started again', async () => {
    const { pid } = editor.status().windows[0];
    process.kill(pid, 'SIGKILL');
    await until('another agent runs', () => editor.status().windows[0]?.pid !== pid && editor.status().windows.length === 1);
    await window.waitForStatus('live');
});

test('a window that is closed takes its agent along', async () => {
    const { pid } = editor.status().windows[0];
    await window.close();
    await until('the agent has ended', () => !fs.existsSync(`/proc/${pid}`), 5_000);
});
