// The agent process of this window: start, watch, restart with growing pauses, stop.

import { type ChildProcess, spawn } from 'node:child_process';
import * as os from 'node:os';
import * as path from 'node:path';
import * as readline from 'node:readline';
import * as vscode from 'vscode';
import { type MessageConnection, type RequestType, createMessageConnection } from 'vscode-jsonrpc/node';

import { type Log, logAgentLine, reason } from './log';
import { Beat, EXIT_RESTART, HEARTBEAT_MS, type Problem, type Standing, StandingChanged } from './protocol';

/** Pauses before a crashed agent is started again, in milliseconds; the last one is repeated. */
const PAUSES_MS = [100, 500, 2_000, 5_000, 15_000, 30_000];
/** An agent that ran for so long was a good one. */
const GOOD_AFTER_MS = 30_000;
/** The agent ends within this time of its input; then it is killed. */
const END_MS = 1_800;
/** Crashes in a row before the user is told. */
const N_QUIET_CRASHES = 1;

/** What the status bar shows: what the agent says, or why there is nothing to say. */
export type View =
    | { kind: 'starting' }
    | { kind: 'standing'; standing: Standing }
    | { kind: 'error'; problem: Problem };

export interface AgentOptions {
    window: string;
    binaries: () => Promise<string>;
    autoStart: () => boolean;
    /** Handlers of what the agent asks; called for every new connection, before it listens. */
    serve: (connection: MessageConnection) => void;
    /** Called once the agent listens. */
    greet: (connection: MessageConnection) => void;
}

export class Agent implements vscode.Disposable {
    private child: ChildProcess | undefined;
    private connection: MessageConnection | undefined;
    private retry: NodeJS.Timeout | undefined;
    private nCrashes = 0;
    private ended = false;
    private restarting = false;
    private current: View = { kind: 'starting' };
    private readonly changes = new vscode.EventEmitter<View>();
    private readonly beats: NodeJS.Timeout;
    private readonly subscriptions: vscode.Disposable[];
    readonly onChange = this.changes.event;

    constructor(
        private readonly options: AgentOptions,
        private readonly log: Log,
    ) {
        // A timer of this event loop: when it does not run, this window does not answer, and the agent must not
        // pretend that it does.
        this.beats = setInterval(() => this.beat(), HEARTBEAT_MS);
        this.subscriptions = [
            vscode.window.onDidChangeWindowState(() => this.beat()),
            vscode.workspace.onDidChangeWorkspaceFolders(() => this.beat()),
            vscode.workspace.onDidGrantWorkspaceTrust(() => this.beat()),
        ];
    }

    get view(): View {
        return this.current;
    }

    get standing(): Standing | undefined {
        return this.current.kind === 'standing' ? this.current.standing : undefined;
    }

    /** Asks the agent something; an error is a sentence for the user. */
    async request<P, A>(type: RequestType<P, A, void>, params: P): Promise<A> {
        if (this.connection === undefined) {
            throw new Error(vscode.l10n.t('Baton is not running in this window yet; try again in a moment.'));
        }
        return this.connection.sendRequest(type, params);
    }

    async start(): Promise<void> {
        if (this.ended || this.child !== undefined) {
            return;
        }
        clearTimeout(this.retry);
        this.show({ kind: 'starting' });
        try {
            this.spawn(path.join(await this.options.binaries(), 'baton-agent'));
        } catch (error) {
            this.fail('agent_cannot_start', reason(error));
        }
    }

    /** Starts the agent anew, now. */
    async restart(): Promise<void> {
        this.nCrashes = 0;
        if (this.child === undefined) {
            await this.start();
        } else {
            this.restarting = true;
            this.child.stdin?.end();
        }
    }

    private spawn(program: string): void {
        const folders = localFolders().flatMap((folder) => ['--folder', folder]);
        const child = spawn(
            program,
            [
                ...['--window', this.options.window, '--kind', 'vscode', '--name', windowName()],
                ...['--auto-start', String(this.options.autoStart()), ...folders],
            ],
            { stdio: ['pipe', 'pipe', 'pipe'], env: cleanEnvironment(), cwd: os.homedir(), windowsHide: true },
        );
        this.child = child;
        const startedAt = Date.now();
        let failure: string | undefined;
        child.on('error', (error) => (failure = error.message));
        child.stdin.on('error', () => undefined);
        readline.createInterface({ input: child.stderr }).on('line', (line) => logAgentLine(this.log, line));
        child.on('close', (code, signal) => {
            this.child = undefined;
            this.connection?.dispose();
            this.connection = undefined;
            if (Date.now() - startedAt > GOOD_AFTER_MS) {
                this.nCrashes = 0;
            }
            this.onEnd(failure, code, signal);
        });
        this.connect(child);
    }

    private connect(child: ChildProcess): void {
        const connection = createMessageConnection(child.stdout!, child.stdin!);
        this.connection = connection;
        connection.onError(([error]) => this.log.warn(`channel: ${error.message}`));
        connection.onNotification(StandingChanged, (standing) => this.show({ kind: 'standing', standing }));
        this.options.serve(connection);
        connection.listen();
        this.beat();
        this.options.greet(connection);
    }

    private onEnd(failure: string | undefined, code: number | null, signal: string | null): void {
        if (this.ended) {
            return;
        }
        if (code === EXIT_RESTART || this.restarting) {
            this.restarting = false;
            void this.start();
            return;
        }
        const how = failure ?? (signal === null ? `exit code ${code}` : `signal ${signal}`);
        this.log.error(`the agent ended: ${how}`);
        const pause = PAUSES_MS[Math.min(this.nCrashes, PAUSES_MS.length - 1)]!;
        this.nCrashes += 1;
        if (failure !== undefined || this.nCrashes > N_QUIET_CRASHES) {
            this.fail(failure === undefined ? 'agent_ended' : 'agent_cannot_start', how);
        } else {
            this.show({ kind: 'starting' });
        }
        this.retry = setTimeout(() => void this.start(), pause);
    }

    private fail(code: string, how: string): void {
        const message =
            code === 'agent_ended'
                ? vscode.l10n.t('Baton\'s agent ended unexpectedly ({0}); it is being started again.', how)
                : vscode.l10n.t('Baton\'s agent cannot be started: {0}', how);
        this.show({ kind: 'error', problem: { code, message } });
    }

    private beat(): void {
        void this.connection
            ?.sendNotification(Beat, {
                focused: vscode.window.state.focused,
                name: windowName(),
                folders: localFolders(),
                trusted: vscode.workspace.isTrusted,
            })
            .catch(() => undefined);
    }

    private show(view: View): void {
        this.current = view;
        this.changes.fire(view);
    }

    /** Ends the agent; resolves when it has ended. */
    async end(): Promise<void> {
        this.dispose();
        const child = this.child;
        if (child === undefined) {
            return;
        }
        await new Promise<void>((resolve) => {
            const kill = setTimeout(() => child.kill('SIGKILL'), END_MS);
            child.once('close', () => {
                clearTimeout(kill);
                resolve();
            });
            child.stdin?.end();
        });
    }

    dispose(): void {
        this.ended = true;
        clearInterval(this.beats);
        clearTimeout(this.retry);
        this.subscriptions.forEach((subscription) => subscription.dispose());
        this.changes.dispose();
    }
}

/** The folders of the window that are on this machine's disk. */
export function localFolders(): string[] {
    const folders = vscode.workspace.workspaceFolders ?? [];
    return folders.filter((folder) => isOnDisk(folder.uri)).map((folder) => folder.uri.fsPath);
}

/** In a remote window the extension runs on the remote machine, whose disk both schemes mean. */
export function isOnDisk(uri: vscode.Uri): boolean {
    return uri.scheme === 'file' || uri.scheme === 'vscode-remote';
}

function windowName(): string {
    return vscode.workspace.name ?? vscode.l10n.t('no folder');
}

/** What VS Code sets for its own children would change how ours behave. */
function cleanEnvironment(): NodeJS.ProcessEnv {
    const entries = Object.entries(process.env).filter(([name]) => !/^(VSCODE_|ELECTRON_)/.test(name));
    const port = vscode.workspace.getConfiguration('baton').inspect<number>('port')?.globalValue;
    const wanted = port === undefined ? {} : { BATON_PORT: String(port) };
    return { ...wanted, ...Object.fromEntries(entries) };
}
