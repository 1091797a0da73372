// Changes that create, move or delete files in a real window: looked at first, made as one edit of VS Code's, and undone
// as one.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { SERVER_S, connect } from './client.mjs';
import { until } from './editor.mjs';
import { stage } from './stage.mjs';

let editor, window, client, folder;

stage(async (start) => {
    const settings = { 'files.autoSave': 'off' };
    editor = await start({ settings, extensions: ['mover'] });
    folder = editor.project('library');
    window = await editor.open(folder, /live/);
    client = await connect(editor, 'typescript', '?toolsets=code,refactor');
}, () => client?.close());

const at = (name) => path.join(folder, name);
const write = (name, text) => fs.writeFileSync(at(name), text);
const onDisk = () =>
    Object.fromEntries(fs.readdirSync(folder).filter((name) => fs.statSync(at(name)).isFile()).map((name) => [name, fs.readFileSync(at(name), 'utf8')]));
const names = (disk) => Object.keys(disk).sort();

/** A preview, which changes nothing, and then the change itself. */
async function make(tool, wish) {
    const before = onDisk();
    const preview = await client.ok(tool, wish);
    assert.deepEqual([preview.applied, onDisk()], [false, before], 'a preview changes nothing');
    const made = await client.ok(tool, { ...wish, apply: preview.token });
    const previewed = preview.data.map(({ difference, ...entry }) => entry);
    assert.deepEqual([made.applied, made.data], [true, previewed]);
    return { changes: made.data, before, after: onDisk() };
}

test('code moves to a new file, and back when the user undoes it', async () => {
    const place = { file_path: 'shop.ts', line: 2 };
    const { data: offers } = await client.ok('lcp_code_action', place);
    const action = offers.find(({ title }) => title === 'Move to a new file');
    assert.ok(action, JSON.stringify(offers));
    assert.equal(action.kind, 'refactor.move.newFile');
    const { changes, before, after } = await make('lcp_code_action', { ...place, action: action.title });
    assert.deepEqual(changes, [
        { file: 'main.ts', lines: [1, 2] },
        { file: 'price.ts', change: 'created', n_lines: 4 },
        { file: 'shop.ts', lines: [1] },
    ]);
    assert.deepEqual(names(after), [...names(before), 'price.ts'].sort());
    assert.match(after['price.ts'], /^\/\/ What a thing costs\.\nexport function price/);
    assert.match(after['main.ts'], /from ["']\.\/price/);
    assert.match(after['shop.ts'], /from ["']\.\/price/);
    const found = await client.ok('lcp_find_references', { symbol_name: 'price', context_file: 'price.ts' });
    const files = new Set(found.data.map(({ file }) => file));
    assert.deepEqual([...files].sort(), ['main.ts', 'price.ts', 'shop.ts'], JSON.stringify(found));

    await window.openFile('shop.ts');
    // Once, in one of the files.
    await window.page.keyboard.press('Control+Z');
    await window.page.locator('.tab.dirty', { hasText: 'main.ts' }).waitFor();
    await until('the new file is gone', () => !('price.ts' in onDisk()));
    await window.command('File: Save All Files');
    await until('everything is as it was', () => JSON.stringify(onDisk()) === JSON.stringify(before));
});

test('an import takes its file along, unsaved text and all', async () => {
    const wish = { symbol_name: 'shop', context_file: 'main.ts', new_name: './store.js' };
    await window.openFile('shop.ts');
    await window.page.keyboard.press('Control+Home');
    await window.page.keyboard.insertText('export const fresh = 1;\n');
    // What was typed comes to the extensions a moment later, and would be a change since the preview.
    await until('it is typed', async () => {
        const { data } = await client.ok('lcp_get_outline', { file_path: 'shop.ts' });
        return data[0].name === 'fresh';
    });
    const { changes, before, after } = await make('lcp_rename', wish);
    assert.deepEqual(changes, [
        { file: 'main.ts', lines: [1] },
        { file: 'store.ts', change: 'renamed', from: 'shop.ts' },
    ]);
    assert.equal('shop.ts' in after, false);
    assert.match(after['main.ts'], /from '\.\/store\.js'/);
    assert.equal(after['store.ts'], before['shop.ts'], 'what was not saved is not saved');
    await window.page.locator('.tab.dirty', { hasText: 'store.ts' }).waitFor();
    const outline = await client.ok('lcp_get_outline', { file_path: 'store.ts' });
    assert.deepEqual(outline.data.map(({ name }) => name), ['fresh', 'price', 'Basket']);
    const found = await client.ok('lcp_find_references', { symbol_name: 'price', context_file: 'main.ts' });
    assert.deepEqual(found.data.map(({ file, line }) => `${file}:${line}`).sort(), ['main.ts:1', 'main.ts:5', 'store.ts:11', 'store.ts:3']);
});

test('a rename of any language moves its file, and is refused when things changed meanwhile', async () => {
    write('old.properties', 'old=1\n');
    const wish = { symbol_name: 'old', context_file: 'old.properties', new_name: 'fresh' };
    const preview = await client.ok('lcp_rename', wish);
    const difference = '1- old=1\n1+ fresh=1';
    assert.deepEqual(preview.data, [
        { file: 'fresh.properties', change: 'renamed', from: 'old.properties', lines: [1], difference },
    ]);
    const refused = async (code) => {
        const before = onDisk();
        const answer = await client.call('lcp_rename', { timeout: SERVER_S, ...wish, apply: preview.token });
        assert.equal(answer.code, code, JSON.stringify(answer));
        assert.deepEqual(onDisk(), before);
    };
    write('fresh.properties', 'other=1\n');
    await refused('file_exists');
    fs.rmSync(at('fresh.properties'));
    write('old.properties', 'old=2\n');
    await refused('changed_meanwhile');
    write('old.properties', 'old=1\n');
    const made = await client.ok('lcp_rename', { ...wish, apply: preview.token });
    assert.equal(made.applied, true);
    const after = onDisk();
    assert.deepEqual([after['fresh.properties'], 'old.properties' in after], ['fresh=1\n', false]);
    const gone = await client.call('lcp_rename', { timeout: SERVER_S, ...wish, apply: preview.token });
    assert.equal(gone.status, 'error', JSON.stringify(gone));
});

test('a file is created with a text and another one deleted', async () => {
    write('gone.properties', 'gone=1\n');
    const wish = { symbol_name: 'gone', context_file: 'gone.properties', new_name: 'other' };
    const { changes, after } = await make('lcp_rename', wish);
    assert.deepEqual(changes, [
        { file: 'gone.properties', change: 'deleted' },
        { file: 'other.properties', change: 'created', n_lines: 1 },
    ]);
    assert.deepEqual([after['other.properties'], 'gone.properties' in after], ['other=ä\n', false]);

    // VS Code does not hand on what a file is created with: better no file than an empty one.
    const filled = { symbol_name: 'other', context_file: 'other.properties', new_name: 'filled' };
    const refused = await client.call('lcp_rename', { timeout: SERVER_S, ...filled });
    assert.equal(refused.code, 'unsupported_edit', JSON.stringify(refused));
    assert.deepEqual(onDisk(), after);
});

test('an edit that does not tell what it does to files is refused', async () => {
    write('shy.properties', 'shy=1\n');
    const wish = { symbol_name: 'shy', context_file: 'shy.properties', new_name: 'hidden' };
    const before = onDisk();
    const refused = await client.call('lcp_rename', { timeout: SERVER_S, ...wish });
    assert.equal(refused.code, 'server_refused', JSON.stringify(refused));
    assert.match(refused.message, /does not tell what the change does to files/);
    assert.deepEqual(onDisk(), before);
    const { after } = await make('lcp_rename', { ...wish, new_name: 'seen' });
    assert.deepEqual([after['seen.properties'], 'shy.properties' in after], ['seen=1\n', false]);
});

test('what the user types while a change is worked out is not written over', async () => {
    // Where nothing is unsaved a text that VS Code has otherwise is changed on disk.
    await window.command('File: Save All Files');
    await until('it is saved', () => onDisk()['store.ts'].includes('fresh'));
    write('typing.properties', 'typing=1\n');
    const wish = { symbol_name: 'typing', context_file: 'typing.properties', new_name: 'typed' };
    const preview = await client.ok('lcp_rename', wish);
    // From now on the provider types.
    write('now', '');
    const before = onDisk();
    const refused = await client.call('lcp_rename', { timeout: SERVER_S, ...wish, apply: preview.token });
    assert.equal(refused.code, 'changed_meanwhile', JSON.stringify(refused));
    assert.deepEqual(onDisk(), before);
    const outline = await client.ok('lcp_read_symbol', { symbol_name: 'typing', file_path: 'typing.properties' });
    assert.match(JSON.stringify(outline.data), /typing=1 meanwhile/);
});

test('a folder gets another name, and a text in it is changed', async () => {
    write('holder.properties', 'holder=1\n');
    fs.mkdirSync(at('box'));
    write('box/in.properties', 'in=1\n');
    write('box/note', 'n\n');
    const wish = { symbol_name: 'holder', context_file: 'holder.properties', new_name: 'folder' };
    const { changes } = await make('lcp_rename', wish);
    assert.deepEqual(changes, [
        { file: 'crate/in.properties', change: 'renamed', from: 'box/in.properties', lines: [1] },
        { file: 'crate', change: 'renamed', from: 'box', files: ['in.properties', 'note'] },
    ]);
    assert.equal(fs.existsSync(at('box')), false);
    assert.equal(fs.readFileSync(at('crate/in.properties'), 'utf8'), 'crate.in=1\n');
    assert.equal(fs.readFileSync(at('crate/note'), 'utf8'), 'n\n');
});

test('a file does not leave the folders of the window', async () => {
    write('stay.properties', 'stay=1\n');
    const wish = { symbol_name: 'stay', context_file: 'stay.properties', new_name: 'away' };
    const refused = await client.call('lcp_rename', { timeout: SERVER_S, ...wish });
    assert.equal(refused.code, 'outside_window', JSON.stringify(refused));
    assert.equal(onDisk()['stay.properties'], 'stay=1\n');
});
