// What surrounds every test in real windows: start, what a failure shows, and what no test may leave behind.

import fs from 'node:fs';
import path from 'node:path';
import { after, afterEach, before } from 'node:test';

import { connect } from './client.mjs';
import { Editor, until } from './editor.mjs';
import { ROOT } from './place.mjs';
import { commandOf, naming } from './processes.mjs';

/** Pictures and logs of failed tests, in the ignored target folder. */
const FAILURES = path.join(ROOT, 'target/windows');
/** Lines of each log that a failure prints; the whole logs lie beside the pictures. */
const TAIL_LINES = 25;
/** For processes to end after their server and coordinator. */
const END_MS = 15_000;

/**
 * Sets a test file up with `setUp(start)`, where `start(options)` gives an `Editor`, and ends what it started.
 *
 * `recover()` runs after a test that failed, so that the next one finds things as it expects them.
 * After every test nothing of Baton's may have been thrown into the log of an extension host.
 */
export function stage(setUp, tearDown = () => {}, recover = () => {}) {
    const editors = [];
    let isSetUp = false;
    before(async () => {
        try {
            await setUp((options) => Editor.start(options, editors));
            isSetUp = true;
        } catch (error) {
            await show(editors, 'set-up', error);
            throw error;
        }
    });
    afterEach(async (context) => {
        if (!context.passed && isSetUp) {
            await show(editors, context.name, context.error);
            await Promise.resolve(recover()).catch((error) => console.error(`recovery: ${error}`));
        }
        for (const editor of editors) {
            await editor.closeLists();
        }
        complain(editors);
    });
    after(async () => {
        await Promise.resolve(tearDown()).catch(() => {});
        for (const editor of editors) {
            await editor.end();
        }
        complain(editors);
        for (const editor of editors) {
            await expectNothingLeft(editor);
        }
        for (const editor of editors) {
            editor.remove();
        }
    });
}

/** `stage` with two windows on one project, the first of them live, and a client: `setUp` gets all of them. */
export function stageOfTwo(setUp) {
    let client;
    stage(
        async (start) => {
            const editor = await start();
            const first = await editor.open(editor.project('orders', 'first'), /live/);
            const second = await editor.open(editor.project('orders', 'second'), /standby/);
            client = await connect(editor, 'python');
            setUp({ editor, first, second, client });
        },
        () => client?.close(),
    );
}

/** No process of a run outlives it: no agent, coordinator, program that was debugged. */
async function expectNothingLeft(editor) {
    const left = () => naming(editor.run);
    const isClean = await until('nothing is left', () => left().length === 0, END_MS).catch(() => false);
    if (!isClean) {
        const lines = left().map((pid) => ({ pid, command: commandOf(pid) }));
        lines.forEach(({ pid }) => process.kill(pid, 'SIGKILL'));
        // On a busy machine an extension host is late to see that its server has gone: that is VS Code's affair.
        const ours = lines.filter(({ command }) => !command.includes('--type=extensionHost'));
        if (ours.length > 0) {
            throw new Error(`these processes were left behind:\n${ours.map(({ pid, command }) => `${pid} ${command}`).join('\n')}`);
        }
    }
}

function complain(editors) {
    const complaints = editors.flatMap((editor) => editor.complaints());
    if (complaints.length > 0) {
        throw new Error(`thrown into the extension host:\n${complaints.join('\n')}`);
    }
}

/** Prints what a person needs: every status bar, the ends of the logs, where the pictures are. */
async function show(editors, name, error) {
    const file = path.basename(process.argv[1], '.test.mjs');
    const folder = path.join(FAILURES, `${file}-${name.replace(/[^\w]+/g, '-').slice(0, 60)}`);
    fs.rmSync(folder, { recursive: true, force: true });
    fs.mkdirSync(folder, { recursive: true });
    const lines = [`--- ${name}: ${error?.cause?.message ?? error?.message ?? error}`];
    for (const [index, editor] of editors.entries()) {
        lines.push(await editor.describe(folder, index, TAIL_LINES).catch((why) => `(${why})`));
    }
    lines.push(`--- pictures and logs: ${folder}`);
    console.error(lines.join('\n'));
}
