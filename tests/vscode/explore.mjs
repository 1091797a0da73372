// A search: a person in two windows, a client that debugs in the live one, and faults, in any order; a model says what
// every bar, gutter, view, the client and `baton status` must say after each act, within a second.
//
// `node tests/vscode/explore.mjs [--seed N] [--seconds S]`, or `cargo xtask explore windows`. What it finds becomes a
// test of its own; this is none, as it gives another answer each time.

import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { connect } from './client.mjs';
import { Editor, until } from './editor.mjs';
import { ROOT } from './place.mjs';

/** All that shows a thing agrees within so long. */
const AGREED_MS = 1_000;
/** After a window or a process had to start. */
const STARTED_MS = 15_000;
/** A program stops within so long. */
const ANSWERED_MS = 10_000;
/** What does not agree by then never will. */
const GIVEN_UP_MS = 30_000;
const FILE = 'orders.js';
/** The lines of the program that are run, and how much of the item it is then. */
const TRACE = [2, 1, 3].flatMap((quantity) => [12, 5, 6, 7].map((line) => ({ line, quantity })));
const LINES = [5, 6, 7, 12];
/** A condition that holds for some items. */
const CONDITION = 'quantity > 1';

const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' }, seconds: { type: 'string', default: '60' } } });

/** Numbers that are the same for the same seed (mulberry32). */
function dice(seed) {
    let state = seed >>> 0;
    const next = () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let mixed = Math.imul(state ^ (state >>> 15), state | 1);
        mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    };
    return { below: (n) => Math.floor(next() * n), of: (all) => all[Math.floor(next() * all.length)] };
}

/** What a window is and holds, as far as anybody can know. */
class Desk {
    constructor(window, name, state) {
        this.window = window;
        this.name = name;
        this.state = state;
        /** By line: whose it is, and under which condition. */
        this.breakpoints = new Map();
        /** The client's program: its session, and where in the trace it stands. */
        this.program = undefined;
        /** The person's own: where it stands. */
        this.own = undefined;
    }

    get page() {
        return this.window.page;
    }

    /** Where the one program that is debugged here stands. */
    get stands() {
        return this.program ?? this.own;
    }

    /** The person's program goes on from `from`. */
    ownMoves(from) {
        const at = this.next(from);
        this.own = at === undefined ? undefined : { at };
    }

    /** Where a program that stands at `from` stops next; nowhere when it ends. */
    next(from) {
        const stops = ({ line, quantity }) => {
            const found = this.breakpoints.get(line);
            return found !== undefined && (found.condition === undefined || quantity > 1);
        };
        const at = TRACE.findIndex((step, index) => index > from && stops(step));
        return at < 0 ? undefined : at;
    }
}

class World {
    constructor(editor, seed) {
        this.editor = editor;
        this.dice = dice(seed);
        this.desks = [];
        this.story = [];
        this.late = [];
        this.counts = new Map();
    }

    /** Two windows on one project, each with its file open, and a client. */
    async begin() {
        for (const [name, state] of [['first', 'live'], ['second', 'standby']]) {
            const window = await this.editor.open(this.editor.project('orders', name));
            await window.openFile(FILE);
            this.desks.push(new Desk(window, name, state));
        }
        this.client = await connect(this.editor);
        await this.agree(STARTED_MS);
    }

    get live() {
        return this.desks.find(({ state }) => state === 'live');
    }

    /** One of the acts that can be done now, done. */
    async act() {
        const possible = ACTS.flatMap((act) => this.desks.filter((desk) => act.can(desk, this)).map((desk) => ({ act, desk })));
        const { act, desk } = this.dice.of(possible);
        this.story.push(`${act.name} ${desk.name}`);
        this.counts.set(act.name, (this.counts.get(act.name) ?? 0) + 1);
        await act.run(desk, this);
        await this.agree(act.starts ? STARTED_MS : AGREED_MS);
    }

    /** The person let a program of the client's go on: it stands, or has ended. */
    async standsAgain(desk) {
        if (desk.program === undefined) return;
        await until('the program stands again', async () => {
            const answer = await this.client.call('debug', { action: 'sessions' });
            return JSON.stringify(answer).includes('stopped');
        }, ANSWERED_MS);
    }

    async agree(within) {
        const began = performance.now();
        let wrong = await this.differences();
        while (wrong.length > 0 && performance.now() - began < GIVEN_UP_MS) {
            await new Promise((resolve) => setTimeout(resolve, 50));
            wrong = await this.differences();
        }
        const took = Math.round(performance.now() - began);
        if (wrong.length > 0) {
            throw new Error(wrong.join('\n'));
        }
        if (took > within) {
            this.late.push(`${took} ms after: ${this.story.at(-1)}`);
        }
    }

    /** What is not as the model has it. */
    async differences() {
        const wrong = [];
        const same = (what, found, expected) => {
            const [is, was] = [expected, found].map((value) => JSON.stringify(value));
            if (is !== was) wrong.push(`${what}: ${was}, and not ${is}`);
        };
        const status = this.editor.status();
        const { windows: told } = await this.client.call('list_windows');
        for (const desk of this.desks) {
            const known = status.windows.find(({ folders }) => folders.includes(desk.window.folder));
            same(`status of ${desk.name}`, known?.state, desk.state);
            same(`sessions of ${desk.name}`, known?.debug_sessions.length, desk.program ? 1 : 0);
            same(`the bar of ${desk.name}`, await desk.window.status(2_000).catch(() => 'none'), `Baton: ${desk.state}`);
            const found = await desk.page.locator('.glyph-margin-widgets [class*="codicon-debug-breakpoint"]').count();
            same(`the gutter of ${desk.name}`, found, desk.breakpoints.size);
            const stands = desk.stands !== undefined;
            same(`the toolbar of ${desk.name}`, await desk.window.toolbar().count() > 0, stands);
            same(`the line where it stands in ${desk.name}`, await lineShown(desk), desk.stands && TRACE[desk.stands.at].line);
            same(`what the person debugs in ${desk.name}`, told.find(({ name }) => name === desk.name)?.users_sessions?.length ?? 0, desk.own ? 1 : 0);
        }
        same('who is live', status.live ?? null, status.windows.find(({ state }) => state === 'live')?.id ?? null);
        if (this.live) {
            const { breakpoints = [] } = (await this.client.call('get_breakpoints')) ?? {};
            const lines = breakpoints.map(({ line, condition }) => `${line} ${condition ?? ''}`).sort();
            const expected = [...this.live.breakpoints].map(([line, { condition }]) => `${line} ${condition ?? ''}`).sort();
            same(`the client's list in ${this.live.name}`, lines, expected);
        }
        return wrong;
    }
}

/** The number of the line that VS Code marks as the one where a program stands. */
function lineShown({ page }) {
    return page.evaluate(() => {
        const marked = document.querySelector('.view-overlays .debug-top-stack-frame-line, .view-overlays .debug-focused-stack-frame-line');
        const top = marked?.parentElement?.style.top;
        const numbers = [...document.querySelectorAll('.margin-view-overlays > div')];
        const number = numbers.find(({ style }) => style.top === top)?.querySelector('.line-numbers');
        return marked && number ? Number(number.textContent) : undefined;
    });
}

/** A click beside a line's number. */
async function clickGutter(desk, line) {
    await desk.page.bringToFront();
    const number = desk.page.locator('.margin-view-overlays .line-numbers', { hasText: new RegExp(`^${line}$`) }).first();
    await number.click({ position: { x: -13, y: 8 }, force: true });
}

/** A click on a button of a question that stops everything. */
async function confirm(desk, title) {
    await desk.page.locator('.monaco-dialog-box .monaco-button', { hasText: title }).first().click();
    await desk.page.locator('.monaco-dialog-box').waitFor({ state: 'hidden' });
}

/** The person made this window live. */
function becomesLive(desk, world) {
    if (world.live) world.live.state = 'standby';
    desk.state = 'live';
}

function expect(what, answer, isRight) {
    if (!isRight) throw new Error(`${what}: ${JSON.stringify(answer)}`);
}

/** The program of the client is now at `at` of the trace, or has ended. */
function moved(desk, what, answer, session, at) {
    if (at === undefined) {
        expect(`${what} in ${desk.name}, to the end`, answer, answer.status === 'completed');
        desk.program = undefined;
        return;
    }
    const line = answer.stop_event_data?.line;
    expect(`${what} in ${desk.name}, to line ${TRACE[at].line}`, answer, answer.status === 'stopped' && line === TRACE[at].line);
    const { session_id, thread_id } = answer.stop_event_data;
    desk.program = { at, session_id: session_id ?? session, thread_id };
}

/** A step from here leads to the next line of the trace, whatever breakpoints there are. */
const stepsOn = ({ line }) => line === 5 || line === 6;
const free = (desk) => LINES.filter((line) => !desk.breakpoints.has(line));
const isLive = ({ state }) => state === 'live';
const own = (desk) => [...desk.breakpoints].filter(([, { owner }]) => owner === 'client');

const ACTS = [
    {
        name: 'the person takes over in',
        can: ({ state }) => state !== 'live',
        async run(desk, world) {
            const asks = world.live?.program !== undefined;
            await desk.window.command(desk.state === 'off' ? 'Baton: Start in This Window' : 'Baton: Take Over');
            if (asks) await confirm(desk, 'Take over');
            becomesLive(desk, world);
        },
    },
    {
        name: '`baton take` for',
        can: ({ state }) => state !== 'live',
        async run(desk, world) {
            world.editor.baton('take', world.editor.known(desk.window).id);
            becomesLive(desk, world);
        },
    },
    {
        name: 'the person stops',
        can: ({ state, program }, world) => state !== 'off' && program === undefined && world.dice.below(3) === 0,
        async run(desk) {
            await desk.window.command('Baton: Stop in This Window');
            desk.state = 'off';
        },
    },
    {
        name: 'the person restarts',
        starts: true,
        can: ({ program }, world) => program === undefined && world.dice.below(3) === 0,
        async run(desk, world) {
            const { pid } = world.editor.known(desk.window);
            await desk.window.command('Baton: Restart in This Window');
            await until('another agent runs', () => world.editor.known(desk.window)?.pid !== pid, GIVEN_UP_MS);
        },
    },
    {
        name: 'the person clicks in the gutter of',
        can: (desk) => free(desk).length > 0 || [...desk.breakpoints.values()].some(({ condition }) => !condition),
        async run(desk, world) {
            const line = world.dice.of(LINES.filter((line) => !desk.breakpoints.get(line)?.condition));
            world.story.push(`  line ${line}`);
            await clickGutter(desk, line);
            if (!desk.breakpoints.delete(line)) desk.breakpoints.set(line, { owner: 'user' });
        },
    },
    {
        name: 'the person types above all, and takes it back, in',
        can: ({ stands }) => stands === undefined,
        async run(desk) {
            await desk.page.bringToFront();
            await desk.page.locator('.editor-instance .view-line').first().click();
            await desk.page.keyboard.press('Control+Home');
            await desk.page.keyboard.press('Enter');
            await desk.page.keyboard.press('Control+Z');
        },
    },
    {
        name: 'the person presses continue in',
        can: ({ program, state }) => program !== undefined && state === 'live',
        async run(desk, world) {
            const { session_id, thread_id, at } = desk.program;
            await desk.window.press('continue');
            const next = desk.next(at);
            // Nobody waits for that stop: the client hears of it when it continues next.
            desk.program = next === undefined ? undefined : { session_id, thread_id, at: next, isUntold: true };
            await world.standsAgain(desk);
        },
    },
    {
        name: 'the person steps over in',
        can: ({ program, state }) => program !== undefined && state === 'live' && stepsOn(TRACE[program.at]),
        async run(desk, world) {
            await desk.window.press('step-over');
            desk.program = { ...desk.program, at: desk.program.at + 1, isUntold: true };
            await world.standsAgain(desk);
        },
    },
    {
        name: 'the person presses F5 in',
        starts: true,
        // One that stops nowhere could still come to what is clicked next.
        can: (desk) => desk.stands === undefined && desk.next(-1) !== undefined,
        async run(desk) {
            await desk.page.bringToFront();
            await desk.page.locator('.editor-instance .view-line').first().click();
            await desk.page.keyboard.press('F5');
            desk.ownMoves(-1);
        },
    },
    {
        name: 'the person continues their own in',
        can: ({ own }) => own !== undefined,
        async run(desk) {
            await desk.window.press('continue');
            desk.ownMoves(desk.own.at);
        },
    },
    {
        name: 'the person stops their own in',
        can: ({ own }) => own !== undefined,
        async run(desk) {
            await desk.window.press('stop');
            desk.own = undefined;
        },
    },
    {
        name: 'the person hands over from',
        can: (desk, { desks }) => isLive(desk) && desk.program === undefined && desks.some(({ state }) => state === 'standby'),
        async run(desk, world) {
            const other = world.desks.find(({ state }) => state === 'standby');
            await desk.window.command('Baton: Hand Over to Another Window');
            await desk.window.pick(other.name, { begins: true });
            becomesLive(other, world);
        },
    },
    {
        name: 'the person presses stop in',
        can: ({ program }) => program !== undefined,
        async run(desk) {
            await desk.window.press('stop');
            desk.program = undefined;
        },
    },
    {
        name: 'the person reloads',
        starts: true,
        // While a client debugs in the other window, it depends on how long this takes who is live then (R6, R11).
        can: (desk, { desks, dice }) => desk.stands === undefined && desks.every(({ program }) => program === undefined) && dice.below(4) === 0,
        async run(desk, world) {
            const { pid } = world.editor.known(desk.window);
            await desk.window.command('Developer: Reload Window');
            await until('another agent runs', () => (world.editor.known(desk.window)?.pid ?? pid) !== pid, 60_000);
            await desk.page.locator('.editor-instance .view-line').first().waitFor();
        },
    },
    {
        name: 'the client sets a breakpoint in',
        can: (desk) => isLive(desk) && free(desk).length > 0,
        async run(desk, world) {
            const line = world.dice.of(free(desk));
            const condition = line !== 12 && world.dice.below(3) === 0 ? CONDITION : undefined;
            world.story.push(`  line ${line}${condition ? ` if ${condition}` : ''}`);
            const answer = await world.client.call('set_breakpoint', { file_path: FILE, line_number: line, condition });
            expect('set_breakpoint', answer, answer.status === 'success');
            desk.breakpoints.set(line, { owner: 'client', condition });
        },
    },
    {
        name: 'the client wants one under a condition at the user\'s in',
        can: (desk) => isLive(desk) && [...desk.breakpoints.values()].some(({ owner }) => owner === 'user'),
        async run(desk, world) {
            const [line] = world.dice.of([...desk.breakpoints].filter(([, { owner }]) => owner === 'user'));
            const answer = await world.client.call('set_breakpoint', { file_path: FILE, line_number: line, condition: 'false' });
            expect('set_breakpoint', answer, answer.code === 'others_breakpoint');
        },
    },
    {
        name: 'the client removes its own in',
        can: (desk) => isLive(desk) && own(desk).length > 0,
        async run(desk, world) {
            const answer = await world.client.call('remove_breakpoint', { clear_all: true });
            expect('remove_breakpoint', answer, answer.status === 'success');
            own(desk).forEach(([line]) => desk.breakpoints.delete(line));
        },
    },
    {
        name: 'the client starts the program in',
        can: (desk) => isLive(desk) && desk.stands === undefined,
        async run(desk, world) {
            const answer = await world.client.call('start_debugging', { configuration_name: 'orders' });
            moved(desk, 'start_debugging', answer, undefined, desk.next(-1));
        },
    },
    {
        name: 'the client steps over in',
        can: (desk) => isLive(desk) && desk.program !== undefined && !desk.program.isUntold && stepsOn(TRACE[desk.program.at]),
        async run(desk, world) {
            const { at, session_id, thread_id } = desk.program;
            const answer = await world.client.call('step_execution', { session_id, thread_id, step_type: 'over' });
            moved(desk, 'step_execution', answer, session_id, at + 1);
        },
    },
    {
        name: 'the client continues in',
        can: (desk) => isLive(desk) && desk.program !== undefined,
        async run(desk, world) {
            const { at, session_id, thread_id, isUntold } = desk.program;
            const answer = await world.client.call('continue_debugging', { session_id, thread_id });
            moved(desk, 'continue_debugging', answer, session_id, isUntold ? at : desk.next(at));
        },
    },
    {
        name: 'the client stops the program in',
        can: (desk) => isLive(desk) && desk.program !== undefined,
        async run(desk, world) {
            const answer = await world.client.call('stop_debugging', { session_id: desk.program.session_id });
            expect('stop_debugging', answer, answer.status === 'success' || answer.status === 'completed');
            desk.program = undefined;
        },
    },
    {
        name: 'the coordinator is killed, beside',
        starts: true,
        can: (_, world) => world.dice.below(12) === 0,
        async run(_, world) {
            const before = world.editor.killCoordinator();
            await until('another one runs', () => world.editor.status().pid !== before, GIVEN_UP_MS);
        },
    },
    {
        name: 'the agent is killed of',
        starts: true,
        can: (_, world) => world.dice.below(12) === 0,
        async run(desk, world) {
            const { pid } = world.editor.known(desk.window);
            process.kill(pid, 'SIGKILL');
            await until('another agent runs', () => (world.editor.known(desk.window)?.pid ?? pid) !== pid, GIVEN_UP_MS);
            // The next agent finds the program where it stands, and cannot know whose it was.
            [desk.own, desk.program] = [desk.stands, undefined];
        },
    },
];

async function explore(seed, seconds) {
    const started = [];
    const world = new World(await Editor.start({}, started), seed);
    try {
        await world.begin();
        const end = performance.now() + seconds * 1_000;
        let nActs = 0;
        for (; performance.now() < end; nActs += 1) {
            await world.act();
        }
        const counts = [...world.counts].sort().map(([name, n]) => `${n} x ${name} a window`);
        console.log([`${nActs} acts in ${seconds} s, seed ${seed}: all agree after each`, ...counts].join('\n'));
        console.log([`${world.late.length} later than ${AGREED_MS} ms`, ...world.late].join('\n'));
        return world.late.length === 0;
    } catch (error) {
        const folder = path.join(ROOT, 'target/windows', `explore-${seed}`);
        fs.rmSync(folder, { recursive: true, force: true });
        fs.mkdirSync(folder, { recursive: true });
        console.log([`BROKEN, seed ${seed}: ${error.message}`, ...world.story].join('\n'));
        console.log(await world.editor.describe(folder, 0, 15).catch((why) => `${why}`));
        return false;
    } finally {
        await world.client?.close().catch(() => {});
        await Promise.all(started.map((each) => each.stop()));
    }
}

const isFine = await explore(Number(values.seed), Number(values.seconds));
process.exit(isFine ? 0 : 1);
