// Several windows at work: debugging in two at once, taking over from one that debugs, windows that do not start.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { connect } from './client.mjs';
import { until } from './editor.mjs';
import { stage } from './stage.mjs';

let editor, first, second, client;

stage(async (start) => {
    editor = await start();
    first = await editor.open(editor.project('orders', 'first'), /live/);
    second = await editor.open(editor.project('orders', 'second'), /standby/);
    client = await connect(editor, 'python');
}, () => client?.close());

let inFirst;

test('taking over from a window in which a client debugs asks first (R11), and debugging goes on in both', async () => {
    await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
    inFirst = (await client.call('start_debugging', { configuration_name: 'bill' })).stop_event_data;
    assert.ok(inFirst.source.path.includes('/first/'), JSON.stringify(inFirst));

    await second.choose('Take over');
    const dialog = second.page.locator('.monaco-dialog-box');
    await dialog.waitFor();
    assert.match(await dialog.innerText(), /debugging in first/);
    await dialog.getByText('Take over', { exact: true }).click();
    await second.waitForStatus('live');
    await first.waitForStatus('standby');

    await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6 });
    const inSecond = (await client.call('start_debugging', { configuration_name: 'orders' })).stop_event_data;
    assert.ok(inSecond.source.path.includes('/second/'), JSON.stringify(inSecond));
    assert.equal(editor.status().windows.filter(({ debug_sessions }) => debug_sessions.length > 0).length, 2);
    await client.call('stop_debugging', { session_id: inSecond.session_id });
});

test('a restart of a window in which a client debugs asks first', async () => {
    await first.choose('Restart');
    const dialog = first.page.locator('.monaco-dialog-box');
    await dialog.waitFor();
    assert.match(await dialog.innerText(), /debugging in this window/);
    await dialog.getByText('Cancel', { exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    const { debug_sessions } = editor.known(first);
    assert.deepEqual(debug_sessions, [inFirst.session_id]);
});

test('with routing "any" the session of the other window is reached by its handle', async () => {
    editor.baton('settings', 'routing', 'any');
    const { session_id, thread_id } = inFirst;
    const step = await client.call('step_execution', { session_id, thread_id, step_type: 'over' });
    assert.equal(step.status, 'stopped', JSON.stringify(step));
    assert.ok(step.stop_event_data.source.path.includes('/first/'));
    await client.call('stop_debugging', { session_id });
    editor.baton('settings', 'routing', 'live');
});

test('both windows debug, and the user presses continue in one and stop in the other', async () => {
    editor.baton('settings', 'routing', 'any');
    const inBoth = await Promise.all(['first', 'second'].map((name) => {
        return client.call('set_breakpoint', { window: name, file_path: 'bill.py', line_number: 9 });
    }));
    assert.deepEqual(inBoth.map(({ status }) => status), ['success', 'success'], JSON.stringify(inBoth));
    const here = await client.call('start_debugging', { window: 'first', configuration_name: 'bill' });
    assert.equal(here.status, 'stopped', JSON.stringify(here));
    const waiting = client.call('start_debugging', { window: 'second', configuration_name: 'wait' });
    await until('both debug', () => editor.status().windows.every(({ debug_sessions }) => debug_sessions.length === 1));
    await second.toolbar().waitFor();

    // The user continues in the first window, which stops again; the client goes on from there.
    const { session_id, thread_id } = here.stop_event_data;
    await first.press('continue');
    const next = await until('the next stop', async () => {
        const step = await client.call('step_execution', { session_id, thread_id, step_type: 'out' });
        return step.status === 'stopped' ? step : undefined;
    });
    assert.ok(next.stop_event_data.source.path.startsWith(first.folder), JSON.stringify(next));

    // The user stops the second one: the call that waits there hears of it, and the first is as it was.
    await second.press('stop');
    const interrupted = await waiting;
    assert.equal(interrupted.status, 'interrupted', JSON.stringify(interrupted));
    const step = await client.call('step_execution', { session_id, thread_id, step_type: 'over' });
    assert.equal(step.status, 'stopped', JSON.stringify(step));
    const ended = await client.call('stop_debugging', { session_id });
    assert.equal(ended.status, 'success', JSON.stringify(ended));
    await Promise.all(['first', 'second'].map((name) => client.clear({ window: name })));
    editor.baton('settings', 'routing', 'live');
});

test('settings: secrets are hidden from clients, and the toolset `refactor` is offered', async () => {
    const evaluate = async () => {
        await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
        const stop = (await client.call('start_debugging', { configuration_name: 'bill' })).stop_event_data;
        const frame_id = stop.call_stack[0].frame_id;
        const answer = await client.call('evaluate_expression', { expression: '{"password": "hunter2"}', frame_id });
        await client.reset();
        return JSON.stringify(answer);
    };
    assert.match(await evaluate(), /hunter2/);
    assert.ok(!(await client.list()).includes('lcp_rename'));
    editor.writeMachineSettings({
        'baton.redact': true,
        'baton.toolsets': ['debugger', 'code', 'windows', 'refactor'],
    });
    await until('they are carried out', () => editor.settings().redact && editor.settings().toolsets.includes('refactor'));
    const hidden = await evaluate();
    assert.match(hidden, /\[redacted\]/);
    assert.doesNotMatch(hidden, /hunter2/);
    assert.ok((await client.list()).includes('lcp_rename'));
    editor.writeMachineSettings({});
    await until('they are taken back', () => !editor.settings().redact && editor.settings().toolsets.length === 3);
});

test('an AI client asks for another window, and the user allows it there', async () => {
    await first.page.bringToFront();
    const asking = client.call('activate_window', { window: 'first' });
    const toast = first.page.locator('.notification-toast', { hasText: 'wants to work in this window' }).first();
    await toast.waitFor();
    await toast.getByText('Allow', { exact: true }).click();
    const answer = await asking;
    assert.notEqual(answer.status, 'error', JSON.stringify(answer));
    await first.waitForStatus('live');
    await second.waitForStatus('standby');
    await second.choose('Take over');
    await second.waitForStatus('live');
});

test('R3: a window whose workspace says no auto-start is off', async () => {
    const folder = editor.project('shop', 'quiet');
    fs.writeFileSync(path.join(folder, '.vscode/settings.json'), '{ "baton.autoStart": false }');
    const quiet = await editor.open(folder);
    await quiet.waitForStatus('off');
    await second.waitForStatus('live');
    // R11 holds for *Start* as for *Take over*.
    await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
    const { stop_event_data: stop } = await client.call('start_debugging', { configuration_name: 'bill' });
    await quiet.choose('Start');
    const dialog = quiet.page.locator('.monaco-dialog-box');
    await dialog.waitFor();
    assert.match(await dialog.innerText(), /debugging in second/);
    await dialog.getByText('Cancel', { exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await quiet.waitForStatus('off');
    await client.call('stop_debugging', { session_id: stop.session_id });
    await client.clear();
    await quiet.close();
});

test('the same folder in two windows: each has an id of its own', async () => {
    const again = await editor.open(first.folder);
    await again.waitForStatus('standby');
    const ids = editor.status().windows.filter(({ name }) => name === 'first').map(({ id }) => id);
    assert.equal(new Set(ids).size, 2, ids.join());
    await again.close();
});

test('a window without a folder works, and says that it has no launch.json', async () => {
    const empty = await editor.open('', /^Baton: (standby|live)/);
    await empty.choose('Take over');
    await empty.waitForStatus('live');
    const answer = await client.call('start_debugging', { configuration_name: 'bill' });
    assert.equal(answer.code, 'no_folder', JSON.stringify(answer));
    await empty.close();
});

test('a broken launch.json is told with its line', async () => {
    editor.baton('take', editor.known(second).id);
    await second.waitForStatus('live');
    fs.writeFileSync(path.join(second.folder, '.vscode/launch.json'), '{ "configurations": [\n { "name" }\n] }');
    const answer = await client.call('start_debugging', { configuration_name: 'bill' });
    assert.equal(answer.code, 'launch_json_broken', JSON.stringify(answer));
    assert.equal(answer.line, 2);
});

/** Now and then VS Code takes a workspace file for empty while it starts; a user opens it again. */
async function expectOpened(window, workspace, isThere) {
    for (let n = 0; n < 3; n += 1) {
        if (await until('it has its folder', isThere, 15_000).catch(() => false)) {
            return;
        }
        await window.show(workspace);
    }
    await until('it has its folder', isThere);
}

test('folders that are added and removed, and another name, are told to the coordinator', async () => {
    const [one, two] = [editor.project('shop', 'one'), editor.project('robots', 'two')];
    const file = path.join(editor.run, 'projects/pair.code-workspace');
    const write = (...folders) => {
        // At once, because VS Code may read it at any moment.
        fs.writeFileSync(`${file}.new`, JSON.stringify({ folders: folders.map((at) => ({ path: at })) }));
        fs.renameSync(`${file}.new`, file);
    };
    const named = (name) => editor.status().windows.find((window) => window.name.startsWith(name));
    const holds = (name, ...folders) => JSON.stringify(named(name)?.folders) === JSON.stringify(folders);
    write(one);
    const pair = await editor.open(file);
    await expectOpened(pair, file, () => holds('pair', one));
    const { id, pid } = named('pair');
    write(one, two);
    await until('it has two folders', () => holds('pair', one, two));
    // The same window: calls that name a folder reach it.
    assert.deepEqual([named('pair').id, named('pair').pid], [id, pid]);
    editor.baton('take', two);
    await pair.waitForStatus('live');
    write(one);
    await until('it has one folder again', () => holds('pair', one));

    // A window is called after its workspace: the user opens the same one under another name.
    const renamed = path.join(editor.run, 'projects/trio.code-workspace');
    fs.copyFileSync(file, renamed);
    await pair.show(renamed);
    await expectOpened(pair, renamed, () => holds('trio', one));
    await until('the old name is gone', () => named('pair') === undefined);
    await pair.close();
});

test('configurations of a workspace file are listed and started, and those of the folder go first', async () => {
    const folder = editor.project('orders', 'inside');
    const file = path.join(editor.run, 'projects/solo.code-workspace');
    const node = { type: 'node', request: 'launch' };
    fs.writeFileSync(file, JSON.stringify({
        folders: [{ path: folder }],
        launch: {
            configurations: [
                { name: 'of the workspace', ...node, program: '${workspaceFolder}/asks.js', args: ['${input:whom}'] },
                { name: 'orders', ...node, program: '${workspaceFolder}/gone.js' },
            ],
            inputs: [{ id: 'whom', type: 'promptString', description: 'Whom?' }],
        },
    }));
    const solo = await editor.open(file);
    await expectOpened(solo, file, () => editor.status().windows.some(({ folders }) => folders.join() === folder));
    const { id } = editor.status().windows.find(({ folders }) => folders.join() === folder);
    editor.baton('take', id);
    await solo.waitForStatus('live');
    const { configurations } = await client.call('get_debugger_configurations');
    const names = configurations.map(({ name }) => name);
    assert.deepEqual(names.filter((name) => ['orders', 'of the workspace'].includes(name)), ['orders', 'of the workspace']);
    const done = await client.call('start_debugging', { configuration_name: 'orders' });
    assert.equal(done.status, 'completed', JSON.stringify(done));
    const launch = { action: 'launch', configuration: 'of the workspace', timeout: 60 };
    const refused = await client.call('debug', launch);
    assert.equal(refused.code, 'needs_input', JSON.stringify(refused));
    await client.call('debug', { ...launch, inputs: { whom: 'Grace' } });
    await until('it has printed', async () => (await client.call('debug', { action: 'output' })).output?.includes('greets Grace'));
    await solo.close();
});
