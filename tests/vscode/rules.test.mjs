// The rules as a user causes them: open, close, reload, click, toggle; what every status bar says after it.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { connect } from './client.mjs';
import { until } from './editor.mjs';
import { hostOf, isAlive, isStopped } from './processes.mjs';
import { stage } from './stage.mjs';

let editor, a, b, c, client;

stage(
    async (start) => {
        editor = await start();
        a = await editor.open(editor.project('orders', 'a'));
        b = await editor.open(editor.project('orders', 'b'));
        c = await editor.open(editor.project('orders', 'c'));
        client = await connect(editor);
    },
    () => client?.close(),
);

/** Waits until the status bars of a, b and c say this; those of closed windows are left out. */
async function expectStatus(...words) {
    for (const [index, window] of [a, b, c].entries()) {
        if (words[index] !== null) {
            await window.waitForStatus(words[index]);
        }
    }
}

/** Makes sure that the test begins with b live and the others standby. */
async function begin() {
    await until('three windows', () => editor.status().windows.length === 3);
    for (const window of [a, c, b]) {
        if (window === b || !/standby/.test(await window.status())) {
            editor.baton('take', editor.known(window).id);
        }
    }
    await expectStatus('standby', 'live', 'standby');
}

test('R1, R2: the first window is live, later ones yield', async () => {
    await expectStatus('live', 'standby', 'standby');
    assert.deepEqual(
        editor.status().windows.map(({ name, state, kind }) => [name, state, kind]).sort(),
        [['a', 'live', 'vscode'], ['b', 'standby', 'vscode'], ['c', 'standby', 'vscode']],
    );
});

test('R4: taking over makes a window live at once, the other one yields', async () => {
    await b.choose('Take over');
    await expectStatus('standby', 'live', 'standby');
});

test('R5: a stopped window is off, and nobody is promoted', async () => {
    await b.choose('Stop');
    await expectStatus('standby', 'off', 'standby');
    assert.equal(editor.status().live, null);
});

test('R4: starting a window that is off makes it live', async () => {
    await b.choose('Start');
    await expectStatus('standby', 'live', 'standby');
});

test('R5: a standby window that is stopped is off, and the live one stays', async () => {
    await c.choose('Stop');
    await expectStatus('standby', 'live', 'off');
    await c.choose('Start');
    await expectStatus('standby', 'standby', 'live');
    await b.choose('Take over');
    await expectStatus('standby', 'live', 'standby');
});

test('R7: a restarted window is live again, with a new term', async () => {
    await begin();
    const before = editor.status();
    await b.choose('Restart');
    await until('a new term', () => {
        const { term, live } = editor.status();
        return live === before.live && term[1] > before.term[1];
    });
    await expectStatus('standby', 'live', 'standby');
});

test('R7: a standby window that is restarted is standby again', async () => {
    const { pid } = editor.known(a);
    await a.choose('Restart');
    await until('another agent runs', () => editor.known(a) && editor.known(a).pid !== pid);
    await expectStatus('standby', 'live', 'standby');
});

test('R8: auto-start switched off: a standby window goes off, a live one stays live', async () => {
    await c.choose('Auto-start is on');
    await expectStatus('standby', 'live', 'off');
    await b.choose('Auto-start is on');
    await until('auto-start of the live window is off', () => editor.known(b).auto_start === false);
    await expectStatus('standby', 'live', 'off');
});

test('R4: taken over, a live window whose auto-start is off goes off', async () => {
    await a.choose('Take over');
    await expectStatus('live', 'off', 'off');
});

test('R8: auto-start switched on while another is live: it yields; while nobody is: it is live', async () => {
    await b.choose('Auto-start is off');
    await expectStatus('live', 'standby', 'off');
    await a.choose('Auto-start is on');
    await until('auto-start is off', () => editor.known(a).auto_start === false);
    await b.choose('Stop');
    await a.choose('Stop');
    await expectStatus('off', 'off', 'off');
    await c.choose('Auto-start is off');
    await expectStatus('off', 'off', 'live');
    await a.choose('Auto-start is off');
    await b.choose('Take over', 'Start');
    await expectStatus('standby', 'live', 'standby');
});

test('R8: auto-start switched in the settings of the workspace', async () => {
    const settings = path.join(c.folder, '.vscode/settings.json');
    fs.writeFileSync(settings, '{ "baton.autoStart": false }');
    await expectStatus('standby', 'live', 'off');
    fs.rmSync(settings);
    await expectStatus('standby', 'live', 'standby');
});

test('R3: a window whose workspace says no auto-start is off, and no rule makes it live', async () => {
    await begin();
    const folder = editor.project('orders', 'quiet');
    fs.writeFileSync(path.join(folder, '.vscode/settings.json'), '{ "baton.autoStart": false }');
    const quiet = await editor.open(folder);
    await quiet.waitForStatus('off');
    await expectStatus('standby', 'live', 'standby');
    for (const window of [a, b, c]) {
        await window.choose('Stop');
    }
    await expectStatus('off', 'off', 'off');
    const again = await editor.open(folder);
    await again.waitForStatus('off');
    await quiet.waitForStatus('off');
    assert.equal(editor.status().live, null);
    await Promise.all([again.close(), quiet.close()]);
    for (const window of [a, c, b]) {
        await window.choose('Start');
        await window.waitForStatus('live');
    }
    await expectStatus('standby', 'live', 'standby');
});

test('R6: a live window that is reloaded keeps its id; back within five seconds it is live', async () => {
    await begin();
    const before = editor.status();
    // Another window is not promoted while the place is held, however long the reload takes on a busy machine.
    const goneAt = Date.now();
    await b.page.reload();
    await b.waitForStatus(/^Baton: (live|standby)$/);
    const ms = Date.now() - goneAt;
    const ids = (status) => status.windows.map(({ id }) => id);
    await until('three windows', () => editor.status().windows.length === 3);
    assert.deepEqual(ids(editor.status()), ids(before));
    if (ms < 5_000) {
        await expectStatus('standby', 'live', 'standby');
    } else {
        await b.choose('Take over', 'Restart');
        await expectStatus('standby', 'live', 'standby');
    }
});

test('R6: a standby window that is reloaded changes nothing for the others', async () => {
    await begin();
    const { live } = editor.status();
    const { id } = editor.known(a);
    await a.page.reload();
    await expectStatus('standby', 'live', 'standby');
    // A bar can be ahead of what the coordinator lists.
    await until('it has come back by its id', () => editor.known(a)?.id === id);
    assert.equal(editor.status().live, live);
});

test('a handover to another window through the panel', async () => {
    await begin();
    await b.choose('Hand over to another window');
    await b.pick('c,', { begins: true });
    await expectStatus('standby', 'standby', 'live');
});

test('R9: a new coordinator leaves the live window live', async () => {
    await begin();
    await c.choose('Take over');
    await expectStatus('standby', 'standby', 'live');
    const before = editor.status();
    editor.killCoordinator();
    await until('another coordinator runs, with the same windows', () => {
        const now = editor.status();
        return now.running && now.pid !== before.pid && now.windows.length === 3 && now.live === before.live;
    });
    assert.ok(editor.status().generation > before.generation);
    await expectStatus('standby', 'standby', 'live');
});

test('R12: with followFocus a standby window that is focused becomes live; R11: not while a client debugs', async () => {
    await Promise.all([a.followFocus(), b.followFocus(), c.followFocus()]);
    await c.page.bringToFront();
    editor.baton('settings', 'follow_focus', 'true');
    await b.page.bringToFront();
    await expectStatus('standby', 'live', 'standby');

    await client.call('set_breakpoint', { file_path: 'bill.py', line_number: 9 });
    const { stop_event_data: stop } = await client.call('start_debugging', { configuration_name: 'bill' });
    const { last_focus: before } = editor.known(a);
    await a.page.bringToFront();
    await until('the focus is known', () => editor.known(a).last_focus !== before);
    // The rule waits for a second of focus; a call that takes longer than that ends with nothing having moved.
    await client.call('continue_debugging', { session_id: stop.session_id, thread_id: stop.thread_id });
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    await expectStatus('standby', 'live', 'standby');
    await client.call('stop_debugging', { session_id: stop.session_id });
    await expectStatus('live', 'standby', 'standby');
    await client.clear();
    editor.baton('settings', 'follow_focus', 'false');
});

test('R10: a short silence changes nothing; a live window that hangs is followed by another; back again, it yields', async () => {
    const host = hostOf(editor.known(a).pid);
    process.kill(host, 'SIGSTOP');
    try {
        await until('it is stopped', () => isStopped(host));
        await until('it is suspect', () => editor.known(a).responsive === false);
        assert.equal(editor.status().live, editor.known(a).id);
    } finally {
        process.kill(host, 'SIGCONT');
    }
    await until('it answers again', () => editor.known(a).responsive);
    await expectStatus('live', 'standby', 'standby');

    process.kill(host, 'SIGSTOP');
    try {
        await until('another one is live', async () => /live/.test(await b.status()) || /live/.test(await c.status()));
        await until('it is not counted any more', () => editor.known(a) === undefined);
        // Its agent lives, and does not pretend that its window does.
        await new Promise((resolve) => setTimeout(resolve, 2_000));
        assert.equal(editor.known(a), undefined);
    } finally {
        process.kill(host, 'SIGCONT');
    }
    const words = /live/.test(await b.status()) ? ['live', 'standby'] : ['standby', 'live'];
    await expectStatus('standby', ...words);
});

test('the extension host is killed: its agent ends within four seconds, and the window is back under its id', async () => {
    await a.choose('Take over', 'Restart');
    await expectStatus('live', 'standby', 'standby');
    const { id, pid } = editor.known(a);
    process.kill(hostOf(pid), 'SIGKILL');
    const killedAt = Date.now();
    await until('the agent has ended with its host', () => !isAlive(pid));
    assert.ok(Date.now() - killedAt < 4_000, `after ${Date.now() - killedAt} ms`);
    await until('the window is back', () => {
        const now = editor.known(a);
        return now !== undefined && now.id === id && now.pid !== pid;
    });
});

test('R6: a live window that is closed is followed by a standby one; with none left nobody is live', async () => {
    await c.choose('Take over', 'Restart');
    await expectStatus('standby', 'standby', 'live');
    await c.close();
    await until('another one is live', async () => /live/.test(await a.status()) || /live/.test(await b.status()));
    assert.equal(editor.status().windows.length, 2);
    await b.choose('Take over', 'Restart');
    await expectStatus('standby', 'live', null);
    await a.choose('Stop');
    await expectStatus('off', 'live', null);
    await b.close();
    await until('nobody is live, and nobody is awaited', () => {
        const { live, awaiting, windows } = editor.status();
        return live === null && awaiting === null && windows.length === 1;
    });
    await expectStatus('off', null, null);
});

test('R9: the live window and the coordinator go at the same moment: the standby one follows after a lease', async () => {
    await a.choose('Start');
    b = await editor.open(b.folder);
    await expectStatus('live', 'standby', null);
    process.kill(hostOf(editor.known(a).pid), 'SIGKILL');
    const closing = a.close();
    editor.killCoordinator();
    await closing;
    await expectStatus(null, 'live', null);
});
