// What the user does beside an AI client: types elsewhere while it debugs, and debugs where it can look on.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { connect } from './client.mjs';
import { until } from './editor.mjs';
import { stage } from './stage.mjs';

let editor, window, client, page;

stage(
    async (start) => {
        editor = await start();
        window = await editor.open(editor.project('orders'), /live/);
        page = window.page;
        client = await connect(editor);
    },
    () => client?.close(),
    () => client.reset(),
);

/** A condition that is true after some messages between processes, on a busy machine. */
const SOON_MS = 20_000;

/** The text of the line that the program stands at: the highlight lies on the same height. */
const textAtStop = () => page.evaluate(() => {
    const mark = document.querySelector('.debug-top-stack-frame-line')?.getBoundingClientRect();
    const lines = [...document.querySelectorAll('.view-line')];
    return lines.find((line) => Math.abs(line.getBoundingClientRect().top - (mark?.top ?? -1)) < 3)?.innerText.replaceAll('\u00a0', ' ') ?? '';
});
const line = () => page.locator('.debug-top-stack-frame-line');
/** Where the keyboard is: in the search box, in an editor, or elsewhere. */
const keyboard = () => page.evaluate(() => {
    const at = document.activeElement;
    return at?.closest('.search-view') ? 'search' : at?.closest('.editor-instance') ? 'editor' : at?.className;
});

/** Lets every `focus` of the window be counted, and puts the keyboard into the search box. */
async function typeElsewhere() {
    await page.evaluate(() => {
        globalThis.nFocused = 0;
        globalThis.focus = () => (globalThis.nFocused += 1);
        // To VS Code the window is in the background.
        Document.prototype.hasFocus = () => false;
    });
    // A key that comes while VS Code rearranges itself is lost, as it is to a person.
    await until('the search box has the keyboard', async () => {
        if ((await keyboard()) !== 'search') await page.keyboard.press('Control+Shift+F');
        return (await keyboard()) === 'search';
    });
}

async function reveal(value) {
    fs.writeFileSync(path.join(window.folder, '.vscode/settings.json'), JSON.stringify({ 'baton.revealOnStop': value }));
}

test('a stop of the client shows the line, and takes neither the keyboard nor the window', async () => {
    await typeElsewhere();
    await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6 });
    const stop = await client.call('start_debugging', { configuration_name: 'orders' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    await until('the editor shows the line', () => line().count(), SOON_MS);
    const { session_id, thread_id } = stop.stop_event_data;
    const step = await client.call('step_execution', { session_id, thread_id, step_type: 'over' });
    assert.equal(step.stop_event_data?.line, 7, JSON.stringify(step));
    await until('the editor shows the next line', async () => /return total/.test(await textAtStop()), SOON_MS);
    await page.keyboard.type('x');
    assert.equal(await keyboard(), 'search');
    assert.equal(await page.evaluate(() => globalThis.nFocused), 0);
    // VS Code's own views are about that frame, as if the user had clicked on it.
    await page.keyboard.press('Control+Shift+D');
    await until('the variables are those of the frame', () => page.locator('.debug-variables .monaco-list-row', { hasText: 'Local: price' }).count(), SOON_MS);
    await client.call('stop_debugging', { session_id });
    await idle();
});

test('what the user types into an editor arrives there, whatever the client debugs meanwhile', async () => {
    const N_KEYS = 200;
    const N_RUNS = 20;
    const notes = path.join(window.folder, 'notes.txt');
    fs.writeFileSync(notes, '');
    await window.openFile('notes.txt');
    await page.locator('.editor-instance .view-line').first().click();
    await until('the editor has the keyboard', async () => (await keyboard()) === 'editor');
    await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6 });
    let isDebugging = true;
    const debugging = (async () => {
        for (let nRuns = 0; nRuns < N_RUNS; nRuns += 1) {
            const stop = await client.call('start_debugging', { configuration_name: 'orders' });
            assert.equal(stop.status, 'stopped', JSON.stringify(stop));
            const { session_id, thread_id } = stop.stop_event_data;
            const step = await client.call('step_execution', { session_id, thread_id, step_type: 'over' });
            assert.equal(step.stop_event_data?.line, 7, JSON.stringify(step));
            await client.call('stop_debugging', { session_id });
        }
    })().finally(() => (isDebugging = false));
    let typed = '';
    while (isDebugging || typed.length < N_KEYS) {
        const key = String.fromCharCode(97 + (typed.length % 26));
        // As fast as a person who types well.
        await page.keyboard.press(key, { delay: 80 });
        typed += key;
    }
    await debugging;
    assert.equal(await keyboard(), 'editor');
    await page.keyboard.press('Control+S');
    await until('all of it is in the file', () => fs.readFileSync(notes, 'utf8') === typed, SOON_MS, () => `${typed.length} keys: ${fs.readFileSync(notes, 'utf8')}`);
    await idle();
});

test('with baton.revealOnStop the stop takes both', async () => {
    await reveal(true);
    await typeElsewhere();
    const stop = await client.call('start_debugging', { configuration_name: 'orders' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    await until('the editor has the keyboard', async () => (await keyboard()) === 'editor', SOON_MS);
    await until('the window was brought to the front', () => page.evaluate(() => globalThis.nFocused > 0), SOON_MS);
    await client.call('stop_debugging', {});
    await reveal(false);
    await idle();
});

test('a session that the user starts is known to the client, which goes on with it', async () => {
    await startByHand();
    const [mine] = await until('the client is told of it', async () => {
        const listed = await users();
        return listed.length === 1 && listed;
    });
    // It is nobody's default: what names no session has none.
    const unnamed = await client.call('stop_debugging', {});
    assert.equal(unnamed.status, 'error', JSON.stringify(unnamed));
    const stop = await until('the stop', () => client.call('continue_debugging', { session_id: mine, thread_id: 0 }), SOON_MS);
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    const event = stop.stop_event_data;
    assert.equal(event.line, 6);
    const value = await client.call('evaluate_expression', { expression: 'unit * 2', frame_id: event.call_stack[0].frame_id });
    assert.equal(value.result, '6', JSON.stringify(value));
    const step = await client.call('step_execution', { session_id: mine, thread_id: event.thread_id, step_type: 'over' });
    assert.equal(step.stop_event_data?.line, 7, JSON.stringify(step));
    const refused = await client.command({ do: 'call', tool: 'debug', arguments: { action: 'custom_request', command: 'restart', session: mine } });
    assert.match(refused.content[0].text, /only they can restart it/);
    // What the user debugs is not what a client debugs: the panel asks nothing (R11).
    assert.deepEqual(editor.status().windows[0].debug_sessions, []);
});

test('a restarted agent finds the session of the user where it stands', async () => {
    const before = await users();
    editor.baton('restart', editor.status().windows[0].id);
    const again = await until('the new agent knows it', async () => {
        const listed = await users();
        return listed.length === 1 && !before.includes(listed[0]) && listed;
    });
    const stop = await client.call('continue_debugging', { session_id: again[0], thread_id: 0 });
    assert.equal(stop.stop_event_data?.line, 7, JSON.stringify(stop));
    const ended = await client.call('stop_debugging', { session_id: again[0] });
    assert.equal(ended.status, 'success', JSON.stringify(ended));
    await idle();
});

async function users() {
    const { windows } = await client.call('list_windows');
    return windows[0]?.users_sessions ?? [];
}

async function startByHand() {
    await page.bringToFront();
    await page.keyboard.press('F5');
    await until('the program has stopped', () => line().count(), SOON_MS);
}

async function idle() {
    await until('nothing is debugged', async () => (await page.locator('.debug-toolbar:visible').count()) === 0, SOON_MS);
}
