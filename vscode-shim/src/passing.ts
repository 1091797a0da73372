// Requests of the agent on their way through VS Code to an adapter and back. Each goes through the part of VS Code that
// draws, twice: there it waits as long as something is drawn, which at a stop is most of the time. The answer passes the
// tracker before it goes that way, so it is taken from there; and what an agent asks of each stop is asked before VS Code
// hears of the stop.

import type * as vscode from 'vscode';

import type { DapMessage } from './focus';

/** An agent that reads a stop asks on within a millisecond or two: one that has not asked for so long has read it. */
const LOOK_MS = 5;
const N_QUIET = 2;
/** Nobody waits longer for the end of what is on its way. */
const N_LOOKS = 40;

/** The frames and scopes that an agent asks for at a stop; where it asks for others, only time is lost. */
const N_FRAMES = 20;
const MAX_SCOPES = 3;
/** Requests that change nothing of what another one is answered. */
const READS = new Set(['threads', 'stackTrace', 'scopes', 'variables', 'exceptionInfo', 'breakpointLocations', 'source', 'loadedSources', 'modules']);

/** A request whose answer has not passed yet. */
interface Waiting {
    command: string;
    /** As text: VS Code hands on another object. */
    arguments: string;
    /** Its number once it has passed. */
    seq?: number;
    resolve: (body: unknown) => void;
}

interface Scope {
    variablesReference: number;
    expensive?: boolean;
    presentationHint?: string;
}

/** Those of one session. */
export class Passing {
    private readonly waiting = new Set<Waiting>();
    /** What is asked of a stop before the agent asks for it: each counts for one request. */
    private readonly ahead = new Map<string, Promise<unknown>>();
    /** The agent let the program run, and will ask about the next stop. */
    private isStopExpected = false;

    constructor(private readonly session: vscode.DebugSession) {}

    /** What the adapter answers; a refusal is told by VS Code. */
    async send(command: string, args: unknown): Promise<unknown> {
        const key = keyOf(command, args);
        const ahead = this.ahead.get(key);
        this.ahead.delete(key);
        return ahead ?? this.pass(command, args);
    }

    /** The agent lets the program run. */
    onResume(): void {
        this.isStopExpected = true;
    }

    /** Waits until nothing has been on its way for a moment. */
    async idle(): Promise<void> {
        for (let nLooks = 0, nQuiet = 0; nLooks < N_LOOKS && nQuiet < N_QUIET; nLooks += 1) {
            await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
            nQuiet = this.waiting.size === 0 ? nQuiet + 1 : 0;
        }
    }

    /** A message to the adapter; whether it is one of these. One of VS Code's own that asks for the same is taken for it. */
    onSent(message: DapMessage): boolean {
        if (message.type !== 'request') {
            return false;
        }
        if (!READS.has(message.command ?? '')) {
            this.ahead.clear();
        }
        for (const waiting of this.waiting) {
            if (waiting.seq === undefined && waiting.command === message.command && waiting.arguments === textOf(message.arguments)) {
                waiting.seq = message.seq;
                return true;
            }
        }
        return false;
    }

    /** A message of the adapter, before VS Code gets it. */
    onReceived({ type, event, request_seq, success, body }: DapMessage): void {
        if (event === 'continued' || event === 'stopped') {
            this.ahead.clear();
        }
        if (event === 'stopped' && this.isStopExpected && body?.threadId !== undefined) {
            this.isStopExpected = false;
            // What is refused is told to whom asks for it.
            this.lookAt(body.threadId).catch(() => undefined);
        }
        if (type !== 'response' || success !== true) {
            return;
        }
        for (const { seq, resolve } of this.waiting) {
            if (seq !== undefined && seq === request_seq) {
                resolve(body);
            }
        }
    }

    /** Asks for the stack of a stop, and for the variables of the call that it is in. */
    private async lookAt(threadId: number): Promise<void> {
        const stack = (await this.askAhead('stackTrace', { levels: N_FRAMES, startFrame: 0, threadId })) as { stackFrames: { id: number }[] };
        const [top] = stack.stackFrames;
        if (top === undefined) {
            return;
        }
        const { scopes } = (await this.askAhead('scopes', { frameId: top.id })) as { scopes: Scope[] };
        const cheap = scopes.filter(({ expensive }) => expensive !== true).slice(0, MAX_SCOPES);
        const nOwn = cheap.map(({ presentationHint }) => presentationHint).lastIndexOf('locals') + 1;
        await Promise.all(cheap.slice(0, Math.max(nOwn, 1)).map(({ variablesReference }) => this.askAhead('variables', { variablesReference })));
    }

    private async askAhead(command: string, args: unknown): Promise<unknown> {
        const answer = this.pass(command, args);
        answer.catch(() => undefined);
        this.ahead.set(keyOf(command, args), answer);
        return answer;
    }

    private async pass(command: string, args: unknown): Promise<unknown> {
        let forget = (): void => undefined;
        const passed = new Promise((resolve) => {
            const waiting: Waiting = { command, arguments: textOf(args), resolve };
            this.waiting.add(waiting);
            forget = () => void this.waiting.delete(waiting);
        });
        try {
            return await Promise.race([passed, this.session.customRequest(command, args)]);
        } finally {
            forget();
        }
    }
}

function keyOf(command: string, args: unknown): string {
    const inOrder = Object.entries(args ?? {}).sort(([one], [other]) => (one < other ? -1 : 1));
    return `${command} ${JSON.stringify(inOrder)}`;
}

function textOf(args: unknown): string {
    return JSON.stringify(args ?? {});
}
