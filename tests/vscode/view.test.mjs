// The view in the activity bar, and the walkthrough.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from './client.mjs';
import { until } from './editor.mjs';
import { stage } from './stage.mjs';

/** What the client calls itself. */
const NAME = 'tests-sdk-1';

let editor, window, other, client;

stage(
    async (start) => {
        editor = await start();
        window = await editor.open(editor.project('orders'), /live/);
        other = await editor.open(editor.project('robots'), /standby/);
        client = await connect(editor);
        await window.command('View: Show Baton');
    },
    () => client?.close(),
    () => client.reset(),
);

const view = () => window.page.locator('.pane-body .monaco-list');
const row = (text) => view().locator('.monaco-list-row', { hasText: text }).first();

/** Label and description of each row. */
function rows() {
    return view().locator('.monaco-list-row').evaluateAll((found) => {
        const parts = (row) => [...row.querySelectorAll('.label-name, .label-description')].map((part) => part.textContent.trim());
        return found.map((row) => parts(row).filter(Boolean).join(' ')).filter(Boolean);
    });
}

/** The view says so within a second or two. */
function shows(what, expected) {
    return until(`the view shows ${what}`, async () => JSON.stringify(await rows()) === JSON.stringify(expected), 10_000, rows);
}

/** Presses a button of a row until it has done its work: a click on a row that is drawn anew in that moment is lost, as
 *  it is to a person. */
async function press(text, title, isDone) {
    await window.page.bringToFront();
    await until(`${title} of ${text} does its work`, async () => {
        if (!(await isDone())) {
            // Buttons are there while the mouse is over the row.
            await row(text).hover({ timeout: 2_000 });
            await row(text).locator(`.action-label[aria-label^="${title}"]`).click({ timeout: 2_000 });
            await until('it is done', isDone, 3_000);
        }
        return true;
    });
}

/** Whether the bar of a window says that. */
const says = (which, word) => async () => new RegExp(`^Baton[:：] ?${word}$`).test(await which.status());

test('the view shows all windows, which one is live, and what a client does in this one', async () => {
    const connect = 'Connect an AI client... none has called yet';
    await shows('both windows, and what comes next', ['orders live, this window', 'robots standby', connect]);
    await window.page.bringToFront();
    await row(connect.split('...')[0]).click();
    await window.page.locator('.quick-input-widget .monaco-list-row', { hasText: 'Claude Code' }).first().waitFor({ timeout: 10_000 });
    await window.page.keyboard.press('Escape');
    const { breakpoint } = await client.call('set_breakpoint', { file_path: 'orders.js', line_number: 6, condition: 'item === "cheese"' });
    const stop = await client.call('start_debugging', { configuration_name: 'orders' });
    const { session_id, thread_id } = stop.stop_event_data;
    const clients = ['Clients of this window', `${NAME} called just now`];
    const point = `orders.js:6 item === "cheese", ${NAME}`;
    await shows('the session and the breakpoint', ['orders live, this window', `orders stopped (${session_id})`, point, 'robots standby', ...clients]);
    await window.page.bringToFront();
    await row('orders.js:6').click();
    await window.page.locator('.tab.active', { hasText: 'orders.js' }).waitFor();
    await press('orders.js:6', 'Remove Breakpoint', async () => (await row('orders.js:6').count()) === 0);
    await shows('that the breakpoint is gone', ['orders live, this window', `orders stopped (${session_id})`, 'robots standby', ...clients]);
    const { breakpoints } = await client.call('get_breakpoints');
    assert.ok(!breakpoints.some(({ id }) => id === breakpoint.id));
    await client.call('continue_debugging', { session_id, thread_id });
    await shows('that the session is over', ['orders live, this window', 'robots standby', ...clients]);
});

test('a window is taken over to, stopped and restarted in the view', async () => {
    // What follows tells of clients, who come and go.
    const windows = async () => (await rows()).slice(0, 2);
    const show = (what, expected) => until(`the view shows ${what}`, async () => JSON.stringify(await windows()) === JSON.stringify(expected), 10_000, rows);
    await press('robots', 'Let This Window Answer', says(other, 'live'));
    await window.waitForStatus('standby');
    await show('who is live', ['robots live', 'orders standby, this window']);
    const { pid } = editor.known(other);
    await press('robots', 'Restart', async () => editor.known(other) && editor.known(other).pid !== pid);
    await other.waitForStatus('live');
    await press('robots', 'Stop', says(other, 'off'));
    await show('that it is off', ['orders standby, this window', 'robots off']);
    await press('orders', 'Let This Window Answer', says(window, 'live'));
    await press('robots', 'Let This Window Answer', says(other, 'live'));
    await window.waitForStatus('standby');
    await press('orders', 'Let This Window Answer', says(window, 'live'));
    await other.waitForStatus('standby');
});

test('commands of the view are not in the palette', async () => {
    const offered = await window.offered('Baton: ', 'Baton: Open Panel');
    assert.ok(!offered.some((text) => /Let This Window Answer|Remove Breakpoint/.test(text)), offered.join());
});

test('the walkthrough opens, and its steps do what they say', async () => {
    await window.command('Welcome: Open Walkthrough...');
    await window.pick('Get Started with Baton');
    for (const title of ['Connect an AI client', 'Ask it something', 'Choose the window']) {
        await window.page.getByText(title, { exact: true }).first().waitFor();
    }
    await window.page.getByText('Copy Configuration', { exact: true }).first().click();
    await window.page.locator('.quick-input-title', { hasText: 'Copy the configuration' }).waitFor();
    await window.page.keyboard.press('Escape');
});
