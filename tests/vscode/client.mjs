// Official MCP clients on the stable URL, with the token that `baton token` prints: they obey one JSON object a line,
// as tests/clients/README.md says.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import readline from 'node:readline';

import { CACHE, NODE, ROOT } from './place.mjs';

/** More than any tool waits by itself. */
const CALL_MS = 90_000;
/** What a language server may take to answer, its start included. */
export const SERVER_S = 60;
const CLIENTS = path.join(ROOT, 'tests/clients');
const PROGRAMS = {
    python: [path.join(CACHE, 'mcp1/bin/python'), path.join(CLIENTS, 'python_1.py')],
    typescript: [NODE, path.join(CLIENTS, 'sdk_1.mjs')],
};

/** Connects a client: npm's `@modelcontextprotocol/sdk`, or PyPI's `mcp`; `query` goes to the end of the URL. */
export async function connect(editor, language = 'typescript', query = '') {
    const [program, script] = PROGRAMS[language];
    const env = {
        ...process.env,
        MCP_URL: `http://127.0.0.1:${editor.status().port}/mcp${query}`,
        MCP_TOKEN: editor.baton('token'),
        NODE_PACKAGES: path.join(CACHE, 'node'),
    };
    const child = spawn(program, [script], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    const client = new Client(child, editor);
    await client.ready;
    return client;
}

class Client {
    constructor(child, editor) {
        this.child = child;
        this.editor = editor;
        this.waiting = new Map();
        this.nCommands = 0;
        this.ready = this.expect(0);
        child.on('error', (error) => this.fail(error));
        child.on('exit', (code) => this.fail(new Error(`the client ended with ${code}`)));
        readline.createInterface({ input: child.stdout }).on('line', (line) => this.hear(JSON.parse(line)));
    }

    /** Calls a tool; gives what it answers as an object. When it hears that another window is live, it goes on there. */
    async call(name, args = {}) {
        const result = await this.command({ do: 'call', tool: name, arguments: args });
        const answer = result.structuredContent ?? result._meta?.['baton/details'];
        return answer?.code === 'window_changed' ? this.call(name, args) : answer;
    }

    /** Calls a tool of `code`, which must succeed; a busy machine takes its time to start a language server. */
    async ok(name, args = {}) {
        const answer = await this.call(name, { timeout: SERVER_S, ...args });
        assert.equal(answer.success, true, JSON.stringify(answer));
        return answer;
    }

    /** Removes all breakpoints: those of this client together, and the user's, which are left then, one by one. */
    async clear(args = {}) {
        const { message } = await this.call('remove_breakpoint', { ...args, clear_all: true });
        for (const [, id] of message?.matchAll(/(\d+) \((?:the user|another client)'s/g) ?? []) {
            await this.call('remove_breakpoint', { ...args, breakpoint_id: Number(id) });
        }
    }

    /** Ends every debug session of the live window, and removes its breakpoints. */
    async reset() {
        await this.clear();
        const { windows, live } = this.editor.status();
        for (const id of windows.find((window) => window.id === live)?.debug_sessions ?? []) {
            await this.call('stop_debugging', { session_id: id });
        }
    }

    /** Names of all tools. */
    list() {
        return this.command({ do: 'list' });
    }

    /** All tools, with their schemas; by the TypeScript client alone. */
    tools() {
        return this.command({ do: 'tools' });
    }

    async close() {
        const ended = new Promise((resolve) => this.child.once('exit', resolve));
        if (this.child.exitCode === null && this.child.signalCode === null) {
            this.child.stdin.end();
            this.child.kill();
            await ended;
        }
    }

    command(command) {
        this.nCommands += 1;
        const answer = this.expect(this.nCommands);
        this.child.stdin.write(`${JSON.stringify({ id: this.nCommands, ...command })}\n`);
        return answer;
    }

    expect(id) {
        return new Promise((resolve, reject) => {
            const late = setTimeout(() => reject(new Error(`the client did not answer within ${CALL_MS} ms`)), CALL_MS);
            const end = (settle) => (value) => {
                clearTimeout(late);
                this.waiting.delete(id);
                settle(value);
            };
            this.waiting.set(id, { resolve: end(resolve), reject: end(reject) });
        });
    }

    hear({ ready, id, ok, error }) {
        if (ready) {
            this.waiting.get(0)?.resolve(ready);
        } else if (error) {
            this.waiting.get(id)?.reject(new Error(error));
        } else if (id) {
            this.waiting.get(id)?.resolve(ok);
        }
    }

    fail(error) {
        [...this.waiting.values()].forEach(({ reject }) => reject(error));
    }
}
