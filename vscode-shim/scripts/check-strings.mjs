// Every text a user sees is translated, and no translation is left over.

import fs from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const read = (name) => fs.readFileSync(path.join(root, name), 'utf8');
const json = (name) => JSON.parse(read(name));
const problems = [];

/** Texts handed to `l10n.t`, and texts handed to VS Code without it. */
function textsOf(source, name) {
    const texts = [];
    for (const match of source.matchAll(/l10n\.t\(\s*'((?:[^'\\]|\\.)*)'/g)) {
        texts.push(match[1].replace(/\\'/g, "'"));
    }
    // What the agent says is a key already.
    const calls = source.matchAll(/l10n\.t\((?!message, )/g);
    if ([...calls].length !== texts.length) {
        problems.push(`${name}: l10n.t takes a literal in single quotes`);
    }
    for (const match of source.matchAll(/(?:show(?:Information|Warning|Error)Message|setStatusBarMessage)\(\s*(?:['"]|`(?!Baton: \$\{))/g)) {
        problems.push(`${name}: a message without l10n.t at ${match.index}`);
    }
    for (const match of source.matchAll(/\b(?:title|label|description|detail|placeHolder|prompt): '([^']+)'/g)) {
        // Names are the same in every language.
        if (!['HTTP', 'stdio', 'Baton'].includes(match[1])) {
            problems.push(`${name}: "${match[1]}" without l10n.t`);
        }
    }
    return texts;
}

const used = new Set();
for (const file of fs.readdirSync(path.join(root, 'src')).filter((file) => file !== 'protocol.ts')) {
    textsOf(read(`src/${file}`), file).forEach((text) => used.add(text));
}
/** The agent's sentences: a table of codes and texts. */
const SENTENCES = /\(\s*"\w+",\s*"([^"]+)",?\s*\)/g;
const table = read('../window-agent/src/desk/sentences.rs').split('];')[0];
[...table.matchAll(SENTENCES)].forEach(([, text]) => used.add(text));

const bundle = json('l10n/bundle.l10n.zh-cn.json');
for (const text of used) {
    if (!(text in bundle)) {
        problems.push(`not translated: ${JSON.stringify(text)}`);
    }
}
for (const [text, translation] of Object.entries(bundle)) {
    if (!used.has(text)) {
        problems.push(`left over: ${JSON.stringify(text)}`);
    }
    const places = (of) => [...of.matchAll(/\{\d\}/g)].map(String).sort().join();
    if (places(text) !== places(translation)) {
        problems.push(`other places in the translation of ${JSON.stringify(text)}`);
    }
}
const named = new Set([...read('package.json').matchAll(/"%([^%"]+)%"/g)].map(([, name]) => name));
for (const file of ['package.nls.json', 'package.nls.zh-cn.json']) {
    const names = new Set(Object.keys(json(file)));
    named.forEach((name) => names.has(name) || problems.push(`${file} lacks ${name}`));
    names.forEach((name) => named.has(name) || problems.push(`${file} has ${name}, which nobody names`));
}
if (problems.length > 0) {
    console.error(problems.join('\n'));
    process.exit(1);
}
console.log(`${used.size + named.size} texts in two languages`);
