// The agent process of this window: start, watch, restart with growing pauses, stop.

import { type ChildProcess, spawn } from 'node:child_process';
import * as os from 'node:os';
import * as path from 'node:path';
import * as readline from 'node:readline';
import * as vscode from 'vscode';
import {
    ErrorCodes,
    type MessageConnection,
    type NotificationType,
    type RequestType,
    ResponseError,
    createMessageConnection,
} from 'vscode-jsonrpc/node';

import { configuration } from './configuration';
import { reason } from './problems';
import { Beat, BeatHeard, EXIT_RESTART, HEARTBEAT_MS, type Problem, type Standing, StandingChanged } from './protocol';

/** Pauses before a crashed agent is started again, in milliseconds. */
const PAUSES_MS = [100, 500, 2_000, 5_000, 15_000];
/** Each further one. */
const LAST_PAUSE_MS = 30_000;
/** An agent that ran for so long was a good one. */
const GOOD_AFTER_MS = 30_000;
/** The agent ends within this time of its input; then it is killed. */
const END_MS = 1_800;
/** The agent's first message takes milliseconds; on a busy machine a second or two. */
const SILENT_AFTER_MS = 15_000;
/** Signs of life in a row without an answer, after which an agent counts as hung. */
const MAX_UNANSWERED = 3;
/** Crashes in a row before the user is told. */
const N_QUIET_CRASHES = 1;
/** What the agent ends with when it could not begin. */
const EXIT_FAILURE = 1;

export interface AgentOptions {
    version: string;
    /** Where the agent keeps the ids of this workspace's windows. */
    storage: string;
    /** The folder with the programs; `anew` when what is there does not work. */
    binaries: (anew: boolean) => Promise<string>;
    /** Handlers of what the agent asks; called for every new connection, before it listens. */
    serve: (connection: MessageConnection) => void;
    /** Called once the agent listens. */
    greet: () => void;
}

/** There is no agent to answer at this moment. */
export class AgentGone extends Error {
    constructor() {
        super(vscode.l10n.t('Baton is not running in this window yet. Try again in a moment.'));
    }
}

export class Agent implements vscode.Disposable {
    /** What the agent says; nothing while it starts. */
    standing: Standing | undefined;
    /** What keeps it from working. */
    problem: Problem | undefined;
    private child: ChildProcess | undefined;
    private connection: MessageConnection | undefined;
    /** A start under way: the programs may have to be copied first. */
    private starting: Promise<void> | undefined;
    private retry: NodeJS.Timeout | undefined;
    private silence: NodeJS.Timeout | undefined;
    /** Whether the agent has answered since the last sign of life, and how often in a row it had not. */
    private heard = true;
    private nUnanswered = 0;
    /** What an agent that hangs said last. */
    private hung: Standing | undefined;
    private nCrashes = 0;
    private ended = false;
    private restarting = false;
    private readonly changes = new vscode.EventEmitter<void>();
    private readonly subscriptions: vscode.Disposable[];
    readonly onChange = this.changes.event;

    constructor(
        private readonly options: AgentOptions,
        private readonly log: vscode.LogOutputChannel,
    ) {
        // A timer of this event loop: when it does not run, this window does not answer, and the agent must not
        // pretend that it does.
        const beats = setInterval(() => this.tick(), HEARTBEAT_MS);
        this.subscriptions = [
            { dispose: () => clearInterval(beats) },
            vscode.window.onDidChangeWindowState(() => this.beat()),
            vscode.workspace.onDidChangeWorkspaceFolders(() => this.beat()),
            vscode.workspace.onDidGrantWorkspaceTrust(() => this.beat()),
            this.changes,
        ];
    }

    /** Asks the agent something; an error is a sentence for the user. */
    async request<P, A>(type: RequestType<P, A, void>, params: P): Promise<A> {
        if (this.connection === undefined) {
            throw new AgentGone();
        }
        try {
            return await this.connection.sendRequest(type, params);
        } catch (error) {
            const isAnswer = error instanceof ResponseError && error.code !== ErrorCodes.PendingResponseRejected;
            throw isAnswer ? error : new AgentGone();
        }
    }

    /** While a start is under way there is no other one. */
    start(anew = false): Promise<void> {
        this.starting ??= this.startOnce(anew).finally(() => (this.starting = undefined));
        return this.starting;
    }

    private async startOnce(anew: boolean): Promise<void> {
        if (this.ended || this.child !== undefined) {
            return;
        }
        clearTimeout(this.retry);
        this.show(undefined, undefined);
        try {
            const folder = await this.options.binaries(anew);
            if (!this.hasEnded()) {
                this.spawn(path.join(folder, 'baton-agent'));
            }
        } catch (error) {
            this.failToStart(reason(error));
        }
    }

    /** Starts the agent anew, now; when it did not work, with a fresh copy of the programs. */
    async restart(): Promise<void> {
        this.nCrashes = 0;
        const anew = this.problem !== undefined;
        if (this.child === undefined) {
            await this.start(anew);
        } else {
            this.restarting = true;
            this.endInput(this.child);
        }
    }

    private spawn(program: string): void {
        const folders = localFolders().flatMap((folder) => ['--folder', folder]);
        const child = spawn(
            program,
            [
                ...['--storage', this.options.storage, '--kind', 'vscode', '--name', windowName()],
                ...['--auto-start', String(configuration().get('autoStart', true)), ...folders],
            ],
            { stdio: ['pipe', 'pipe', 'pipe'], env: cleanEnvironment(), cwd: os.homedir(), windowsHide: true },
        );
        this.child = child;
        const startedAt = Date.now();
        let failure: string | undefined;
        let lastError: string | undefined;
        child.on('error', (error) => (failure = error.message));
        child.stdin.on('error', () => undefined);
        readline.createInterface({ input: child.stderr }).on('line', (line) => {
            lastError = this.logLine(line) ?? lastError;
        });
        const connection = createMessageConnection(child.stdout, child.stdin);
        child.on('close', (code, signal) => {
            connection.dispose();
            if (this.child !== child) {
                return;
            }
            this.child = undefined;
            this.connection = undefined;
            this.hung = undefined;
            clearTimeout(this.silence);
            if (Date.now() - startedAt > GOOD_AFTER_MS) {
                this.nCrashes = 0;
            } else if (code === EXIT_FAILURE) {
                // What it says last, when it cannot start, is why.
                failure ??= lastError;
            }
            this.onEnd(failure, code, signal);
        });
        this.connection = connection;
        connection.onError(([error]) => this.log.warn(`channel: ${error.message}`));
        connection.onNotification(BeatHeard, () => this.onHeard());
        connection.onNotification(StandingChanged, (standing) => this.onStanding(standing));
        const silent = () => this.fail('agent_silent', vscode.l10n.t('Baton\'s agent started but is not responding.'));
        this.silence = setTimeout(silent, SILENT_AFTER_MS);
        this.options.serve(connection);
        connection.listen();
        [this.heard, this.nUnanswered] = [true, 0];
        this.beat();
        this.options.greet();
    }

    private onStanding(standing: Standing): void {
        clearTimeout(this.silence);
        this.hung = undefined;
        const { version } = this.options;
        if (standing.version === version) {
            this.show(standing, standing.problem ?? undefined);
        } else if (this.child !== undefined) {
            // It is told of in the end, and not run again by itself.
            const text = vscode.l10n.t('Baton\'s agent is version {0}, but this extension requires {1}.', standing.version ?? '?', version);
            this.fail('other_version', text);
            this.endInput(this.child);
        }
    }

    private onEnd(failure: string | undefined, code: number | null, signal: string | null): void {
        if (this.ended) {
            return;
        }
        if (code === EXIT_RESTART || this.restarting) {
            const anew = this.restarting && this.problem !== undefined;
            this.restarting = false;
            void this.start(anew);
            return;
        }
        if (this.problem?.code === 'other_version') {
            return;
        }
        const how = failure ?? (signal === null ? `exit code ${code}` : `signal ${signal}`);
        this.log.error(`the agent ended: ${how}`);
        const pause = PAUSES_MS[this.nCrashes] ?? LAST_PAUSE_MS;
        this.nCrashes += 1;
        if (failure !== undefined) {
            this.failToStart(failure);
        } else if (this.nCrashes > N_QUIET_CRASHES) {
            this.fail('agent_ended', vscode.l10n.t('Baton\'s agent exited unexpectedly ({0}) and is restarting.', how));
        } else {
            this.show(undefined, undefined);
        }
        this.retry = setTimeout(() => void this.start(), pause);
    }

    private failToStart(why: string): void {
        this.fail('agent_cannot_start', vscode.l10n.t('Can\'t start Baton\'s agent: {0}', why));
    }

    private fail(code: string, message: string): void {
        this.show(undefined, { code, message });
    }

    /** Asked again after each wait: it may have happened meanwhile. */
    private hasEnded(): boolean {
        return this.ended;
    }

    /** The agent's own log lines begin with their level, which VS Code writes as well; what an error says is given back. */
    private logLine(line: string): string | undefined {
        const [, level, text] = /^\s*(ERROR|WARN|INFO)\s+(.*)/.exec(line) ?? [];
        const write = level === 'ERROR' ? 'error' : level === 'WARN' ? 'warn' : 'info';
        this.log[write](text ?? line.trim());
        return level === 'ERROR' ? text : undefined;
    }

    /** Beats are counted, not milliseconds: when the machine slept, nobody answered. */
    private tick(): void {
        this.nUnanswered = this.heard ? 0 : this.nUnanswered + 1;
        this.heard = false;
        if (this.nUnanswered < MAX_UNANSWERED) {
            this.beat();
        } else if (this.standing?.state) {
            this.hung = this.standing;
            this.fail('agent_silent', vscode.l10n.t('Baton\'s agent in this window is not responding.'));
        }
    }

    private beat(): void {
        tell(this.connection, Beat, {
            focused: vscode.window.state.focused,
            name: windowName(),
            folders: localFolders(),
            trusted: vscode.workspace.isTrusted,
        });
    }

    private onHeard(): void {
        this.heard = true;
        if (this.hung !== undefined) {
            this.show(this.hung, this.hung.problem ?? undefined);
            this.hung = undefined;
        }
    }

    private show(standing: Standing | undefined, problem: Problem | undefined): void {
        this.standing = standing;
        this.problem = problem;
        this.changes.fire();
    }

    /** The agent ends with its input. */
    private endInput(child: ChildProcess): void {
        const kill = setTimeout(() => child.kill('SIGKILL'), END_MS);
        child.once('close', () => clearTimeout(kill));
        child.stdin?.end();
    }

    /** Ends the agent; resolves when it has ended. */
    async end(): Promise<void> {
        this.dispose();
        const child = this.child;
        if (child !== undefined) {
            await new Promise<void>((resolve) => {
                child.once('close', () => resolve());
                this.endInput(child);
            });
        }
    }

    dispose(): void {
        this.ended = true;
        clearTimeout(this.retry);
        clearTimeout(this.silence);
        for (const subscription of this.subscriptions) {
            subscription.dispose();
        }
    }
}

/** Tells an agent something. One that is gone hears everything again when it is back. */
export function tell<P>(connection: MessageConnection | undefined, type: NotificationType<P>, params: P): void {
    try {
        void connection?.sendNotification(type, params).catch(() => undefined);
    } catch {
        // A connection that has closed throws instead of failing.
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
    const port = configuration().inspect<number>('port')?.globalValue;
    const wanted = port === undefined ? {} : { BATON_PORT: String(port) };
    return { ...wanted, ...Object.fromEntries(entries) };
}
