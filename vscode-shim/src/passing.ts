// Requests of the agent on their way through VS Code to an adapter and back. Each goes through the part of VS Code that
// draws, twice: there it waits as long as something is drawn, which at a stop is most of the time. The answer passes the
// tracker before it goes that way, so it is taken from there.

import type * as vscode from 'vscode';

import type { DapMessage } from './focus';

/** An agent that reads a stop asks on within a millisecond or two: one that has not asked for so long has read it. */
const LOOK_MS = 5;
const N_QUIET = 2;
/** Nobody waits longer for the end of what is on its way. */
const N_LOOKS = 40;

/** A request whose answer has not passed yet. */
interface Waiting {
    command: string;
    /** As text: VS Code hands on another object. */
    arguments: string;
    /** Its number once it has passed. */
    seq?: number;
    resolve: (body: unknown) => void;
}

export class Passing {
    private readonly waiting = new Set<Waiting>();

    /** What the adapter answers; a refusal is told by VS Code. */
    async send(session: vscode.DebugSession, command: string, args: unknown): Promise<unknown> {
        let forget = (): void => undefined;
        const passed = new Promise((resolve) => {
            const waiting: Waiting = { command, arguments: textOf(args), resolve };
            this.waiting.add(waiting);
            forget = () => void this.waiting.delete(waiting);
        });
        try {
            return await Promise.race([passed, session.customRequest(command, args)]);
        } finally {
            forget();
        }
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
        for (const waiting of this.waiting) {
            if (waiting.seq === undefined && waiting.command === message.command && waiting.arguments === textOf(message.arguments)) {
                waiting.seq = message.seq;
                return true;
            }
        }
        return false;
    }

    /** A message of the adapter. */
    onReceived({ type, request_seq, success, body }: DapMessage): void {
        if (type !== 'response' || success !== true) {
            return;
        }
        for (const { seq, resolve } of this.waiting) {
            if (seq !== undefined && seq === request_seq) {
                resolve(body);
            }
        }
    }
}

function textOf(args: unknown): string {
    return JSON.stringify(args ?? {});
}
