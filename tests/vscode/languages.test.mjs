// Node and Python, each debugged in the real editor by the official Python client through the stable URL.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { connect } from './client.mjs';
import { until } from './editor.mjs';
import { stage } from './stage.mjs';

let editor, window, client, folder;

stage(
    async (start) => {
        editor = await start();
        folder = editor.project('orders');
        window = await editor.open(folder, /live/);
        client = await connect(editor, 'python');
    },
    () => client?.close(),
    () => client.reset(),
);

/** The same program twice; `call` calls the function whose first line is `first`. */
const LANGUAGES = [
    {
        name: 'Node', file: 'orders.js', run: 'orders', wait: 'wait.js', call: 12, first: 5,
        cheese: 'item === "cheese"', result: /sum: 31/, local: /^Local/,
        untold: ['this', 'price', 'exports', 'module', 'require', '__dirname', '__filename'],
        crash: { run: 'crash.js', line: 4, text: /nobody is there/ },
    },
    {
        name: 'Python', file: 'bill.py', run: 'bill', wait: 'wait', call: 16, first: 7,
        cheese: 'item == "cheese"', result: /bill: 31/, local: /^Locals/,
        crash: { run: 'crash.py', line: 5, text: /division by zero/ },
    },
];

/** Starts a configuration, and gives the stop. */
async function startToStop(name) {
    const stop = await client.call('start_debugging', { configuration_name: name });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    return stop.stop_event_data;
}

/** Steps, and gives the next stop. */
async function step({ session_id, thread_id }, step_type) {
    const stop = await client.call('step_execution', { session_id, thread_id, step_type });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    return stop.stop_event_data;
}

async function runToEnd({ session_id, thread_id }) {
    await client.clear();
    const done = await client.call('continue_debugging', { session_id, thread_id });
    assert.equal(done.status, 'completed', JSON.stringify(done));
    return done;
}

async function setBreakpoint(more) {
    const set = await client.call('set_breakpoint', more);
    assert.equal(set.status, 'success', JSON.stringify(set));
    return set.breakpoint;
}

const valueOf = (variables, name) => variables.find((variable) => variable.name === name)?.value;

for (const language of LANGUAGES) {
    const { name, file, run, call, first } = language;

    test(`${name}: breakpoint, into, scopes, variables, over, evaluate, out, continue, end`, async () => {
        const breakpoint = await setBreakpoint({ file_path: file, line_number: call });
        const stop = await startToStop(run);
        assert.equal(stop.reason, 'breakpoint');
        assert.equal(stop.source.path, path.join(folder, file));
        assert.equal(stop.line, call);
        assert.deepEqual(stop.hit_breakpoint_ids, [breakpoint.id]);

        const inside = await step(stop, 'into');
        const told = [stop, inside].flatMap((at) => at.top_frame_variables.variables.map((variable) => variable.name));
        assert.deepEqual(told.filter((variable) => language.untold?.includes(variable)), []);
        assert.equal(inside.line, first);
        assert.match(inside.call_stack[0].function_name, /price$/);
        assert.equal(inside.call_stack[1].line_number, call);
        const { frame_id } = inside.call_stack[0];
        const { scopes } = await client.call('get_scopes', { frame_id });
        const local = scopes.find((scope) => language.local.test(scope.name));
        assert.ok(local, JSON.stringify(scopes));
        const { variables } = await client.call('get_variables', { variables_reference: local.variables_reference });
        assert.match(valueOf(variables, 'item'), /apple/);
        assert.equal(valueOf(variables, 'quantity'), '2');

        const next = await step(inside, 'over');
        assert.equal(next.line, first + 1);
        const asked = { expression: 'unit * 10', frame_id: next.call_stack[0].frame_id };
        const value = await client.call('evaluate_expression', asked);
        assert.equal(value.result, '30', JSON.stringify(value));
        // The editor stands where the program does.
        await until('the editor shows the line', () => window.page.locator('.debug-top-stack-frame-line').count());
        const outside = await step(next, 'out');
        assert.doesNotMatch(outside.call_stack[0].function_name, /price$/);
        const { session_id, thread_id } = outside;
        const again = await client.call('continue_debugging', { session_id, thread_id });
        assert.equal(again.status, 'stopped', JSON.stringify(again));
        assert.equal(again.stop_event_data.line, call);
        const done = await runToEnd(again.stop_event_data);
        assert.match(done.output ?? '', language.result, JSON.stringify(done));
    });

    test(`${name}: a condition`, async () => {
        await setBreakpoint({ file_path: file, line_number: first + 1, condition: language.cheese });
        const stop = await startToStop(run);
        assert.equal(valueOf(stop.top_frame_variables.variables, 'quantity'), '3');
        await runToEnd(stop);
    });

    test(`${name}: a hit count`, async () => {
        await setBreakpoint({ file_path: file, line_number: first + 1, hit_condition: '== 3' });
        const stop = await startToStop(run);
        assert.match(valueOf(stop.top_frame_variables.variables, 'item'), /cheese/);
        await runToEnd(stop);
    });

    test(`${name}: a log point prints and does not stop`, async () => {
        await setBreakpoint({ file_path: file, line_number: first + 1, log_message: 'unit is {unit}' });
        const done = await client.call('start_debugging', { configuration_name: run });
        assert.equal(done.status, 'completed', JSON.stringify(done));
        // Which of the two comes first is the debugger's affair.
        assert.match(done.output, /unit is 3[^]*unit is 4[^]*unit is 7/, JSON.stringify(done));
        assert.match(done.output, language.result, JSON.stringify(done));
        await client.clear();
    });

    test(`${name}: an exception that nobody catches`, async () => {
        await breakOnUncaught(name);
        const stop = await startToStop(language.crash.run);
        assert.equal(stop.reason, 'exception', JSON.stringify(stop));
        assert.equal(stop.line, language.crash.line);
        assert.match(JSON.stringify(stop), language.crash.text);
        const ended = await client.call('stop_debugging', { session_id: stop.session_id });
        assert.equal(ended.status, 'success', JSON.stringify(ended));
    });

    test(`${name}: a wait that ends at its limit, and a program that is ended while it runs`, async () => {
        const waiting = await client.call('start_debugging', { configuration_name: language.wait, timeout: 3 });
        assert.equal(waiting.status, 'timeout', JSON.stringify(waiting));
        const ended = await client.call('stop_debugging', {});
        assert.equal(ended.status, 'success', JSON.stringify(ended));
        await until('the editor debugs nothing', async () => (await window.toolbar().count()) === 0);
        assert.equal(editor.known(window).debug_sessions.length, 0);
    });
}

/** VS Code asks the user which exceptions stop Node; Python's debugger stops at uncaught ones by itself. */
async function breakOnUncaught(name) {
    if (name === 'Node') {
        await window.command('View: Show Run and Debug');
        const row = window.page.locator('.debug-breakpoints .monaco-list-row', { hasText: 'Uncaught Exceptions' }).first();
        await row.locator('input[type="checkbox"], .monaco-checkbox, .monaco-custom-toggle').first().click();
    }
}
