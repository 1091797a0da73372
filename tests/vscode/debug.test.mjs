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
