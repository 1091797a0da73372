// What goes wrong while a client works: its window is reloaded, closed or killed, or the coordinator is.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { until } from './editor.mjs';
import { hostOf, isAlive } from './processes.mjs';
import { stageOfTwo } from './stage.mjs';

/** A client hears of a call whose window has gone within a second; a busy machine gets more. */
const LOST_MS = 8_000;

let editor, first, second, client;

stageOfTwo((all) => {
    ({ editor, first, second, client } = all);
});

/** Makes the window live, and has a call in flight there: it waits for a program that does not end. */
async function callInFlight(window) {
    editor.baton('take', editor.known(window).id);
    await window.waitForStatus('live');
    const answer = client.call('start_debugging', { configuration_name: 'wait', timeout: 60 });
    await until('the program runs', () => editor.known(window).debug_sessions.length > 0);
    await window.toolbar().waitFor();
    return { answer };
}

/** The call in flight is answered soon: by the agent, that it ended the program, or that nobody knows its outcome. */
async function expectLost(answer, goneAt) {
    const lost = await answer;
    const isKnown = lost.status === 'completed' && /was stopped/.test(lost.message);
    assert.ok(isKnown || ['outcome_unknown', 'shutting_down'].includes(lost.code), JSON.stringify(lost));
    assert.ok(Date.now() - goneAt < LOST_MS, `told after ${Date.now() - goneAt} ms`);
}

/** The window that is live now answers the same client session. */
async function expectAnswerFrom(window) {
    const answer = await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
    assert.equal(answer.status, 'success', JSON.stringify(answer));
    assert.equal(answer.breakpoint.source.path, `${window.folder}/bill.py`);
    await client.clear();
}

test('the window is reloaded while a call runs in it, and calls that come meanwhile wait', async () => {
    const { answer } = await callInFlight(first);
    const { id } = editor.known(first);
    const goneAt = Date.now();
    const reloading = first.page.reload();
    await expectLost(answer, goneAt);
    const next = await client.call('get_breakpoints');
    assert.ok(Array.isArray(next.breakpoints), JSON.stringify(next));
    await reloading;
    await first.waitForStatus(/^Baton: (live|standby)$/);
    await until('both windows are there', () => editor.status().windows.length === 2);
    assert.equal(editor.known(first).id, id);
    editor.baton('take', id);
    await first.waitForStatus('live');
    await second.waitForStatus('standby');
    await expectAnswerFrom(first);
});

test('the extension host of the live window is killed while a call runs in it', async () => {
    const { answer } = await callInFlight(first);
    const { id, pid } = editor.known(first);
    const goneAt = Date.now();
    process.kill(hostOf(pid), 'SIGKILL');
    await expectLost(answer, goneAt);
    await until('the agent has ended', () => !isAlive(pid));
    const next = await client.call('get_breakpoints');
    assert.ok(Array.isArray(next.breakpoints), JSON.stringify(next));
    await until('the window is back, under its id', () => editor.known(first)?.id === id && editor.known(first).pid !== pid);
    await first.waitForStatus(/^Baton: (live|standby)$/);
    editor.baton('take', id);
    await first.waitForStatus('live');
    await second.waitForStatus('standby');
    await expectAnswerFrom(first);
});

test('the coordinator is killed with two windows open: each stays what it was, and the same session goes on', async () => {
    const before = editor.status();
    const stop = await stopIn(first);
    const killed = editor.killCoordinator();
    await until('another coordinator runs, with both windows', () => {
        const now = editor.status();
        return now.running && now.pid !== killed && now.windows.length === 2 && now.live === before.live;
    });
    const { session_id, thread_id } = stop;
    const step = await client.call('step_execution', { session_id, thread_id, step_type: 'over' });
    assert.equal(step.status, 'stopped', JSON.stringify(step));
    await first.waitForStatus('live');
    await second.waitForStatus('standby');

    // And the other window is still one that can be handed to.
    await second.choose('Take over');
    await second.page.locator('.monaco-dialog-box').getByText('Take over', { exact: true }).click();
    await second.waitForStatus('live');
    await first.waitForStatus('standby');
    await expectAnswerFrom(second);
    editor.baton('take', editor.known(first).id);
    await first.waitForStatus('live');
    await client.call('stop_debugging', { session_id });
    await client.clear();
});

test('the coordinator is killed again and again: the windows keep their ids', async () => {
    const ids = () => editor.status().windows?.map(({ id }) => id).join() ?? '';
    const before = ids();
    for (let n = 0; n < 3; n += 1) {
        const killed = editor.killCoordinator();
        await until('another coordinator runs, with both windows', () => {
            const now = editor.status();
            return now.running && now.pid !== killed && ids() === before;
        });
    }
    await first.waitForStatus('live');
    await second.waitForStatus('standby');
    await expectAnswerFrom(first);
});

test('the agent of the live window is killed while a call runs in it: started again, and live again', async () => {
    const { answer } = await callInFlight(first);
    const { id, pid } = editor.known(first);
    const goneAt = Date.now();
    process.kill(pid, 'SIGKILL');
    await expectLost(answer, goneAt);
    await until('another agent runs', () => editor.known(first)?.id === id && editor.known(first).pid !== pid);
    await first.waitForStatus('live');
    await second.waitForStatus('standby');
    await expectAnswerFrom(first);
    // The program goes on in the editor: the user can end it.
    await first.press('stop');
    await until('the editor debugs nothing', async () => (await first.toolbar().count()) === 0);
});

test('the page is closed while a call runs in it: the other window answers the same session', async () => {
    const { answer } = await callInFlight(first);
    const { pid } = editor.known(first);
    const goneAt = Date.now();
    await first.close();
    await expectLost(answer, goneAt);
    await until('the agent has ended', () => !isAlive(pid));
    await second.waitForStatus('live');
    assert.equal(editor.status().windows.length, 1);
    await expectAnswerFrom(second);
});

async function stopIn(window) {
    await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 8 });
    const stop = await client.call('start_debugging', { configuration_name: 'bill' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    assert.ok(stop.stop_event_data.source.path.startsWith(window.folder));
    return stop.stop_event_data;
}
