// Measures what users feel, in real windows, and takes the pictures of docs/images: `node measure.mjs [PICTURES]`.

import fs from 'node:fs';
import path from 'node:path';

import { connect } from './client.mjs';
import { Editor, until } from './editor.mjs';

const N_TAKEOVERS = 10;
const pictures = process.argv[2];
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const say = (what, values, unit = 'ms') => {
    const list = [...values].sort((a, b) => a - b);
    console.log(`${what}: median ${median(list).toFixed(0)} ${unit}, max ${list.at(-1).toFixed(0)} ${unit} (n = ${list.length})`);
};

const editor = await Editor.start();
try {
    const registered = [];
    const windows = [];
    for (const name of ['orders', 'shop', 'robots']) {
        const folder = editor.project(name);
        const window = await editor.open(folder, null);
        const readyAt = Date.now();
        await window.waitForStatus(/^Baton: (live|standby)/, 60_000);
        registered.push(Date.now() - readyAt);
        windows.push(window);
    }
    say('workbench shown to this window registered (VS Code starts its extension host meanwhile)', registered);
    const [orders, shop] = windows;

    const takeovers = [];
    for (let n = 0; n < N_TAKEOVERS; n += 1) {
        const [to, from] = n % 2 === 0 ? [shop, orders] : [orders, shop];
        await to.page.bringToFront();
        await to.statusItem.click();
        const row = to.page.locator('.quick-input-widget .monaco-list-row', { hasText: 'Take over' }).first();
        await row.waitFor();
        const [box, at] = [await row.boundingBox(), Date.now()];
        await to.page.mouse.click(box.x + 40, box.y + box.height / 2);
        await Promise.all([to.waitForStatus('live'), from.waitForStatus('standby')]);
        takeovers.push(Date.now() - at);
    }
    say('click on "take over" to both status bars', takeovers);

    const logs = fs.readdirSync(path.join(editor.run, 'user/logs'), { recursive: true });
    const texts = logs.filter((file) => file.endsWith('Baton.log')).map((file) => fs.readFileSync(path.join(editor.run, 'user/logs', file), 'utf8'));
    const activations = texts.flatMap((text) => [...text.matchAll(/activated in ([\d.]+) ms/g)].map(([, ms]) => Number(ms)));
    if (activations.length > 0) {
        say('activation', activations);
    }

    const client = await connect(editor);
    await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6 });
    const [starts, steps] = [[], []];
    for (let n = 0; n < 6; n += 1) {
        const at = performance.now();
        const stop = await client.call('start_debugging', { configuration_name: 'orders' });
        starts.push(performance.now() - at);
        const { session_id, thread_id } = stop.stop_event_data;
        for (let step = 0; step < 2; step += 1) {
            const at = performance.now();
            await client.call('step_execution', { session_id, thread_id, step_type: 'over' });
            steps.push(performance.now() - at);
        }
        if (n === 5 && pictures) {
            await until('the editor shows it', () => orders.page.locator('.debug-top-stack-frame-line').count());
            await orders.screenshot(path.join(pictures, 'debugging.png'));
        }
        await client.call('stop_debugging', { session_id });
        await until('the editor is idle', async () => (await orders.page.locator('.debug-toolbar:visible').count()) === 0);
    }
    say('start_debugging to the first stop, Node', starts);
    say('step with its stop event, Node', steps);
    await client.close();

    if (pictures) {
        await shop.screenshot(path.join(pictures, 'standby.png'));
        await orders.page.bringToFront();
        await orders.statusItem.click();
        await orders.page.locator('.quick-input-widget .monaco-list-row').first().waitFor();
        await orders.page.screenshot({ path: path.join(pictures, 'panel.png') });
    }
} finally {
    await editor.stop();
}
