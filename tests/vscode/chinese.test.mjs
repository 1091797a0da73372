// What a user who reads Chinese sees: status bar, tooltip, panel, palette, dialogs.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { connect } from './client.mjs';
import { until } from './editor.mjs';
import { EXTENSION } from './place.mjs';
import { stage } from './stage.mjs';

const read = (file) => JSON.parse(fs.readFileSync(path.join(EXTENSION, file), 'utf8'));
/** The translations that are shipped: English text, Chinese text. */
const TEXTS = read('l10n/bundle.l10n.zh-cn.json');
const TITLES = read('package.nls.zh-cn.json');

let editor, window, other, client;

stage(
    async (start) => {
        editor = await start({ chinese: true });
        window = await editor.open(editor.project('orders', 'first'), /^Baton: (活动|待命)$/);
        other = await editor.open(editor.project('orders', 'second'), /^Baton: (活动|待命)$/);
        client = await connect(editor);
    },
    () => client?.close(),
);

async function expectStatus(mine, others) {
    await window.waitForStatus(TEXTS[mine]);
    await other.waitForStatus(TEXTS[others]);
}

test('the status bar and its tooltip', async () => {
    await expectStatus('live', 'standby');
    await window.page.bringToFront();
    await window.statusItem.hover();
    const tooltip = window.page.locator('.monaco-hover', { hasText: TEXTS['This window answers AI clients.'] }).first();
    await tooltip.waitFor();
    // Why it is so is a sentence for the log, in English.
    assert.doesNotMatch(await tooltip.innerText(), /[a-z]{3,} [a-z]{3,}/);
    await window.page.mouse.move(400, 300);
});

test('the panel: every entry, and nothing in English', async () => {
    await window.page.bringToFront();
    await window.statusItem.click();
    const rows = window.page.locator('.quick-input-widget .monaco-list-row');
    await rows.first().waitFor();
    const labels = await rows.locator('.label-name').allInnerTexts();
    const entries = [
        'Stop', 'Restart', 'Hand over to another window...', 'Auto-start is on; turn it off', 'Change the port...',
        "Connect an AI client...", 'Open in the browser', 'Show logs',
    ];
    assert.deepEqual(labels.map((label) => label.trim()), entries.map((entry) => TEXTS[entry]));
    await window.page.keyboard.press('Escape');
});

test('the entries work: stop, start, hand over, auto-start', async () => {
    await window.choose(TEXTS.Stop);
    await expectStatus('off', 'standby');
    await window.choose(TEXTS.Start);
    await expectStatus('live', 'standby');
    await window.choose(TEXTS['Hand over to another window...']);
    await window.pick('second');
    await expectStatus('standby', 'live');
    await window.choose(TEXTS['Take over']);
    await expectStatus('live', 'standby');
    await window.choose(TEXTS['Auto-start is on; turn it off']);
    await until('auto-start is off', () => editor.known(window).auto_start === false);
    await window.choose(TEXTS['Auto-start is off; turn it on']);
    await until('auto-start is on', () => editor.known(window).auto_start);
});

test('a configuration is copied, and that is said in Chinese', async () => {
    await window.choose(TEXTS["Connect an AI client..."]);
    await window.pick('Cursor', { begins: true });
    await window.pick(TEXTS.Recommended);
    const said = TEXTS['Copied the configuration for {0} to the clipboard. Paste it into {1}.'].replace('{0}', 'Cursor').split('{1}')[0];
    await window.page.locator('.notification-toast', { hasText: said }).first().waitFor();
    assert.equal((await window.clipboard()).trim(), editor.baton('config', 'cursor'));
});

test('the commands in the palette', async () => {
    await window.page.bringToFront();
    await window.page.locator('.monaco-workbench').focus();
    await window.page.keyboard.press('F1');
    // Of a window that is live already nobody can ask that it become so.
    const isOffered = (id) => /^command\.\w+$/.test(id) && !['command.takeOver', 'command.start'].includes(id);
    for (const [id, title] of Object.entries(TITLES).filter(([id]) => isOffered(id))) {
        await window.page.locator('.quick-input-widget input').fill(`>Baton: ${title}`);
        const row = window.page.locator('.quick-input-widget .monaco-list-row', { hasText: `Baton: ${title}` });
        await row.first().waitFor().catch(() => assert.fail(`${id} is not there as ${title}`));
    }
    await window.page.keyboard.press('Escape');
});

test('a takeover from a window in which a client debugs is asked about in Chinese', async () => {
    await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
    const stop = await client.call('start_debugging', { configuration_name: 'bill' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    await other.choose(TEXTS['Take over']);
    const dialog = other.page.locator('.monaco-dialog-box');
    await dialog.waitFor();
    const question = TEXTS['An AI client is debugging in {0}. Take over anyway?'].replace('{0}', 'first');
    const text = await dialog.innerText();
    assert.ok(text.includes(question), text);
    assert.ok(text.includes(TEXTS['Its session continues there. New calls go to this window.']), text);
    await other.page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await expectStatus('live', 'standby');
    await client.call('stop_debugging', { session_id: stop.stop_event_data.session_id });
});
