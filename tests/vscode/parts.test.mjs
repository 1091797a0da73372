// Parts of the extension by themselves, where a moment counts that no click in a window hits: VS Code is played.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import { until } from './editor.mjs';
import { EXTENSION } from './place.mjs';

const run = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-parts-'));
after(() => fs.rmSync(run, { recursive: true, force: true }));

/** As much of VS Code as the parts touch. */
const VSCODE = `
const nothing = () => ({ dispose() {} });
export class EventEmitter { event = nothing; fire() {} dispose() {} }
export const l10n = { t: (text, ...args) => text.replace(/\\{(\\d)\\}/g, (_, n) => args[n]) };
export const shown = [];
export const window = {
    state: { focused: true },
    onDidChangeWindowState: nothing,
    showInformationMessage: (text) => new Promise((answer) => shown.push({ text, answer })),
    showErrorMessage: (text) => new Promise((answer) => shown.push({ text, answer })),
    visibleTextEditors: [],
    activeTextEditor: undefined,
    tabGroups: { activeTabGroup: { activeTab: undefined } },
    onDidChangeTextEditorSelection: nothing,
    onDidChangeActiveTextEditor: (told) => ((editors.told = told), { dispose() {} }),
};
/** Who is told of the editor that comes to the front. */
export const editors = { told() {} };
/** A file comes to the front. */
export function bring(file) {
    const editor = { document: { uri: { fsPath: file } } };
    window.visibleTextEditors = [editor];
    window.activeTextEditor = editor;
    window.tabGroups.activeTabGroup.activeTab = { input: new TabInputText(file) };
    editors.told(editor);
}
export class TabInputText { constructor(fsPath) { this.uri = { fsPath }; } }
export class TabInputWebview {}
export class DebugStackFrame {}
export const TextEditorSelectionChangeKind = { Keyboard: 1, Mouse: 2 };
export const Disposable = { from: nothing };
export const debug = { activeStackItem: undefined };
export const commands = { run() {}, async executeCommand(name) { commands.run(name); } };
export const workspace = {
    isTrusted: true,
    onDidChangeWorkspaceFolders: nothing,
    onDidGrantWorkspaceTrust: nothing,
    getConfiguration: () => ({ get: (_, value) => value, inspect: () => undefined }),
};
`;
const parts = await bundle();

async function bundle() {
    const { build } = createRequire(path.join(EXTENSION, 'package.json'))('esbuild');
    const vscode = path.join(run, 'vscode.mjs');
    fs.writeFileSync(vscode, VSCODE);
    const names = ['agent', 'binaries', 'focus', 'handover', 'passing', 'problems'].map((name) => `export * from './src/${name}';`);
    const contents = `${names.join('')} export { bring, commands, shown } from 'vscode';`;
    const outfile = path.join(run, 'parts.cjs');
    const options = { bundle: true, platform: 'node', format: 'cjs', alias: { vscode }, outfile, logLevel: 'error' };
    await build({ ...options, stdin: { contents, resolveDir: EXTENSION, loader: 'ts' } });
    return createRequire(outfile)(outfile);
}

/** An agent that only waits for the end of its input, and whose programs are there when `release` is called. */
function agent() {
    const bin = fs.mkdtempSync(path.join(run, 'bin-'));
    fs.writeFileSync(path.join(bin, 'baton-agent'), '#!/bin/sh\nexec cat > /dev/null\n', { mode: 0o755 });
    const copies = [];
    let nStarted = 0;
    const binaries = () => new Promise((resolve) => copies.push(() => resolve(bin)));
    const log = { info() {}, warn() {}, error() {} };
    const serve = () => (nStarted += 1);
    const options = { version: '1', storage: run, binaries, serve, greet: () => undefined };
    const made = new parts.Agent(options, log);
    return { agent: made, release: () => copies.forEach((copied) => copied()), nStarted: () => nStarted };
}

/** The extension with its programs, as an installation in `storage` sees it. */
function context(storage) {
    const extension = path.join(storage, 'extension');
    fs.mkdirSync(path.join(extension, 'bin'), { recursive: true });
    for (const name of ['baton', 'baton-agent']) {
        fs.writeFileSync(path.join(extension, 'bin', name), name);
    }
    return {
        asAbsolutePath: (name) => path.join(extension, name),
        extension: { packageJSON: { version: '1.2.3' } },
        globalStorageUri: { fsPath: storage },
    };
}

test('a click on "Try again" while the programs are copied starts no second agent', async (context) => {
    const { agent: started, release, nStarted } = agent();
    context.after(() => started.end());
    const starts = [started.start(), started.start(), started.restart()];
    release();
    await Promise.all(starts);
    assert.equal(nStarted(), 1);
});

test('a window that is closed while the programs are copied starts no agent', async () => {
    const { agent: started, release, nStarted } = agent();
    const start = started.start();
    await started.end();
    release();
    await start;
    assert.equal(nStarted(), 0);
});

test('an installation with a program missing is made whole, and old ones are removed', async () => {
    delete process.env.BATON_BIN_DIR;
    const storage = fs.mkdtempSync(path.join(run, 'storage-'));
    const of = context(storage);
    const bin = path.join(storage, 'bin');
    const day = 24 * 60 * 60;
    for (const [name, days] of [['1.0.0-00000000', 30], ['1.0.0-00000000.77', 30], ['1.1.0-00000000', 2]]) {
        fs.mkdirSync(path.join(bin, name), { recursive: true });
        const then = Date.now() / 1_000 - days * day;
        fs.utimesSync(path.join(bin, name), then, then);
    }
    const to = await parts.installBinaries(of, false);
    assert.deepEqual(fs.readdirSync(bin).sort(), ['1.1.0-00000000', path.basename(to)]);
    fs.rmSync(path.join(to, 'baton'));
    assert.equal(await parts.installBinaries(of, false), to);
    assert.deepEqual(fs.readdirSync(to).sort(), ['baton', 'baton-agent']);
    assert.deepEqual(fs.readdirSync(bin).sort(), ['1.1.0-00000000', path.basename(to)]);
    // What is used is not old.
    const then = Date.now() / 1_000 - 30 * day;
    fs.utimesSync(to, then, then);
    await parts.installBinaries(of, false);
    assert.ok(Date.now() - fs.statSync(to).mtimeMs < day * 1_000);
});

test('consent that comes when the client waits no more is none, and says so', async (context) => {
    let now = 0;
    context.mock.method(performance, 'now', () => now);
    let ask;
    parts.serveHandover({ onRequest: (_, handler) => (ask = handler) });
    for (const [ms, agreed] of [[1_000, true], [60_000, false]]) {
        const answer = ask({ client: 'an assistant' });
        const { text, answer: click } = parts.shown.pop();
        assert.equal(text, 'an assistant wants to work in this window.');
        now += ms;
        click('Allow');
        assert.deepEqual(await answer, { agreed });
    }
    await until('it is said', () => parts.shown.pop()?.text.startsWith('an assistant is no longer waiting'));
});

test('the name of a client is no link, whatever it is', async () => {
    let ask;
    parts.serveHandover({ onRequest: (_, handler) => (ask = handler) });
    for (const client of ['[Claude](command:workbench.action.quit)', '[a](command:b "c")', `${'x'.repeat(500)}\n[a]\t(b)`]) {
        const answer = ask({ client });
        const { text, answer: click } = parts.shown.pop();
        assert.doesNotMatch(text, /\]\(|\n/, text);
        assert.ok(text.length < 120, text);
        click('Refuse');
        assert.deepEqual(await answer, { agreed: false });
    }
    void parts.warn({ code: 'refused', message: '[more](command:workbench.action.quit)' });
    assert.doesNotMatch(parts.shown.pop().text, /\]\(/);
});

test('a stop of a program that ends before it is shown keeps none of the next from being shown', async (context) => {
    let later = 0;
    const now = performance.now.bind(performance);
    context.mock.method(performance, 'now', () => now() + later);
    parts.followUser();
    const session = { id: '1' };
    const stop = (file) => {
        const focus = new parts.StopFocus(session, true, async () => undefined);
        focus.onReceived({ type: 'event', seq: 1, event: 'stopped' });
        focus.onSent({ type: 'request', seq: 2, command: 'stackTrace' }, false);
        const body = { stackFrames: [{ id: 1, source: { path: file } }] };
        focus.onReceived({ type: 'response', seq: 3, request_seq: 2, body });
    };
    let nAsked = 0;
    const asked = async (file, then) => {
        const before = nAsked;
        parts.commands.run = () => ((nAsked += 1), then());
        stop(file);
        await new Promise((resolve) => setTimeout(resolve, 3_000));
        return nAsked > before;
    };
    assert.ok(await asked('/a.js', () => parts.bring('/a.js')), 'nothing is open');
    assert.ok(await asked('/ends.js', () => undefined), 'it may be shown in place of what we showed');
    assert.ok(await asked('/b.js', () => parts.bring('/b.js')), 'what stands there is ours still');
    later = 60_000;
    parts.bring('/ends.js');
    assert.ok(!(await asked('/c.js', () => parts.bring('/c.js'))), 'a minute later the user opened it');
    parts.bring('/of-the-user.js');
    assert.ok(!(await asked('/c.js', () => parts.bring('/c.js'))), 'the user works there');
});

/** The requests of one session, and what VS Code is asked of them. */
function passingOne() {
    const asked = [];
    const customRequest = (command, args) => new Promise((resolve, reject) => asked.push({ command, args, resolve, reject }));
    return { passing: new parts.Passing({ customRequest }), asked };
}

test('what a stop is asked ahead serves one request each, until something may have changed it', async () => {
    const { passing, asked } = passingOne();
    const stop = () => passing.onReceived({ type: 'event', seq: 0, event: 'stopped', body: { threadId: 5 } });
    const commands = () => asked.map(({ command }) => command);
    const settled = () => new Promise((resolve) => setImmediate(resolve));
    stop();
    assert.deepEqual(commands(), [], 'the user let it run, or it is the first');
    passing.onResume();
    stop();
    assert.deepEqual(commands(), ['stackTrace'], 'at once: VS Code hears of the stop behind it');
    asked[0].resolve({ stackFrames: [{ id: 7 }, { id: 8 }] });
    await settled();
    const scopes = [{ variablesReference: 1, presentationHint: 'locals' }, { variablesReference: 2, expensive: true }, { variablesReference: 3 }];
    asked[1].resolve({ scopes });
    await settled();
    assert.deepEqual(asked.slice(1).map(({ command, args }) => [command, args]), [['scopes', { frameId: 7 }], ['variables', { variablesReference: 1 }]]);

    const stack = { startFrame: 0, threadId: 5, levels: 20 };
    assert.equal((await passing.send('stackTrace', stack)).stackFrames.length, 2);
    assert.deepEqual(await passing.send('scopes', { frameId: 7 }), { scopes });
    assert.equal(asked.length, 3);
    void passing.send('stackTrace', stack);
    assert.deepEqual(commands().slice(3), ['stackTrace'], 'a second time it is asked again');
    for (const [seq, command] of ['threads', 'setVariable'].entries()) {
        passing.onSent({ type: 'request', seq, command, arguments: {} });
    }
    void passing.send('variables', { variablesReference: 1 });
    assert.deepEqual(commands().slice(4), ['variables'], 'somebody set one');

    passing.onResume();
    stop();
    asked[5].reject(new Error('gone'));
    await assert.rejects(passing.send('stackTrace', stack), /gone/, 'a refusal is for whom asks');
    stop();
    assert.equal(asked.length, 6, 'each lets it run once');
});

test('a request is answered as soon as its answer passes, one of VS Code\'s own serves it, and a refusal is told', async () => {
    const { passing, asked } = passingOne();
    const pass = (seq, command, args) => passing.onSent({ type: 'request', seq, command, arguments: args });
    const answer = (request_seq, body, success = true) => passing.onReceived({ type: 'response', seq: 0, request_seq, success, body });
    const scopes = passing.send('scopes', { frameId: 1 });
    assert.equal(pass(1, 'scopes', { frameId: 2 }), false, 'of another frame');
    assert.equal(pass(2, 'scopes', { frameId: 1 }), true);
    assert.equal(pass(3, 'scopes', { frameId: 1 }), false, 'it has passed already');
    answer(1, 'of another');
    answer(2, 'ours');
    assert.equal(await scopes, 'ours', 'VS Code has not answered yet');
    const refused = passing.send('variables', { variablesReference: 9 });
    pass(4, 'variables', { variablesReference: 9 });
    answer(4, undefined, false);
    asked.at(-1).reject(new Error('gone'));
    await assert.rejects(refused, /gone/);
    const threads = passing.send('threads', undefined);
    let isIdle = false;
    const idle = passing.idle().then(() => (isIdle = true));
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.ok(!isIdle, 'one is on its way');
    asked.at(-1).resolve('by VS Code');
    assert.equal(await threads, 'by VS Code', 'its answer did not pass');
    await idle;
});
