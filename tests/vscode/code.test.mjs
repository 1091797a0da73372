// The code tools in a real window: TypeScript and JavaScript by VS Code itself, texts that are not saved included, and
// a language that VS Code knows nothing of by a server of our own.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { SERVER_S, connect } from './client.mjs';
import { until } from './editor.mjs';
import { CACHE } from './place.mjs';
import { stage } from './stage.mjs';

let editor, window, client, folder;

stage(async (start) => {
    // In a browser VS Code saves by itself.
    const settings = { 'files.autoSave': 'off' };
    editor = await start({ settings, env: { BATON_SERVERS: path.join(CACHE, 'servers') } });
    folder = editor.project('library');
    window = await editor.open(folder, /live/);
    client = await connect(editor, 'typescript', '?toolsets=code,refactor');
}, () => client?.close());

const onDisk = (name) => fs.readFileSync(path.join(folder, name), 'utf8');
const names = (symbols) => symbols.map(({ name }) => name);
const places = ({ data }) => data.map(({ file, line }) => `${file}:${line}`);

/** Writes at the start of a file that is shown, and does not save. */
async function write(file, text) {
    await window.openFile(file);
    await window.page.keyboard.press('Control+Home');
    await window.page.keyboard.insertText(text);
    await window.page.locator('.tab.dirty', { hasText: file }).waitFor();
}

test('TypeScript: outline, a symbol, references, definition, hover, callers, symbols by name', async () => {
    const outline = await client.ok('lcp_get_outline', { file_path: 'shop.ts' });
    assert.equal(outline.source, 'vscode');
    assert.deepEqual(names(outline.data), ['price', 'Basket']);
    assert.deepEqual(outline.data[0].range.start, { line: 2, character: 0 });
    const basket = outline.data.find(({ name }) => name === 'Basket');
    assert.equal(basket.kind, 'class');
    assert.deepEqual(names(basket.children).sort(), ['add', 'sum', 'total']);

    const read = await client.ok('lcp_read_symbol', { file_path: 'shop.ts', symbol_name: 'price' });
    assert.match(read.data, /^\/\/ What a thing costs\.\nexport function price[^]*\* 3;\n}$/);

    const wanted = { symbol_name: 'price', context_file: 'shop.ts' };
    const found = await client.ok('lcp_find_references', wanted);
    assert.deepEqual(places(found), ['shop.ts:2', 'shop.ts:10', 'main.ts:1', 'main.ts:5']);
    const uses = await client.ok('lcp_find_references', { ...wanted, include_declaration: false });
    assert.deepEqual(places(uses), ['shop.ts:10', 'main.ts:1', 'main.ts:5']);

    const from = { symbol_name: 'price', context_file: 'main.ts' };
    assert.deepEqual(places(await client.ok('lcp_navigate', { to: 'definition', ...from })), ['shop.ts:2']);
    assert.match((await client.ok('lcp_navigate', { to: 'hover', ...from })).data, /price\(item: string\): number/);
    const callers = await client.ok('lcp_navigate', { to: 'callers', ...wanted });
    assert.deepEqual(names(callers.data).sort(), ['add', 'main.ts'], JSON.stringify(callers));
    const callees = await client.ok('lcp_navigate', { to: 'callees', symbol_name: 'Basket.add', context_file: 'shop.ts' });
    assert.deepEqual(names(callees.data), ['price']);
    const symbols = await client.ok('lcp_navigate', { to: 'symbols', symbol_name: 'Basket' });
    assert.ok(places(symbols).includes('shop.ts:6'), JSON.stringify(symbols));
});

test('JavaScript: outline, references, an error before and after a write to disk', async () => {
    const outline = await client.ok('lcp_get_outline', { file_path: 'list.js' });
    assert.equal(outline.source, 'vscode');
    assert.deepEqual(names(outline.data), ['listed', 'shown']);
    const found = await client.ok('lcp_find_references', { symbol_name: 'listed', context_file: 'list.js' });
    assert.deepEqual(places(found), ['list.js:2', 'list.js:6']);
    const problems = async () => {
        const { data, source } = await client.ok('lcp_get_diagnostics', { file_path: 'list.js', severity: 'error' });
        assert.equal(source, 'vscode');
        return data.map(({ message }) => message);
    };
    await window.openFile('list.js');
    const text = onDisk('list.js');
    // TypeScript has an opinion about the parameter, too.
    const before = await problems();
    fs.writeFileSync(path.join(folder, 'list.js'), `${text}listed(nothing);\n`);
    assert.deepEqual((await problems()).filter((message) => !before.includes(message)), ["Cannot find name 'nothing'."]);
    fs.writeFileSync(path.join(folder, 'list.js'), text);
    assert.deepEqual(await problems(), before);
});

test('a file written to disk a moment ago is answered for as it is', async () => {
    const file = path.join(folder, 'late.ts');
    for (const name of ['first', 'second', 'third']) {
        fs.writeFileSync(file, `export function ${name}(): void {}\n`);
        const outline = await client.ok('lcp_get_outline', { file_path: 'late.ts' });
        assert.deepEqual([names(outline.data), outline.freshness], [[name], 'settled']);
    }
    fs.rmSync(file);
});

test('what was written to disk a moment ago counts, in whichever file it was', async () => {
    const file = path.join(folder, 'more.ts');
    for (const n of [1, 3, 2]) {
        const uses = Array.from({ length: n }, (_, at) => `price('${at}');\n`).join('');
        fs.writeFileSync(file, `import { price } from './shop.js';\n${uses}`);
        const found = await client.ok('lcp_find_references', { symbol_name: 'price', context_file: 'shop.ts' });
        const there = places(found).filter((place) => place.startsWith('more.ts'));
        assert.equal(there.length, n + 1, JSON.stringify(found));
    }
    fs.rmSync(file);
    await until('VS Code hears that it is gone', async () => {
        const found = await client.ok('lcp_find_references', { symbol_name: 'price', context_file: 'shop.ts' });
        return !places(found).some((place) => place.startsWith('more.ts'));
    });
});

test('a text that is not saved is what the tools see, and a rename goes through it', async () => {
    const saved = onDisk('shop.ts');
    await write('shop.ts', 'export const fresh = () => price("new");\n');
    const outline = await client.ok('lcp_get_outline', { file_path: 'shop.ts' });
    assert.deepEqual(names(outline.data), ['fresh', 'price', 'Basket']);
    const read = await client.ok('lcp_read_symbol', { file_path: 'shop.ts', symbol_name: 'fresh' });
    assert.equal(read.data, 'export const fresh = () => price("new");');
    const found = await client.ok('lcp_find_references', { symbol_name: 'price', context_file: 'main.ts' });
    assert.deepEqual(places(found).sort(), ['main.ts:1', 'main.ts:5', 'shop.ts:1', 'shop.ts:11', 'shop.ts:3']);
    const { code_snippet } = found.data.find(({ file, line }) => file === 'shop.ts' && line === 11);
    assert.equal(code_snippet, 'this.sum += price(item);');
    assert.equal(onDisk('shop.ts'), saved, 'reading saves nothing');

    const wish = { symbol_name: 'price', context_file: 'shop.ts', new_name: 'cost' };
    const preview = await client.ok('lcp_rename', wish);
    const files = preview.data.map(({ file, lines }) => ({ file, lines }));
    assert.deepEqual(files, [{ file: 'main.ts', lines: [1, 5] }, { file: 'shop.ts', lines: [1, 3, 11] }]);
    assert.match(preview.data[1].difference, /^1- export const fresh = \(\) => price\("new"\);\n1\+ /);
    assert.equal(onDisk('main.ts').includes('cost'), false, 'a preview changes nothing');
    const renamed = await client.ok('lcp_rename', { ...wish, apply: preview.token });
    assert.equal(renamed.applied, true);
    // What was saved is saved; what was not is as its user left it, but for the name.
    assert.match(onDisk('main.ts'), /import { Basket, cost } from/);
    assert.equal(onDisk('shop.ts'), saved);
    const after = await client.ok('lcp_get_outline', { file_path: 'shop.ts' });
    assert.deepEqual(names(after.data), ['fresh', 'cost', 'Basket']);

    const edit = { old_text: 'cost("new")', new_text: 'cost("newer")' };
    await client.ok('lcp_apply_edit', { file_path: 'shop.ts', edits: [edit] });
    const edited = await client.ok('lcp_read_symbol', { file_path: 'shop.ts', symbol_name: 'fresh' });
    assert.match(edited.data, /"newer"/);
    assert.equal(onDisk('shop.ts'), saved);
    // Nobody has changes in the other file: an edit is on disk at once.
    await client.ok('lcp_apply_edit', { file_path: 'main.ts', edits: [{ old_text: "'cheese'", new_text: "'bread'" }] });
    assert.match(onDisk('main.ts'), /cost\('bread'\)/);
    await window.command('File: Save All Files');
    await until('the file is saved', () => onDisk('shop.ts').includes('newer'));
});

test('an edit that is made against an earlier text is refused, saved or not', async () => {
    const saved = onDisk('list.js');
    const hash = async () => (await client.ok('lcp_get_outline', { file_path: 'list.js' })).hash;
    const edit = (against) => client.call('lcp_apply_edit', {
        file_path: 'list.js', hash: against, edits: [{ start_line: 1, end_line: 0, new_text: '// made\n' }], timeout: SERVER_S,
    });
    const first = await hash();
    await write('list.js', 'let typed;\n');
    const refused = await edit(first);
    assert.equal(refused.code, 'changed_meanwhile', JSON.stringify(refused));
    const made = await edit(await hash());
    assert.ok(made.success, JSON.stringify(made));
    assert.equal(onDisk('list.js'), saved, 'what the user has not saved stays so');
    await window.command('File: Save All Files');
    await until('the file is saved', () => onDisk('list.js') === `// made\nlet typed;\n${saved}`);
});

test('completions, and a quick fix that is looked at before it is made', async () => {
    const { data } = await client.ok('lcp_complete', { file_path: 'main.ts', line: 4, column: 8 });
    assert.deepEqual(names(data).sort(), ['add', 'total']);
    assert.equal(data.find(({ name }) => name === 'add').kind, 'method');

    const text = onDisk('needs.ts');
    await window.openFile('needs.ts');
    const { data: problems } = await client.ok('lcp_get_diagnostics', { file_path: 'needs.ts' });
    assert.match(problems[0].message, /Basket/);
    const place = { file_path: 'needs.ts', line: 1, kind: 'quickfix' };
    const offers = await client.ok('lcp_code_action', place);
    const action = offers.data.find(({ title }) => /import/i.test(title))?.title;
    assert.ok(action, JSON.stringify(offers));
    const preview = await client.ok('lcp_code_action', { ...place, action });
    assert.deepEqual([preview.data.map(({ file }) => file), onDisk('needs.ts')], [['needs.ts'], text]);
    await client.ok('lcp_code_action', { ...place, action, apply: preview.token });
    assert.match(onDisk('needs.ts'), /import { Basket } from ["']\.\/shop/);
});

test('an extension that VS Code has for a language, and that offers nothing, is told as one that may be starting', async () => {
    fs.writeFileSync(path.join(folder, 'page.php'), '<?php echo 1;\n');
    const outline = await client.ok('lcp_get_outline', { file_path: 'page.php' });
    assert.deepEqual([outline.source, outline.data], ['text_search', []]);
    assert.match(outline.note, /^This is a text search: the extensions that VS Code has for this language have not responded yet; try again/);
    fs.rmSync(path.join(folder, 'page.php'));
});

test('a language that VS Code has nothing for is served by a server of our own, unsaved or not', async () => {
    const outline = await client.ok('lcp_get_outline', { file_path: 'tool.py' });
    assert.equal(outline.source, 'ty');
    await write('tool.py', 'def fresh():\n    return weigh("b")\n');
    const found = await client.ok('lcp_find_references', { symbol_name: 'weigh', context_file: 'tool.py' });
    assert.equal(found.source, 'ty');
    const lines = places(found);
    assert.ok(lines.includes('tool.py:2'), JSON.stringify(found));
    assert.equal(lines.length, 3);
    assert.equal(onDisk('tool.py').includes('fresh'), false);
});
