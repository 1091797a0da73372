// What the user sees and does in the editor while an AI client debugs in it.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { connect } from './client.mjs';
import { until } from './editor.mjs';
import { isAlive } from './processes.mjs';
import { stage } from './stage.mjs';

let editor, window, client, folder;

stage(
    async (start) => {
        editor = await start();
        folder = editor.project('orders');
        window = await editor.open(folder, /live/);
        client = await connect(editor);
    },
    () => client?.close(),
    () => client.reset(),
);

const running = () => editor.status().windows[0].debug_sessions;
const dialogs = () => window.page.locator('.monaco-dialog-box').count();
const glyphs = () => window.page.locator('.codicon-debug-breakpoint');
const conditional = () => window.page.locator('.codicon-debug-breakpoint-conditional');

test('the editor shows the breakpoint that the client set, and where the program stands', async () => {
    const set = await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6 });
    assert.equal(set.status, 'success', JSON.stringify(set));
    const stop = await client.call('start_debugging', { configuration_name: 'orders' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    await until('the editor shows the top frame', () => window.page.locator('.debug-top-stack-frame-line').count());
    await until('the gutter shows the breakpoint', () => glyphs().count());
    await client.clear();
    await until('the gutter is empty', async () => (await glyphs().count()) === 0);
    const { session_id, thread_id } = stop.stop_event_data;
    const done = await client.call('continue_debugging', { session_id, thread_id });
    assert.equal(done.status, 'completed', JSON.stringify(done));
});

test('a breakpoint that the user sets is known to the client, hit, and removed again by the client', async () => {
    await window.openFile('orders.js');
    await window.page.locator('.margin-view-overlays .line-numbers', { hasText: /^12$/ }).first().click({ position: { x: -13, y: 8 }, force: true });
    const mine = await until('the client knows it', async () => {
        const { breakpoints } = await client.call('get_breakpoints');
        return breakpoints.find(({ line }) => line === 12);
    });
    assert.equal(mine.source.path, path.join(folder, 'orders.js'));
    const refused = await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 12, condition: 'false' });
    assert.equal(refused.code, 'others_breakpoint', JSON.stringify(refused));
    assert.match(refused.message, /user's breakpoint without a condition already exists there/);
    const stop = await client.call('start_debugging', { configuration_name: 'orders' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    assert.deepEqual(stop.stop_event_data.hit_breakpoint_ids, [mine.id]);
    const { message } = await client.call('remove_breakpoint', { clear_all: true });
    assert.match(message, new RegExp(`Left alone: ${mine.id} \\(the user's, at orders.js:12\\)`));
    await client.call('remove_breakpoint', { breakpoint_id: mine.id });
    await until('the gutter is empty', async () => (await glyphs().count()) === 0);
    const { session_id, thread_id } = stop.stop_event_data;
    const done = await client.call('continue_debugging', { session_id, thread_id });
    assert.equal(done.status, 'completed', JSON.stringify(done));
});

test('a breakpoint of the client goes with its line when the user types above it, and keeps its id', async () => {
    const file_path = 'orders.js';
    const { breakpoint: { id } } = await client.call('set_breakpoint', { file_path, line_number: 6, condition: 'item === "cheese"' });
    const { breakpoint: below } = await client.call('set_breakpoint', { file_path, line_number: 12 });
    const known = async () => {
        const { breakpoints } = await client.call('get_breakpoints');
        return breakpoints.map(({ id, line, condition }) => [id, line, condition ?? '']).sort(([one], [other]) => one - other);
    };
    const at = (...lines) => [[id, lines[0], 'item === "cheese"'], [below.id, lines[1], '']];
    const knows = (what, ...lines) => until(what, async () => JSON.stringify(await known()) === JSON.stringify(at(...lines)));
    await window.openFile(file_path);
    await until('the gutter shows them', async () => (await glyphs().count()) + (await conditional().count()) === 2);
    await window.page.locator('.editor-instance .view-line').first().click();
    await window.page.keyboard.press('Control+Home');
    await window.page.keyboard.press('Enter');
    await knows('both are a line below', 7, 13);
    await window.page.keyboard.press('Control+Z');
    await knows('both are back', 6, 12);
    for (const breakpoint_id of [id, below.id]) {
        const removed = await client.call('remove_breakpoint', { breakpoint_id });
        assert.equal(removed.status, 'success', JSON.stringify(removed));
    }
    await until('the gutter is empty', async () => (await glyphs().count()) + (await conditional().count()) === 0);
});

for (const name of ['wait', 'wait.js']) {
    test(`the user presses stop while the client waits for ${name}: interrupted`, async () => {
        await idle();
        const waiting = client.call('start_debugging', { configuration_name: name });
        await until('it runs', async () => /waiting/.test((await client.call('debug', { action: 'output' })).output));
        await window.press('stop');
        const answer = await waiting;
        assert.equal(answer.status, 'interrupted', JSON.stringify(answer));
        await until('the session is over', () => editor.status().windows[0].debug_sessions.length === 0);
    });
}

test('what a client asks of a stop goes before what VS Code asks, and once', async () => {
    const log = path.join(folder, 'messages.jsonl');
    await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
    const launch = { action: 'launch', program: 'bill.py', arguments: { messagesTo: log }, timeout: 60 };
    const launched = await client.call('debug', launch);
    assert.equal(launched.state, 'stopped', JSON.stringify(launched));
    for (let n = 0; n < 3; n += 1) {
        const begin = fs.readFileSync(log, 'utf8').length;
        const next = await client.call('debug', { action: 'step_over' });
        assert.equal(next.state, 'stopped', JSON.stringify(next));
        const messages = fs.readFileSync(log, 'utf8').slice(begin).trim().split('\n').map((line) => JSON.parse(line));
        const asked = messages.slice(messages.findIndex(({ event }) => event === 'stopped')).filter(({ command }) => command);
        // Of the stop before, VS Code may ask for the rest of the stack at any time.
        const isWhole = ({ command, args }) => command === 'stackTrace' && args.startFrame === 0 && args.levels > 1;
        const threads = asked.findIndex(({ command }) => command === 'threads');
        assert.ok(asked.findIndex(isWhole) < threads || threads === -1, JSON.stringify(asked));
        assert.equal(asked.filter(isWhole).length, 1, JSON.stringify(asked));
    }
    await client.call('debug', { action: 'terminate' });
    await client.clear();
});

test('the user presses continue while the client does not wait', async () => {
    const set = await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
    const stop = await client.call('start_debugging', { configuration_name: 'bill' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    await window.press('continue');
    const { session_id, thread_id } = stop.stop_event_data;
    const next = await until('the next stop', async () => {
        const answer = await client.call('continue_debugging', { session_id, thread_id });
        return answer.status === 'stopped' ? answer : undefined;
    });
    assert.equal(next.stop_event_data.line, 9);
    await client.call('stop_debugging', {});
    await client.call('remove_breakpoint', { breakpoint_id: set.breakpoint.id });
});

test('what the user did to its program is told to the client, once, and to nobody else', async () => {
    const other = await connect(editor, 'python');
    try {
        for (const [name, file, line] of [['bill', 'bill.py', 9], ['orders', 'orders.js', 6]]) {
            await client.call('set_breakpoint', { file_path: file, line_number: line });
            const stop = await client.call('start_debugging', { configuration_name: name });
            assert.deepEqual([stop.status, stop.notice], ['stopped', undefined], JSON.stringify(stop));
            const { session_id, thread_id } = stop.stop_event_data;
            const told = (verb) => `The user ${verb} debug session ${session_id} (${name}).`;
            const moved = async (button, verb) => {
                await window.toolbar().waitFor();
                await window.press(button);
                await until('it is told', async () => (await client.call('get_breakpoints')).notice === told(verb));
                assert.equal((await client.call('get_breakpoints')).notice, undefined, 'once');
            };
            await moved('step-over', 'stepped');
            await moved('continue', 'continued');
            const step = await until('it stands again', async () => {
                const answer = await client.call('step_execution', { session_id, thread_id, step_type: 'over' });
                return answer.status === 'stopped' ? answer : undefined;
            });
            assert.equal(step.notice, undefined, JSON.stringify(step));
            await window.press('stop');
            await until('the session is over', () => editor.status().windows[0].debug_sessions.length === 0);
            const late = await client.call('step_execution', { session_id, thread_id, step_type: 'over' });
            assert.equal(late.notice, told('stopped'), JSON.stringify(late));
            // What the client ends itself, and what ends by itself, is no news.
            for (const isAsked of [true, false]) {
                await idle();
                const again = await client.call('start_debugging', { configuration_name: name });
                assert.deepEqual([again.status, again.notice], ['stopped', undefined], JSON.stringify(again));
                if (isAsked) {
                    await client.call('stop_debugging', {});
                } else {
                    await client.clear();
                    const { session_id, thread_id } = again.stop_event_data;
                    const end = await client.call('continue_debugging', { session_id, thread_id });
                    assert.deepEqual([end.status, end.notice], ['completed', undefined], JSON.stringify(end));
                }
                await until('the session is over', () => editor.status().windows[0].debug_sessions.length === 0);
                await idle();
                assert.equal((await client.call('get_breakpoints')).notice, undefined);
            }
        }
        assert.equal((await other.call('get_breakpoints')).notice, undefined, 'of another client\'s it hears nothing');
    } finally {
        await client.reset();
        await other.close();
    }
});

test('what VS Code would ask the user for is told to the client, which answers it; what it adds counts', async () => {
    const launch = (more = {}) => client.call('debug', { action: 'launch', configuration: 'asks', timeout: 60, ...more });
    for (const name of ['debug', 'debugger']) {
        const refused = await (name === 'debug' ? launch() : client.call('start_debugging', { configuration_name: 'asks' }));
        assert.equal(refused.code, 'needs_input', JSON.stringify(refused));
        assert.match(refused.message, /"asks" asks a person for who \(Who is greeted\?\)/);
    }
    assert.equal(await window.page.locator('.quick-input-widget:visible').count(), 0, 'nobody was asked');
    const { content } = await client.command({
        do: 'call', tool: 'debug',
        arguments: { action: 'launch', configuration: 'asks', timeout: 60, inputs: { who: 'Ada' }, arguments: { env: { MOOD: 'good' } } },
    });
    const output = async () => `${content[0].text}\n${(await client.call('debug', { action: 'output' })).output}`;
    await until('it has printed', async () => (await output()).includes('greets Ada in good mood'));
    await idle();
});

test('the task before a program is run, with those that it depends on, and its failure is told', async () => {
    const built = () => fs.readFileSync(path.join(folder, 'built.txt'), 'utf8');
    for (const [configuration_name, expected] of [['built', 'built\n'], ['built', 'built\nbuilt\n'], ['built deeply', 'built\nbuilt\nbuilt\n']]) {
        const done = await client.call('start_debugging', { configuration_name, timeout: 30 });
        assert.equal(done.status, 'completed', JSON.stringify(done));
        assert.equal(built(), expected, `${configuration_name}: once for each start, before it`);
    }
    const before = built();
    const refused = await client.call('start_debugging', { configuration_name: 'not built', timeout: 30 });
    assert.match(refused.message, /The task "fails" failed with exit code 3/, JSON.stringify(refused));
    assert.equal(built(), before, 'what comes after it is not run');
    assert.equal(await dialogs(), 0, 'nobody is asked whether to debug anyway');
});

test('what cannot be started is said: a type that nothing debugs, a task that fails, a name that is not there', async () => {
    const unheard = await client.call('start_debugging', { configuration_name: 'unheard' });
    assert.equal(unheard.status, 'error');
    assert.match(unheard.message, /unheard-of/);
    const task = await client.call('start_debugging', { configuration_name: 'task', timeout: 30 });
    assert.equal(task.status, 'error', JSON.stringify(task));
    assert.match(task.message, /The task "fails" failed with exit code 3/);
    assert.equal(await dialogs(), 0, 'nobody is asked whether to debug anyway');
    const nobody = await client.call('start_debugging', { configuration_name: 'nobody' });
    assert.equal(nobody.code, 'unknown_configuration', JSON.stringify(nobody));
});

test('a start that is ended before VS Code has come to a session runs nothing', async () => {
    for (const name of ['found', 'ended', 'go']) {
        fs.rmSync(path.join(folder, name), { force: true });
    }
    const waiting = await client.call('start_debugging', { configuration_name: 'given up', timeout: 1 });
    assert.equal(waiting.status, 'timeout', JSON.stringify(waiting));
    const ended = await client.call('stop_debugging', {});
    assert.equal(ended.status, 'success', JSON.stringify(ended));
    // VS Code goes on with it now.
    fs.writeFileSync(path.join(folder, 'found'), '');
    await until('what began has ended', () => fs.existsSync(path.join(folder, 'ended')));
    await idle();
    assert.equal(await dialogs(), 0);
    for (const name of ['found', 'ended']) {
        fs.rmSync(path.join(folder, name), { force: true });
    }
});

test('a program of Node that is ended while js-debug starts it does not run on', async () => {
    const slow = (name) => path.join(folder, 'slow', name);
    fs.mkdirSync(slow(''), { recursive: true });
    // js-debug asks for the version first.
    const waits = `: > '${slow('asked')}'; while [ ! -e '${slow('go')}' ]; do sleep 0.02; done`;
    const script = `#!/bin/sh\nif [ "$1" = --version ]; then ${waits}; else echo $$ > '${slow('pid')}'; fi\nexec '${process.execPath}' "$@"\n`;
    fs.writeFileSync(slow('node'), script, { mode: 0o755 });
    const waiting = await client.call('start_debugging', { configuration_name: 'slow node', timeout: 1 });
    assert.equal(waiting.status, 'timeout', JSON.stringify(waiting));
    await until('js-debug starts it', () => fs.existsSync(slow('asked')));
    const ended = await client.call('stop_debugging', {});
    assert.equal(ended.status, 'success', JSON.stringify(ended));
    fs.writeFileSync(slow('go'), '');
    await until('it has begun', () => fs.existsSync(slow('pid')) && fs.readFileSync(slow('pid'), 'utf8').endsWith('\n'));
    await until('it has ended', () => !isAlive(Number(fs.readFileSync(slow('pid'), 'utf8'))));
    await idle();
    fs.rmSync(slow(''), { recursive: true });
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
    await until('the other has ended as well, by itself', () => running().length === 0);
    await client.clear();
});

test('a compound starts as a whole or not at all, its tasks first, and ends as a whole when somebody ends a part', async () => {
    const refusals = [['one is not built', /The task "fails" failed with exit code 3/], ['one is unheard', /debugs the type unheard-of/], ['one is not there', /gone/], ['none is named', /named in none is named, a compound/]];
    for (const [configuration_name, expected] of refusals) {
        const refused = await client.call('start_debugging', { configuration_name, timeout: 30 });
        assert.match(refused.message, expected, JSON.stringify(refused));
        assert.deepEqual([await dialogs(), running()], [0, []], configuration_name);
    }
    const failed = await client.call('start_debugging', { configuration_name: 'one has no node', timeout: 30 });
    assert.match(JSON.stringify(failed), /nowhere/, JSON.stringify(failed));
    await until('the part that has started is ended', () => running().length === 0);
    assert.equal(await dialogs(), 0);
    const file = path.join(folder, 'built.txt');
    fs.rmSync(file, { force: true });
    await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 12, condition: 'item === "cheese"' });
    const start = async () => {
        const stop = await client.call('start_debugging', { configuration_name: 'all' });
        assert.equal(stop.status, 'stopped', JSON.stringify(stop));
        await until('all parts run', () => running().length === 3);
        return stop.stop_event_data;
    };
    const { session_id, thread_id } = await start();
    assert.equal(fs.readFileSync(file, 'utf8'), 'built\n', 'the task that the compound and a part name is run once');
    const ended = await client.call('continue_debugging', { session_id, thread_id });
    assert.equal(ended.status, 'completed', JSON.stringify(ended));
    await until('one has ended by itself, and no other with it', () => running().length === 2);
    fs.writeFileSync(path.join(folder, 'go'), '');
    await until('none is left', () => running().length === 0);
    const { output } = await client.call('debug', { action: 'output' });
    assert.match(output, /went/);
    fs.rmSync(path.join(folder, 'go'));
    const { session_id: built } = await start();
    const all = running().sort();
    const top = async () => (await client.call('debug', { action: 'stack_trace', session: built })).stackFrames?.[0].id;
    const before = await top();
    await window.press('restart');
    await until('the part stops there again, by the same name', async () => ![undefined, before].includes(await top()));
    assert.deepEqual(running().sort(), all);
    await client.call('stop_debugging', { session_id: running()[0] });
    await until('all have ended', () => running().length === 0);
    await client.clear();
});

test('a part of a compound that begins when the first one has ended is the client\'s as well', async () => {
    const [ended, found] = ['ended', 'found'].map((name) => path.join(folder, name));
    const started = client.call('start_debugging', { configuration_name: 'one is late', timeout: 60 });
    await until('the first part has ended', () => fs.existsSync(ended));
    fs.writeFileSync(found, '');
    const first = await started;
    assert.equal(first.status, 'completed', JSON.stringify(first));
    const [late] = await until('the other part runs', () => running().length === 1 && running());
    const other = await connect(editor, 'python');
    try {
        const named = await other.call('debug', { action: 'stack_trace' });
        assert.match(JSON.stringify(named), /client/, 'it is not everybody\'s');
    } finally {
        await other.close();
    }
    await client.call('stop_debugging', { session_id: late });
    await until('none is left', () => running().length === 0);
    [ended, found].forEach((file) => fs.rmSync(file));
    const dropped = await client.call('start_debugging', { configuration_name: 'one is dropped', timeout: 30 });
    assert.match(JSON.stringify(dropped), /Another part of one is dropped did not start/);
    assert.deepEqual([await dialogs(), running()], [0, []]);
    await idle();
});

test('a program that the person restarts keeps its session, and whoever waits for it goes on waiting', async () => {
    for (const [configuration_name, file_path, line_number] of [['orders', 'orders.js', 6], ['bill', 'bill.py', 9]]) {
        await client.call('set_breakpoint', { file_path, line_number });
        const stop = await client.call('start_debugging', { configuration_name });
        assert.equal(stop.status, 'stopped', JSON.stringify(stop));
        const { session_id } = stop.stop_event_data;
        const top = async () => (await client.call('debug', { action: 'stack_trace', session: session_id })).stackFrames?.[0].id;
        const before = await top();
        await window.press('restart');
        await until('it stops there again, by the same name', async () => ![undefined, before].includes(await top()));
        assert.deepEqual(running(), [session_id]);
        const again = await client.call('continue_debugging', { session_id, thread_id: 0 });
        assert.deepEqual([again.status, again.stop_event_data?.line], ['stopped', line_number], JSON.stringify(again));
        await client.call('debug', { action: 'custom_request', command: 'restart', session: session_id });
        await until('the client has started it once more', () => running().join() === session_id);
        await client.call('stop_debugging', { session_id });
        await until('it has ended', () => running().length === 0);
        await idle();
    }
    await client.clear();
    for (const configuration_name of ['wait.js', 'wait']) {
        const started = await client.call('start_debugging', { configuration_name, timeout: 1 });
        assert.equal(started.status, 'timeout', JSON.stringify(started));
        const [session_id] = running();
        const waiting = client.call('continue_debugging', { session_id, thread_id: 0, timeout: 60 });
        await window.press('restart');
        await until('it is told', async () => (await client.call('get_breakpoints')).notice === `The user restarted debug session ${session_id} (${configuration_name}).`);
        fs.writeFileSync(path.join(folder, 'go'), '');
        const end = await waiting;
        assert.equal(end.status, 'completed', JSON.stringify(end));
        assert.match(end.output, /went/);
        fs.rmSync(path.join(folder, 'go'));
        await idle();
    }
});

test('two clients run the same program: each moves its own, and every answer names its session', async () => {
    const other = await connect(editor, 'python');
    const lines = new Map([[client, 6], [other, 12]]);
    const stops = new Map();
    try {
        for (const [one, line] of lines) {
            await one.call('set_breakpoint', { file_path: 'orders.js', line_number: line });
            const stop = await one.call('start_debugging', { configuration_name: 'orders' });
            assert.deepEqual([stop.status, stop.stop_event_data?.line], ['stopped', line], JSON.stringify(stop));
            stops.set(one, stop.stop_event_data.session_id);
        }
        await until('both sessions are told', () => running().length === 2);
        assert.deepEqual(running().sort(), [...stops.values()].sort());
        for (const [one, session] of stops) {
            const { content } = await one.command({ do: 'call', tool: 'debug', arguments: { action: 'step_over' } });
            assert.ok(content[0].text.includes(session), content[0].text);
        }
        await other.call('debug', { action: 'terminate' });
        await until('one session is left', () => running().join() === stops.get(client));
        const { content } = await client.command({ do: 'call', tool: 'debug', arguments: { action: 'stack_trace' } });
        assert.match(content[0].text, /orders\.js:/, 'it stands where it stood');
    } finally {
        await other.clear();
        await other.close();
        await client.reset();
    }
});

test('the coordinator is killed while a program is stopped: the same client session goes on', async () => {
    await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
    const stop = await client.call('start_debugging', { configuration_name: 'bill' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    const killed = editor.killCoordinator();
    await until('another coordinator runs', () => editor.status().running && editor.status().pid !== killed);
    const { session_id, thread_id } = stop.stop_event_data;
    const next = await until('the next stop', () => client.call('continue_debugging', { session_id, thread_id }));
    assert.equal(next.status, 'stopped', JSON.stringify(next));
    await client.call('stop_debugging', {});
    await client.clear();
});

/** The editor debugs nothing. */
async function idle() {
    await until('no session is left in the editor', async () => (await window.toolbar().count()) === 0);
}

const rebirths = new Map([
    ['the agent was started again', () => editor.baton('restart', editor.status().windows[0].id)],
    // As a person does it: when a page is merely loaded anew, VS Code itself may lose what was set last.
    ['the window was reloaded', () => window.command('Developer: Reload Window')],
]);
for (const [what, happens] of rebirths) {
    test(`a breakpoint of the client is its own after ${what}, and the user's is not`, async () => {
        await window.openFile('orders.js');
        await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6 });
        await window.page.locator('.margin-view-overlays .line-numbers', { hasText: /^12$/ }).first().click({ position: { x: -13, y: 8 }, force: true });
        const lines = async () => (await client.call('get_breakpoints')).breakpoints?.map(({ line }) => line).sort((a, b) => a - b).join();
        await until('both are known', async () => (await lines()) === '6,12');
        const { pid } = editor.status().windows[0];
        await happens();
        // Until it has ended, the old one answers, with numbers that the new one does not know.
        await until('another agent runs', () => ![undefined, pid].includes(editor.status().windows[0]?.pid));
        await window.waitForStatus('live');
        await until('both are known again', async () => (await lines()) === '6,12');
        const { message } = await client.call('remove_breakpoint', { clear_all: true });
        assert.match(message, /Left alone: \d+ \(the user's, at orders\.js:12\)/);
        assert.doesNotMatch(message, /orders\.js:6/);
        await client.clear();
        await until('the gutter is empty', async () => (await glyphs().count()) === 0);
    });
}
