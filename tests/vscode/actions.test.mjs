// Every action of `debug`, every tool of `quick` and `lcp` in a real window, with three debuggers; what came of each is
// the table of docs/debugging.md.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { connect } from './client.mjs';
import { until } from './editor.mjs';
import { Findings } from './findings.mjs';
import { LLDB_DAP, NODE, PYTHON, freePort } from './place.mjs';
import { stage } from './stage.mjs';

/** The same program three times: `price` is called on the line `call`, and its lines are those of `price`. */
const JS = {
    name: 'js-debug', program: 'orders.js', file: 'orders.js', price: [5, 6, 7], call: 12,
    cheese: 'item === "cheese"', quantity: 'quantity', local: /^Local/, printed: 'sum: 32',
    type: 'node', turning: 'turn.js', filters: ['all'],
};
const PY = {
    name: 'debugpy', program: 'bill.py', file: 'bill.py', price: [7, 8, 9], call: 16,
    cheese: 'item == "cheese"', quantity: 'quantity', local: /^Locals/, printed: 'bill: 32',
    type: 'python', turning: 'wait.py', filters: ['raised'],
};
const C = {
    name: 'lldb-dap', program: 'native/orders', file: 'native/orders.c', price: [7, 8, 9], call: 16,
    cheese: 'unit == 7', quantity: 'quantities[idx]', local: /^Locals/, printed: 'sum: 31',
    type: 'lldb-dap', filters: ['cpp_throw'],
};
const LANGUAGES = [JS, PY, C];

const findings = new Findings(LANGUAGES.map(({ name }) => name));
let editor, window, client, folder, tools;
/** Programs that are attached to. */
const programs = [];

stage(
    async (start) => {
        editor = await start({ extensions: ['mini-lldb'], settings: { 'miniLldb.program': LLDB_DAP } });
        folder = editor.project('orders');
        const native = editor.project('native', 'orders/native');
        execFileSync('cc', ['-g', '-O0', '-o', path.join(native, 'orders'), path.join(native, 'orders.c')]);
        window = await editor.open(folder, /live/);
        client = await connect(editor, 'typescript', '?toolsets=debug,quick,lcp');
        tools = await client.tools();
    },
    async () => {
        programs.forEach((program) => program.kill('SIGKILL'));
        await client?.close();
    },
    clear,
);

/** Nothing is debugged, and nothing is set. */
async function clear() {
    await client.reset();
    for (const name of ['price', 'main']) {
        await client.call('debug', { action: 'remove_breakpoint', function: name });
    }
    await client.call('debug', { action: 'custom_request', command: 'setExceptionBreakpoints' });
}

/** How a call is named in the table. */
const rowOf = (action, { command }) => (command === undefined ? `\`${action}\`` : `\`custom_request\` ${command}`);

/** Calls an action that works. */
async function debug({ name }, action, args = {}) {
    // A machine that does much else takes longer to the first stop than a client waits unasked.
    const patience = action === 'launch' ? { timeout: 30 } : {};
    const answer = await client.call('debug', { action, ...patience, ...args });
    assert.equal(answer.success, true, `${action} ${JSON.stringify(args)}: ${JSON.stringify(answer)}`);
    assert.equal(answer.action, action);
    findings.note(rowOf(action, args), name, 'yes');
    findings.note(rowOf(action, {}), name, 'yes');
    return answer;
}

/** Calls an action that does not, and says why. */
async function refused({ name }, action, args, sentence, why) {
    const answer = await client.call('debug', { action, ...args });
    assert.equal(answer.success, false, `${action} ${JSON.stringify(args)}: ${JSON.stringify(answer)}`);
    assert.match(answer.message, sentence);
    if (why !== undefined) {
        findings.note(rowOf(action, args), name, why);
    }
}

/** Calls a tool of the two other sets. */
async function call({ name }, tool, args = {}) {
    const answer = await client.call(tool, args);
    assert.notEqual(answer.status, 'error', `${tool} ${JSON.stringify(args)}: ${JSON.stringify(answer)}`);
    findings.note(`\`${tool}\``, name, 'yes');
    return tool.startsWith('lcp') ? answer.data : Array.isArray(answer.result) ? answer.result : answer;
}

const adapterOf = (language) => (language === C ? { adapter: C.name } : {});
const lineOf = ({ snapshot }) => snapshot.line;
const valueOf = (variables, name) => variables.find((variable) => variable.name === name)?.value;
const condition = (name, language) => findings.note(name, language.name, 'yes');

for (const language of LANGUAGES) {
    const { name, program, file, price, call: at } = language;

    test(`debug, ${name}: from a breakpoint before the start to the end`, async () => {
        // Before there is a session.
        const early = await debug(language, 'set_breakpoint', { file, line: price[2], condition: language.cheese });
        assert.equal(early.breakpoints[0].verified, false);
        const launched = await debug(language, 'launch', { program, ...adapterOf(language), stop_on_entry: true });
        assert.equal(launched.state, 'stopped');
        assert.equal(launched.snapshot.program, path.join(folder, program));
        const { id } = launched.snapshot;
        const { threads } = await debug(language, 'threads');
        assert.equal(threads[0].stopped, true, JSON.stringify(threads));
        assert.equal((await debug(language, 'pause')).snapshot.status, 'stopped');
        await debug(language, 'set_breakpoint', { file, line: at, hit_condition: '== 2' });
        await debug(language, 'set_breakpoint', { file, line: price[1], log_message: 'unit is {unit}' });

        let second = await debug(language, 'continue');
        if (language === C) {
            // It knows plain numbers only, and VS Code hands conditions on as they are.
            assert.equal(await quantityOf(language), '2');
            findings.note('hit count', name, 'no: it ignores operators');
            second = await debug(language, 'continue');
        }
        assert.equal(lineOf(second), at, JSON.stringify(second));
        assert.equal(await quantityOf(language), '1');
        if (language !== C) {
            condition('hit count', language);
        }
        const inside = await debug(language, 'step_in');
        assert.match(inside.snapshot.frameName, /price$/);
        const { stackFrames } = await debug(language, 'stack_trace', { levels: 2 });
        assert.deepEqual(stackFrames.map(({ line }) => line), [price[0], at]);
        assert.equal(stackFrames[0].source.path, path.join(folder, file));
        assert.equal(lineOf(await debug(language, 'step_over')), price[1]);
        const { scopes } = await debug(language, 'scopes');
        const local = scopes.find((scope) => language.local.test(scope.name)).variablesReference;
        const { variables } = await debug(language, 'variables', { scope_id: local });
        assert.equal(valueOf(variables, 'unit'), '4', JSON.stringify(variables));
        await change(language, local);
        const out = await debug(language, 'step_out');
        assert.doesNotMatch(out.snapshot.frameName, /price$/);

        await debug(language, 'remove_breakpoint', { file, line: at });
        const cheese = await debug(language, 'continue');
        assert.equal(lineOf(cheese), price[2]);
        assert.deepEqual(cheese.snapshot.hitBreakpointIds, [early.breakpoints[0].id]);
        condition('condition', language);
        const { sessions } = await debug(language, 'sessions');
        assert.deepEqual(sessions.filter(({ status }) => status !== 'terminated').map((session) => session.id), [id]);
        const ended = await debug(language, 'continue');
        assert.equal(ended.state, 'terminated');
        const { output } = await debug(language, 'output', { since: 0, session: id });
        assert.ok(output.includes(language.printed), output);
        assert.match(output, /unit is 3[^]*unit is 4/);
        condition('log point', language);
        await client.reset();
    });
}

/** The number of things that are ordered. */
async function quantityOf(language) {
    const { evaluation } = await debug(language, 'evaluate', { expression: language.quantity, context: 'watch' });
    return evaluation.result;
}

/** A variable gets another value, and the debugger's other wisdom is asked for. */
async function change(language, local) {
    const wish = { variablesReference: local, name: 'unit', value: '5' };
    const set = await debug(language, 'custom_request', { command: 'setVariable', arguments: wish });
    assert.equal(set.customBody.value, '5');
    const unit = await debug(language, 'evaluate', { expression: 'unit', context: 'watch' });
    assert.equal(unit.evaluation.result, '5');
    const filters = { filters: language.filters };
    const chosen = await debug(language, 'custom_request', { command: 'setExceptionBreakpoints', arguments: filters });
    assert.deepEqual(chosen.exceptionBreakpoints.map(({ verified }) => verified), [true], JSON.stringify(chosen));
    await debug(language, 'custom_request', { command: 'setExceptionBreakpoints' });
}

test('debug, js-debug: memory, sources and frames; what it has not is said', async () => {
    const stop = await stopInPrice(JS);
    const { evaluation } = await debug(JS, 'evaluate', { expression: 'new Uint8Array([1, 2, 3, 4])' });
    const bytes = { memory_reference: evaluation.memoryReference };
    assert.equal((await debug(JS, 'read_memory', { ...bytes, count: 4 })).memoryData, 'AQIDBA==');
    assert.equal((await debug(JS, 'write_memory', { ...bytes, data: 'CQg=' })).bytesWritten, 2);
    assert.equal((await debug(JS, 'read_memory', { ...bytes, count: 4 })).memoryData, 'CQgDBA==');
    await refused(JS, 'write_memory', { memory_reference: '987654', data: 'CQg=' }, /2 bytes at 987654 cannot be written/);
    const { sources, total } = await debug(JS, 'loaded_sources', { count: 500 });
    assert.ok(sources.some((source) => source.path === path.join(folder, 'orders.js')), `${total} sources`);
    await refused(JS, 'modules', {}, /does not support module listings/, 'no: it tells no modules');
    await lacksData(JS);
    await lacksInstructions(JS);
    await refused(JS, 'custom_request', { command: 'stepBack' }, /does not support stepping back/, 'no: it cannot');
    await refused(JS, 'custom_request', { command: 'goto', arguments: { targetId: 1 } }, /does not support jumps/, 'no: it cannot');
    const frames = await debug(JS, 'custom_request', { command: 'restartFrame' });
    assert.equal(lineOf(frames), JS.price[0], JSON.stringify(frames));
    await restart(JS, stop);
});

test('debug, debugpy: modules and jumps; what it has not is said', async () => {
    const stop = await stopInPrice(PY);
    const { modules } = await debug(PY, 'modules', { module_count: 1 });
    assert.equal(modules[0].path, path.join(folder, 'bill.py'));
    await refused(PY, 'loaded_sources', {}, /does not support loaded source listings/, 'no: it tells no sources');
    await refused(PY, 'read_memory', { memory_reference: '1', count: 4 }, /does not support memory reads/, 'no: it reads no memory');
    await refused(PY, 'write_memory', { memory_reference: '1', data: 'CQg=' }, /does not support memory writes/, 'no: it writes no memory');
    await lacksData(PY);
    await lacksInstructions(PY);
    await refused(PY, 'custom_request', { command: 'stepBack' }, /does not support stepping back/, 'no: it cannot');
    await refused(PY, 'custom_request', { command: 'restartFrame' }, /does not support restarting frames/, 'no: it cannot');
    await jump(PY);
    await restart(PY, stop);
});

test('debug, lldb-dap: instructions, data, memory', async () => {
    const stop = await stopInPrice(C);
    const { disassembly } = await debug(C, 'disassemble', { instruction_count: 8 });
    assert.equal(disassembly[0].address.toLowerCase(), stop.snapshot.instructionPointerReference.toLowerCase());
    assert.equal(disassembly[0].location.path, path.join(folder, C.file));
    const sum = disassembly.find(({ instruction }) => instruction.includes('sum'));
    const place = { instruction_reference: sum.address };
    const set = await debug(C, 'set_instruction_breakpoint', place);
    assert.equal(set.instructionBreakpoints[0].verified, true, JSON.stringify(set));
    const there = await debug(C, 'continue');
    assert.equal(there.snapshot.stopReason, 'instruction breakpoint', JSON.stringify(there));
    assert.deepEqual((await debug(C, 'remove_instruction_breakpoint', place)).instructionBreakpoints, []);

    const { scopes } = await debug(C, 'scopes');
    const globals = scopes.find(({ name }) => name === 'Globals').variablesReference;
    const [known] = (await debug(C, 'variables', { scope_id: globals })).variables;
    assert.equal(known.name, 'sum');
    const { dataBreakpointInfo } = await debug(C, 'data_breakpoint_info', { name: 'sum', scope_id: globals });
    const data = { data_id: dataBreakpointInfo.dataId };
    const watched = await debug(C, 'set_data_breakpoint', { ...data, access_type: 'write' });
    assert.equal(watched.dataBreakpoints[0].verified, true, JSON.stringify(watched));
    const written = await debug(C, 'continue');
    assert.match(written.snapshot.stopReason, /data breakpoint/, JSON.stringify(written));
    assert.deepEqual((await debug(C, 'remove_data_breakpoint', data)).dataBreakpoints, []);

    const memory = { memory_reference: known.memoryReference };
    assert.equal((await debug(C, 'read_memory', { ...memory, count: 4 })).memoryData, 'BgAAAA==');
    assert.equal((await debug(C, 'write_memory', { ...memory, data: 'ZAAAAA==' })).bytesWritten, 4);
    const { evaluation } = await debug(C, 'evaluate', { expression: 'sum', context: 'watch' });
    assert.equal(evaluation.result, '100');
    const { modules } = await debug(C, 'modules');
    assert.equal(modules[0].path, path.join(folder, C.program));
    await refused(C, 'loaded_sources', {}, /does not support loaded source listings/, 'no: it tells no sources');
    await refused(C, 'custom_request', { command: 'stepBack' }, /does not support stepping back/, 'no: it cannot');
    await refused(C, 'custom_request', { command: 'restartFrame' }, /does not support restarting frames/, 'no: it cannot');
    await refused(C, 'custom_request', { command: 'goto', arguments: { targetId: 1 } }, /does not support jumps/, 'no: it cannot');
    await restart(C, stop);
});

/** Starts the program, and lets it stop in the first call of `price`. */
async function stopInPrice(language) {
    const { file, price } = language;
    await debug(language, 'set_breakpoint', { file, line: price[0] });
    const stop = await launch(language);
    assert.equal(lineOf(stop), price[0]);
    return stop;
}

/** Starts the program to its first stop. */
async function launch(language, more = {}) {
    const { program } = language;
    const launched = await debug(language, 'launch', { program, ...adapterOf(language), stop_on_entry: false, ...more });
    assert.equal(launched.state, 'stopped', JSON.stringify(launched));
    return launched;
}

async function lacksData(language) {
    const why = 'no: it watches no data';
    await refused(language, 'data_breakpoint_info', { name: 'unit' }, /does not support data breakpoints/, why);
    await refused(language, 'set_data_breakpoint', { data_id: 'x' }, /does not support data breakpoints/, why);
    await refused(language, 'remove_data_breakpoint', { data_id: 'x' }, /There is no breakpoint on data x/, why);
}

async function lacksInstructions(language) {
    const place = { instruction_reference: '0x1' };
    const why = 'no: it knows no instructions';
    await refused(language, 'set_instruction_breakpoint', place, /does not support instruction breakpoints/, why);
    await refused(language, 'remove_instruction_breakpoint', place, /There is no breakpoint on instruction 0x1/, why);
    await refused(language, 'disassemble', { instruction_count: 1 }, /does not support disassembly/, why);
}

/** Back to the line before, without running what lies between. */
async function jump(language) {
    const over = await debug(language, 'step_over');
    const place = { source: { path: path.join(folder, language.file) }, line: language.price[0] };
    const { customBody } = await debug(language, 'custom_request', { command: 'gotoTargets', arguments: place });
    const [target] = customBody.targets;
    const jumped = await debug(language, 'custom_request', { command: 'goto', arguments: { targetId: target.id } });
    assert.deepEqual([lineOf(over), lineOf(jumped)], [language.price[1], language.price[0]]);
}

/** The same program once more, under the same id; then it is ended. */
async function restart(language, stop) {
    const again = await debug(language, 'custom_request', { command: 'restart' });
    assert.deepEqual([lineOf(again), again.snapshot.id], [language.price[0], stop.snapshot.id]);
    const ended = await debug(language, 'terminate');
    assert.equal(ended.snapshot.status, 'terminated');
    await client.reset();
}

test('functions: before, during and after a session, and in the editor as well', async () => {
    const price = { function: 'price' };
    for (const language of [PY, C]) {
        const { functionBreakpoints } = await debug(language, 'set_breakpoint', price);
        assert.match(functionBreakpoints[0].message, /not verified yet/);
        const stop = await launch(language);
        assert.match(stop.snapshot.frameName, /price$/);
        assert.deepEqual(stop.snapshot.hitBreakpointIds, [functionBreakpoints[0].id]);
        assert.deepEqual((await debug(language, 'remove_breakpoint', price)).functionBreakpoints, []);
        const during = await debug(language, 'set_breakpoint', { ...price, condition: language === C ? 'unit == 7' : 'item == "cheese"' });
        assert.equal(during.functionBreakpoints[0].verified, true, JSON.stringify(during));
        await debug(language, 'continue');
        assert.equal(await argumentOf(language), '3');
        condition('function breakpoint', language);
        await debug(language, 'terminate');
        const after = await debug(language, 'set_breakpoint', price);
        assert.equal(after.functionBreakpoints.length, 1, 'it is the same one');
        await debug(language, 'remove_breakpoint', price);
    }
    // js-debug has none: said as soon as it is known.
    await debug(JS, 'set_breakpoint', price);
    await until('the editor lists it', async () => (await listed('price')) === 1);
    await debug(JS, 'launch', { program: JS.program, stop_on_entry: true });
    await refused(JS, 'set_breakpoint', price, /does not support function breakpoints/);
    findings.note('function breakpoint', JS.name, 'no: it has none');
    // What the user takes away is away.
    await window.command('Remove All Breakpoints');
    await until('the editor lists it no more', async () => (await listed('price')) === 0);
    await until('the client is told', async () => {
        const answer = await client.call('debug', { action: 'remove_breakpoint', ...price });
        return /There is no breakpoint on function price/.test(answer.message);
    });
    await debug(JS, 'terminate');
});

/** How many things are ordered, seen from `price`. */
async function argumentOf(language) {
    const { evaluation } = await debug(language, 'evaluate', { expression: 'quantity', context: 'watch' });
    return evaluation.result;
}

/** How many breakpoints with this name VS Code shows. */
async function listed(name) {
    const rows = window.page.locator('.debug-breakpoints .monaco-list-row', { hasText: name });
    if ((await window.page.locator('.debug-breakpoints').count()) === 0) {
        await window.command('View: Show Run and Debug');
    }
    return rows.count();
}

test('exceptions: chosen before and during a session, and left to the user again', async () => {
    const choose = (language, filters) =>
        debug(language, 'custom_request', { command: 'setExceptionBreakpoints', arguments: filters && { filters } });
    const expectCrash = ({ snapshot }, line) => assert.deepEqual([snapshot.stopReason, snapshot.line], ['exception', line]);
    for (const [language, program, line] of [[JS, 'crash.js', 4], [PY, 'crash.py', 5]]) {
        await choose(language, language.filters);
        expectCrash(await debug(language, 'launch', { program, stop_on_entry: false }), line);
        await debug(language, 'terminate');
        await choose(language, []);
        await debug(language, 'launch', { program, stop_on_entry: true });
        await choose(language, language.filters);
        expectCrash(await debug(language, 'continue'), line);
        await choose(language, []);
        assert.equal((await debug(language, 'continue')).state, 'terminated');
        await choose(language);
    }
    // Left to itself, debugpy stops where nobody catches.
    expectCrash(await debug(PY, 'launch', { program: 'crash.py', stop_on_entry: false }), 5);
    await debug(PY, 'terminate');
});

test('attach: by port and by process id, and the program lives on', async () => {
    const port = await freePort();
    const python = start(PYTHON, '-Xfrozen_modules=off', '-m', 'debugpy', '--listen', String(port), '--wait-for-client', path.join(folder, PY.turning));
    await listening(port);
    await debug(PY, 'set_breakpoint', { file: PY.turning, line: 12 });
    const stop = await debug(PY, 'attach', { port });
    assert.equal(lineOf(stop), 12, JSON.stringify(stop));
    await detach(PY, python);
    await client.reset();

    const inspected = await freePort();
    const turning = start(NODE, `--inspect=${inspected}`, path.join(folder, JS.turning));
    await listening(inspected);
    await pauseAttached(JS, turning, { port: inspected, adapter: JS.name });
    const unprepared = start(NODE, path.join(folder, JS.turning));
    await pauseAttached(JS, unprepared, { pid: unprepared.pid });
    const sleeping = start('/bin/sleep', '600');
    await pauseAttached(C, sleeping, { pid: sleeping.pid, adapter: C.name });
});

test('attach and launch: what cannot be started says why', async () => {
    const port = await freePort();
    await refused(PY, 'attach', { port }, /nothing to attach to at 127\.0\.0\.1:\d+/i);
    await refused(PY, 'attach', { pid: 4_000_000 }, /no process 4000000/);
    await refused(C, 'launch', { program: C.program, adapter: 'gdb' }, /No installed extension debugs the type cppdbg/);
    await refused(C, 'launch', { program: C.program, adapter: 'nope' }, /Unknown debug adapter `nope`/);
    await refused(PY, 'launch', { program: 'gone.py' }, /There is no file "gone.py"/);
    for (const action of ['continue', 'stack_trace', 'set_data_breakpoint', 'modules', 'custom_request']) {
        await refused(PY, action, { data_id: 'x', command: 'threads' }, /No active debug session/);
    }
});

/** Starts a program that the tests attach to. */
function start(program, ...args) {
    const child = spawn(program, args, { stdio: 'ignore', cwd: folder });
    programs.push(child);
    return child;
}

/** Attaches while nobody waits for a stop, and stops the program. */
async function pauseAttached(language, child, where) {
    const attaching = debug(language, 'attach', where);
    await until('it is attached', async () => {
        const { sessions } = await debug(language, 'sessions');
        return sessions.some(({ name, status }) => status === 'running' && name.includes(String(where.port ?? where.pid)));
    });
    const paused = await debug(language, 'pause');
    assert.equal(paused.snapshot.status, 'stopped');
    await attaching;
    await detach(language, child);
}

/** Ends the session, and not the program. */
async function detach(language, child) {
    const { snapshot } = await debug(language, 'terminate');
    assert.equal(snapshot.end, 'the debugger was detached; the program keeps running');
    await until('VS Code debugs nothing', async () => (await window.toolbar().count()) === 0);
    assert.equal(child.exitCode, null);
    child.kill('SIGKILL');
}

/** debugpy takes one connection, so that trying whether it listens would be the end of it. */
async function listening(port) {
    const row = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A`;
    await until(`something listens on ${port}`, () => fs.readFileSync('/proc/net/tcp', 'utf8').includes(row));
}

test('two sessions at once: one of each language, and neither disturbs the other', async () => {
    const line = (language) => ({ file: language.file, line: language.price[1] });
    await debug(JS, 'set_breakpoint', line(JS));
    await debug(PY, 'set_breakpoint', line(PY));
    const ids = new Map();
    for (const language of [JS, PY]) {
        ids.set(language, (await launch(language)).snapshot.id);
    }
    const of = (language) => ({ session: ids.get(language) });
    const both = await Promise.all([JS, PY].map((language) => debug(language, 'step_over', of(language))));
    assert.deepEqual(both.map(lineOf), [JS.price[2], PY.price[2]]);
    const total = async (language) => {
        const { stackFrames } = await debug(language, 'stack_trace', of(language));
        assert.equal(stackFrames[0].source.path, path.join(folder, language.file));
        const { evaluation } = await debug(language, 'evaluate', { expression: 'total', ...of(language), frame_id: stackFrames[0].id });
        return evaluation.result;
    };
    assert.deepEqual(await Promise.all([total(JS), total(PY)]), ['6', '6']);
    // One more for one of them, and one less for the other.
    await debug(PY, 'set_breakpoint', { file: PY.file, line: PY.call });
    await debug(JS, 'remove_breakpoint', line(JS));
    assert.equal((await debug(JS, 'continue', of(JS))).state, 'terminated');
    assert.equal(lineOf(await debug(PY, 'continue', of(PY))), PY.call);
    assert.equal(lineOf(await debug(PY, 'continue', of(PY))), PY.price[1]);
    const { output } = await debug(PY, 'output', { since: 0, ...of(PY) });
    assert.doesNotMatch(output, /sum/);
    await debug(PY, 'terminate', of(PY));
    await client.reset();
});

for (const language of LANGUAGES) {
    const { name, program, file, price, call: at } = language;

    test(`quick, ${name}: all tools`, async () => {
        const set = await call(language, 'debug_setBreakpoint', { file, line: price[2], condition: language.cheese });
        assert.equal(set.verified, false);
        const started = await call(language, 'debug_start', { file: program, type: language.type, stopOnEntry: true });
        assert.equal(started.status, 'stopped');
        assert.deepEqual(Object.keys(started).sort(), ['sessionId', 'status']);
        const status = await call(language, 'debug_getStatus');
        assert.deepEqual([status.active, status.paused, status.file], [true, true, path.join(folder, file)]);
        const [known] = await call(language, 'debug_listBreakpoints');
        assert.deepEqual([known.file, known.line, known.condition], [path.join(folder, file), price[2], language.cheese]);
        const over = await call(language, 'debug_stepOver');
        assert.ok(over.line > status.line, JSON.stringify(over));
        await call(language, 'debug_setBreakpoint', { file, line: at });
        const stop = await call(language, 'debug_continue');
        assert.deepEqual([stop.stopped, stop.reason, stop.line], [true, 'breakpoint', at]);
        const inside = await call(language, 'debug_stepInto');
        assert.deepEqual([inside.file, inside.line], [path.join(folder, file), price[0]]);
        const stack = await call(language, 'debug_getStackTrace');
        assert.deepEqual(stack.slice(0, 2).map(({ line }) => line), [price[0], at]);
        const variables = await call(language, 'debug_getVariables', { scope: 'local', frameId: stack[0].frameId });
        assert.equal(valueOf(variables, 'quantity'), '2', JSON.stringify(variables));
        const { result } = await call(language, 'debug_evaluate', { expression: 'quantity * 10' });
        assert.match(result, /20$/);
        assert.deepEqual(await call(language, 'debug_pause'), inside, 'it stands already');
        const out = await call(language, 'debug_stepOut');
        assert.equal(out.file, path.join(folder, file));
        assert.deepEqual(await call(language, 'debug_removeBreakpoint', { file, line: at }), { status: 'removed' });
        assert.equal((await call(language, 'debug_continue')).line, price[2]);
        assert.deepEqual(await call(language, 'debug_stop'), { status: 'terminated' });
        await client.reset();
    });
}

for (const language of [JS, PY]) {
    test(`quick, ${language.name}: a program that runs is paused`, async () => {
        await call(language, 'debug_start', { file: language.turning, stopOnEntry: true });
        const waiting = call(language, 'debug_continue');
        await until('it runs', async () => !(await call(language, 'debug_getStatus')).paused);
        // In code of its interpreter a program is paused later, and the answer says so.
        const paused = await until('it is paused', async () => {
            const place = await call(language, 'debug_pause');
            return place.file && place;
        });
        assert.match(paused.file, new RegExp(`${language.turning}$`), JSON.stringify(paused));
        assert.equal((await waiting).stopped, true);
        await call(language, 'debug_stop');
    });
}

test('lcp: all tools, with every debugger at once', async () => {
    // A step waits 5 s, which a machine that also starts a debugger can take.
    const begun = await Promise.all(LANGUAGES.map(async (language) => {
        const added = await call(language, 'lcp_add_breakpoint', { file: language.file, line: language.price[2], condition: language.cheese });
        const { status, session_id } = await call(language, 'lcp_debug_launch', { program: language.program, args: [] });
        assert.equal(status, 'started');
        return { language, added, session_id };
    }));
    await Promise.all(begun.map(async ({ language, added, session_id }) => {
        const { file, price, call: at } = language;
        const step = (action) => call(language, 'lcp_debug_step', { session_id, action });
        const line = await call(language, 'lcp_add_breakpoint', { file, line: at });
        const stop = await step('continue');
        assert.deepEqual([stop.status, stop.reason, stop.current_file, stop.current_line], ['stopped', 'breakpoint', file, at]);
        assert.equal((await step('stepIn')).current_line, price[0]);
        const next = await step('next');
        assert.equal(next.current_line, price[1]);
        assert.equal(valueOf(next.local_variables, 'unit'), '3');
        const evaluated = await call(language, 'lcp_debug_evaluate', { session_id, expression: 'unit + 4' });
        assert.match(evaluated.value, /7$/);
        assert.equal((await step('stepOut')).current_file, file);
        await call(language, 'lcp_remove_breakpoint', { breakpoint_id: line.breakpoint_id });
        assert.equal((await step('continue')).current_line, price[2]);
        await call(language, 'lcp_remove_breakpoint', { breakpoint_id: added.breakpoint_id });
        const ended = await call(language, 'lcp_debug_stop', { session_id });
        assert.deepEqual(ended, { success: true, message: 'Debug session stopped' });
    }));
});

test('lcp: what does not stop by itself is stopped by force', async () => {
    // js-debug looks for somebody to attach to for 10 s; that can be awaited beside this.
    const [adapter, port, nobody] = [JS.name, await freePort(), /Could not connect to debug target at http:\/\/127\.0\.0\.1:\d+/];
    const gone = refused(JS, 'attach', { port, adapter }, nobody);
    await Promise.all([JS, PY].map(async (language) => {
        const { session_id } = await call(language, 'lcp_debug_launch', { program: language.turning, args: [] });
        const paused = await call(language, 'lcp_debug_step', { session_id, action: 'continue' });
        assert.deepEqual([paused.status, paused.reason, paused.current_file], ['paused', 'timeout', language.turning]);
        await call(language, 'lcp_debug_stop', { session_id });
    }));
    await gone;
    assert.equal(await window.page.locator('.monaco-dialog-box').count(), 0, 'nobody is asked about what a client started');
});

test('everything was called, and the table says what came of it', () => {
    const actions = tools.find(({ name }) => name === 'debug').inputSchema.properties.action.enum;
    const others = tools.map(({ name }) => name).filter((name) => name !== 'debug');
    const points = ['condition', 'hit count', 'log point', 'function breakpoint'];
    const requests = ['setVariable', 'setExceptionBreakpoints', 'restart', 'restartFrame', 'goto', 'stepBack'];
    const rows = [...points, ...[...actions, ...others].map((name) => `\`${name}\``)];
    rows.splice(rows.indexOf('`custom_request`') + 1, 0, ...requests.map((command) => rowOf('custom_request', { command })));
    findings.expectAll(rows);
    findings.check(rows);
});
