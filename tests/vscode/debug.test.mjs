// An AI client debugs in the real editor, through the stable URL.

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { connect } from './client.mjs';
import { Editor, until } from './editor.mjs';

let editor, window, client, folder;

before(async () => {
    editor = await Editor.start();
    folder = editor.project('orders');
    window = await editor.open(folder, /live/);
    client = await connect(editor);
});
after(async () => {
    await client?.close();
    await editor?.stop();
});

const glyphs = () => window.page.locator('.codicon-debug-breakpoint');

test('a Node program: breakpoint, variables, step, evaluate, end', async () => {
    const set = await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6 });
    assert.equal(set.status, 'success', JSON.stringify(set));

    const stop = await client.call('start_debugging', { configuration_name: 'orders' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    const event = stop.stop_event_data;
    assert.equal(event.reason, 'breakpoint');
    assert.equal(event.source.path, path.join(folder, 'orders.js'));
    assert.equal(event.line, 6);
    assert.deepEqual(event.hit_breakpoint_ids, [set.breakpoint.id]);
    assert.match(event.call_stack[0].function_name, /price$/);
    const names = event.top_frame_variables.variables.map(({ name }) => name);
    assert.ok(names.includes('quantity'), names.join());

    // The editor shows where the program stands, and the breakpoint that the client set.
    await until('the editor shows the top frame', () => window.page.locator('.debug-top-stack-frame-line').count());
    assert.ok((await glyphs().count()) > 0);

    const step = await client.call('step_execution', {
        session_id: event.session_id, thread_id: event.thread_id, step_type: 'over',
    });
    assert.equal(step.status, 'stopped', JSON.stringify(step));
    assert.equal(step.stop_event_data.line, 7);

    const value = await client.call('evaluate_expression', {
        expression: 'total * 10', frame_id: step.stop_event_data.call_stack[0].frame_id,
    });
    assert.equal(value.result, '60', JSON.stringify(value));

    await client.call('remove_breakpoint', { clear_all: true });
    await until('the gutter is empty', async () => (await glyphs().count()) === 0);
    const { session_id, thread_id } = step.stop_event_data;
    const done = await client.call('continue_debugging', { session_id, thread_id });
    assert.equal(done.status, 'completed', JSON.stringify(done));
});

test('a Python program: condition, hit count, exception-free end', async () => {
    const set = await client.call('set_breakpoint', {
        file_path: 'bill.py', line_number: 9, condition: 'item == "cheese"',
    });
    assert.equal(set.status, 'success', JSON.stringify(set));
    const stop = await client.call('start_debugging', { configuration_name: 'bill' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    const { variables } = stop.stop_event_data.top_frame_variables;
    assert.equal(variables.find(({ name }) => name === 'quantity').value, '3');
    await client.call('remove_breakpoint', { breakpoint_id: set.breakpoint.id });
    const { session_id, thread_id } = stop.stop_event_data;
    const done = await client.call('continue_debugging', { session_id, thread_id });
    assert.equal(done.status, 'completed', JSON.stringify(done));
});

test('a log point prints and does not stop; what was printed is told', async () => {
    const set = await client.call('set_breakpoint', {
        file_path: 'orders.js', line_number: 6, log_message: 'unit is {unit}',
    });
    const done = await client.call('start_debugging', { configuration_name: 'orders' });
    assert.equal(done.status, 'completed', JSON.stringify(done));
    assert.match(done.output, /unit is 7[^]*sum: 31/, JSON.stringify(done));
    await client.call('remove_breakpoint', { breakpoint_id: set.breakpoint.id });
});

test('a hit count', async () => {
    const set = await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6, hit_condition: '== 3' });
    const stop = await client.call('start_debugging', { configuration_name: 'orders' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    const { variables } = stop.stop_event_data.top_frame_variables;
    assert.match(variables.find(({ name }) => name === 'item').value, /cheese/);
    const { session_id } = stop.stop_event_data;
    const stopped = await client.call('stop_debugging', { session_id });
    assert.equal(stopped.status, 'success', JSON.stringify(stopped));
    await idle();
    await client.call('remove_breakpoint', { breakpoint_id: set.breakpoint.id });
});

test('a breakpoint that the user sets is known to the client, hit, and removed again by the client', async () => {
    await openFile('orders.js');
    await window.page.locator('.margin-view-overlays .line-numbers', { hasText: /^12$/ }).first().click({ position: { x: -13, y: 8 }, force: true });
    const mine = await until('the client knows it', async () => {
        const { breakpoints } = await client.call('get_breakpoints');
        return breakpoints.find(({ line }) => line === 12);
    });
    assert.equal(mine.source.path, path.join(folder, 'orders.js'));
    const stop = await client.call('start_debugging', { configuration_name: 'orders' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    assert.deepEqual(stop.stop_event_data.hit_breakpoint_ids, [mine.id]);
    await client.call('remove_breakpoint', { breakpoint_id: mine.id });
    await until('the gutter is empty', async () => (await glyphs().count()) === 0);
    const { session_id, thread_id } = stop.stop_event_data;
    const done = await client.call('continue_debugging', { session_id, thread_id });
    assert.equal(done.status, 'completed', JSON.stringify(done));
});

test('the user presses stop while the client waits: interrupted', async () => {
    await idle();
    const waiting = client.call('start_debugging', { configuration_name: 'wait' });
    await window.page.locator('.debug-toolbar:visible').waitFor({ timeout: 20_000 });
    await window.page.locator('.debug-toolbar:visible .codicon-debug-stop').first().click();
    const answer = await waiting;
    assert.equal(answer.status, 'interrupted', JSON.stringify(answer));
    await until('the session is over', () => editor.status().windows[0].debug_sessions.length === 0);
});

test('the user presses continue while the client does not wait', async () => {
    const set = await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
    const stop = await client.call('start_debugging', { configuration_name: 'bill' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    await window.page.locator('.debug-toolbar:visible .codicon-debug-continue').first().click();
    const { session_id, thread_id } = stop.stop_event_data;
    const next = await until('the next stop', async () => {
        const answer = await client.call('continue_debugging', { session_id, thread_id });
        return answer.status === 'stopped' ? answer : undefined;
    });
    assert.equal(next.stop_event_data.line, 9);
    await client.call('stop_debugging', {});
    await client.call('remove_breakpoint', { breakpoint_id: set.breakpoint.id });
});

test('what cannot be started is said: a type that nothing debugs, a task that fails, a name that is not there', async () => {
    const unheard = await client.call('start_debugging', { configuration_name: 'unheard' });
    assert.equal(unheard.status, 'error');
    assert.match(unheard.message, /unheard-of/);
    const task = await client.call('start_debugging', { configuration_name: 'task', timeout: 30 });
    assert.equal(task.status, 'error', JSON.stringify(task));
    assert.match(task.message, /exit code 3/);
    await window.page.keyboard.press('Escape');
    const nobody = await client.call('start_debugging', { configuration_name: 'nobody' });
    assert.equal(nobody.code, 'unknown_configuration', JSON.stringify(nobody));
});

test('a compound: both parts run, and each stop names its session', async () => {
    await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9, condition: 'item == "cheese"' });
    await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6, condition: 'item === "cheese"' });
    const first = await client.call('start_debugging', { configuration_name: 'both' });
    assert.equal(first.status, 'stopped', JSON.stringify(first));
    const { session_id, thread_id } = first.stop_event_data;
    // Which part ends first is a race; every end is told, and then the stop of the other part.
    let second = await client.call('continue_debugging', { session_id, thread_id });
    for (let nEnds = 0; second.status === 'completed' && nEnds < 3; nEnds += 1) {
        second = await client.call('continue_debugging', { thread_id: 1 });
    }
    assert.equal(second.status, 'stopped', JSON.stringify(second));
    assert.notEqual(second.stop_event_data.source.path, first.stop_event_data.source.path);
    await client.call('stop_debugging', {});
    await client.call('remove_breakpoint', { clear_all: true });
});

test('the coordinator is killed while a program is stopped: the same client session goes on', async () => {
    await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
    const stop = await client.call('start_debugging', { configuration_name: 'bill' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    process.kill(editor.status().pid, 'SIGKILL');
    const { session_id, thread_id } = stop.stop_event_data;
    const next = await until('the next stop', () => client.call('continue_debugging', { session_id, thread_id }));
    assert.equal(next.status, 'stopped', JSON.stringify(next));
    await client.call('stop_debugging', {});
    await client.call('remove_breakpoint', { clear_all: true });
});

/** The editor debugs nothing. */
async function idle() {
    await until('no session is left in the editor', async () => (await window.page.locator('.debug-toolbar:visible').count()) === 0);
}

async function openFile(name) {
    await window.page.bringToFront();
    await window.page.keyboard.press('Control+P');
    await window.page.locator('.quick-input-widget input').fill(name);
    await window.pick(name);
    await window.page.locator('.tab', { hasText: name }).first().waitFor();
}
