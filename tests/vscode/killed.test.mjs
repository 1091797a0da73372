// VS Code's own processes are killed (F10): nothing of a window outlives them, and the coordinator does.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { until } from './editor.mjs';
import { commandOf, hostOf, isAlive, naming } from './processes.mjs';
import { stageOfTwo } from './stage.mjs';

/** Everything ends within five seconds; a busy machine gets more. */
const END_MS = 15_000;

let editor, first, second, client;

stageOfTwo((all) => {
    ({ editor, first, second, client } = all);
});

/** Programs that are debugged, and their adapters. */
function debuggees() {
    return naming(editor.run).filter((pid) => /debugpy|wait\.py/.test(commandOf(pid)));
}

test('VS Code is killed while a program is debugged: agents, adapters and programs end, the coordinator does not', async () => {
    const answer = client.call('start_debugging', { configuration_name: 'wait', timeout: 60 });
    await until('the program runs', () => editor.known(first).debug_sessions.length > 0);
    await first.toolbar().waitFor();
    await until('its processes are seen', () => debuggees().some((pid) => /wait\.py/.test(commandOf(pid))));
    const { pid: coordinator } = editor.status();
    const agents = [first, second].map((window) => editor.known(window).pid);
    const main = hostOf(hostOf(agents[0]));
    assert.ok([main, hostOf(main)].includes(editor.server.pid), `${commandOf(main)} is VS Code's main process`);

    const killedAt = Date.now();
    for (const pid of new Set([editor.server.pid, main])) {
        process.kill(pid, 'SIGKILL');
    }
    await until('the agents have ended', () => !agents.some(isAlive));
    await until('what was debugged has ended', () => debuggees().length === 0);
    assert.ok(Date.now() - killedAt < END_MS, `after ${Date.now() - killedAt} ms`);
    const lost = await answer;
    assert.ok(lost.code === 'outcome_unknown' || lost.status === 'completed', JSON.stringify(lost));

    await until('nobody is live', () => editor.status().live === null);
    const { pid, windows } = editor.status();
    assert.equal(pid, coordinator);
    assert.deepEqual(windows, []);
    const next = await client.call('list_windows');
    assert.deepEqual(next.windows, [], 'the session of the client goes on');
});
