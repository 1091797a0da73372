// The rules as a user causes them: open, close, reload, click, toggle; what every status bar says after it.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';

import { Editor, until } from './editor.mjs';

let editor, a, b, c;

before(async () => {
    editor = await Editor.start();
    a = await editor.open(editor.project('shop', 'a'));
    b = await editor.open(editor.project('shop', 'b'));
    c = await editor.open(editor.project('shop', 'c'));
});
after(() => editor?.stop());

/** Waits until the status bars say this. */
async function expectStatus(windows, words) {
    for (const [index, window] of windows.entries()) {
        await window.waitForStatus(words[index], 20_000);
    }
}

test('R1, R2: the first window is live, later ones yield', () => expectStatus([a, b, c], ['live', 'standby', 'standby']));

test('R4: taking over makes a window live at once, the other one yields', async () => {
    await b.choose('Take over');
    await expectStatus([a, b, c], ['standby', 'live', 'standby']);
});

test('R5: a stopped window is off, and nobody is promoted', async () => {
    await b.choose('Stop');
    await expectStatus([a, b, c], ['standby', 'off', 'standby']);
    assert.equal(editor.status().live, null);
});

test('R4: starting a window that is off makes it live', async () => {
    await b.choose('Start');
    await expectStatus([a, b, c], ['standby', 'live', 'standby']);
});

test('R7: a restarted window is live again, with a new term', async () => {
    const before = editor.status();
    await b.choose('Restart');
    await until('a new term', () => {
        const { term, live } = editor.status();
        return live === before.live && term[1] > before.term[1];
    });
    await expectStatus([a, b, c], ['standby', 'live', 'standby']);
});

test('R8: auto-start switched off: a standby window goes off, a live one stays live', async () => {
    await c.choose('Auto-start is on');
    await c.waitForStatus('off');
    await b.choose('Auto-start is on');
    await until('auto-start of the live window is off', () => {
        const { windows, live } = editor.status();
        return windows.find(({ id }) => id === live).auto_start === false;
    });
    await expectStatus([a, b, c], ['standby', 'live', 'off']);
    await c.choose('Auto-start is off');
    await b.choose('Auto-start is off');
    await expectStatus([a, b, c], ['standby', 'live', 'standby']);
});

test('R6: a live window that is reloaded keeps its id; back within five seconds it is live', async () => {
    const before = editor.status();
    const goneAt = Date.now();
    await b.page.reload();
    await b.waitForStatus(/^Baton: (live|standby)$/, 60_000);
    const ms = Date.now() - goneAt;
    const ids = (status) => status.windows.map(({ id }) => id);
    assert.deepEqual(ids(editor.status()), ids(before));
    if (ms < 5_000) {
        assert.equal(editor.status().live, before.live);
    }
    await b.choose(/Take over|Restart/);
    await expectStatus([a, b, c], ['standby', 'live', 'standby']);
});

test('a handover to another window through the panel', async () => {
    await b.choose('Hand over to another window');
    await b.pick('c,', { begins: true });
    await expectStatus([a, b, c], ['standby', 'standby', 'live']);
});

test('R6: a live window that is closed is followed by the one focused last', async () => {
    await c.close();
    await until('another one is live', async () => (await a.status()) === 'Baton: live' || (await b.status()) === 'Baton: live', 20_000);
    assert.equal(editor.status().windows.length, 2);
});

test('R9: a new coordinator leaves the live window live', async () => {
    const before = editor.status();
    process.kill(before.pid, 'SIGKILL');
    await until('another coordinator runs, with the same windows', () => {
        const now = editor.status();
        return now.running && now.pid !== before.pid && now.windows.length === 2 && now.live === before.live;
    });
});

test('R12: with followFocus a standby window that is focused becomes live', async () => {
    editor.baton('settings', 'follow_focus', 'true');
    const [live, other] = (await a.status()) === 'Baton: live' ? [a, b] : [b, a];
    await Promise.all([a.followFocus(), b.followFocus()]);
    await live.page.bringToFront();
    await other.page.bringToFront();
    await other.waitForStatus('live', 20_000);
    await live.waitForStatus('standby', 20_000);
    editor.baton('settings', 'follow_focus', 'false');
});

test('R10: a live window whose extension host is stopped is followed by another; back again, it yields', async () => {
    const { live, windows } = editor.status();
    const [hung, other] = (await a.status()) === 'Baton: live' ? [a, b] : [b, a];
    const agent = windows.find(({ id }) => id === live).pid;
    const host = parentOf(agent);
    process.kill(host, 'SIGSTOP');
    try {
        await other.waitForStatus('live', 20_000);
    } finally {
        process.kill(host, 'SIGCONT');
    }
    await hung.waitForStatus('standby', 20_000);
    await other.waitForStatus('live');
});

test('the extension host is killed: its agent ends within two seconds, and the window is back under its id', async () => {
    const { live, windows } = editor.status();
    const agent = windows.find(({ id }) => id === live).pid;
    process.kill(parentOf(agent), 'SIGKILL');
    await until('the agent has ended with its host', () => !isAlive(agent), 2_000);
    await until('the window is back', () => {
        const now = editor.status().windows.find(({ id }) => id === live);
        return now !== undefined && now.pid !== agent;
    });
});

function parentOf(pid) {
    return Number(readStat(pid)[1]);
}

function isAlive(pid) {
    try {
        return readStat(pid)[0] !== 'Z';
    } catch {
        return false;
    }
}

/** State, parent, ... of a process: what follows its name. */
function readStat(pid) {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
