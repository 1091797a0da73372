// The life of windows: who is live, as the user sees it in every status bar.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Editor } from './editor.mjs';

let editor, shop, robots, weather;

before(async () => {
    editor = await Editor.start();
    shop = await editor.open(editor.project('shop'));
    robots = await editor.open(editor.project('robots'));
    weather = await editor.open(editor.project('weather'));
});
after(() => editor?.stop());

async function statuses() {
    return Promise.all([shop, robots, weather].map((window) => window.status()));
}

test('the first window is live, later ones yield', async () => {
    assert.deepEqual(await statuses(), ['Baton: live', 'Baton: standby', 'Baton: standby']);
    const status = editor.status();
    assert.deepEqual(
        status.windows.map(({ name, state, kind }) => [name, state, kind]).sort(),
        [['robots', 'standby', 'vscode'], ['shop', 'live', 'vscode'], ['weather', 'standby', 'vscode']],
    );
});

test('a click on take over makes a window live', async () => {
    await robots.page.bringToFront();
    await robots.choose('Take over');
    await robots.waitForStatus('live');
    await shop.waitForStatus('standby');
    await weather.waitForStatus('standby');
});
