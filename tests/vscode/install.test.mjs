// The package itself: installed into a fresh VS Code, with the programs it brings, and nothing configured.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { connect } from './client.mjs';
import { VSIX } from './place.mjs';
import { stage } from './stage.mjs';

let editor, window;

stage(async (start) => {
    assert.ok(VSIX && fs.existsSync(VSIX), '`cargo xtask test windows` makes the package and names it in BATON_TEST_VSIX');
    editor = await start({ vsix: VSIX });
    window = await editor.open(editor.project('orders'), /live/);
});

test('the programs run from a versioned folder outside the extension', () => {
    const [{ pid }] = editor.status().windows;
    const program = fs.readlinkSync(`/proc/${pid}/exe`);
    assert.match(program, /globalStorage\/baton\.baton\/bin\/0\.1\.0-[0-9a-f]{8}\/baton-agent$/);
});

test('a client debugs at once', async () => {
    const client = await connect(editor);
    await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6 });
    const stop = await client.call('start_debugging', { configuration_name: 'orders' });
    assert.equal(stop.status, 'stopped', JSON.stringify(stop));
    await client.call('stop_debugging', {});
    await client.close();
});

test('without the right to run the agent the user gets one sentence and a button', async () => {
    const folder = path.join(editor.run, 'user/User/globalStorage/baton.baton/bin');
    for (const version of fs.readdirSync(folder)) {
        fs.chmodSync(path.join(folder, version, 'baton-agent'), 0o644);
    }
    process.kill(editor.status().windows[0].pid, 'SIGKILL');
    await window.waitForStatus('error', 20_000);
    const toast = window.page.locator('.notification-toast', { hasText: "Can't start Baton's agent" }).first();
    await toast.waitFor({ timeout: 10_000 });
    assert.match(await toast.innerText(), /Show logs/);
});
