// Lends VS Code's debugger to the agent: starts configurations, passes DAP requests and messages on, and keeps the
// agent's breakpoints and the editor's the same. Its sentences are for the AI client, and English.

import * as path from 'node:path';

import * as vscode from 'vscode';
import type { MessageConnection, NotificationType } from 'vscode-jsonrpc/node';

import { isOnDisk, tell } from './agent';
import { type DapMessage, RESUMES, StopFocus, followUser } from './focus';
import { Passing } from './passing';
import { reason, warn } from './problems';
import {
    AddEditorBreakpoint,
    type EditorBreakpoint,
    EditorBreakpointsChanged,
    EditorDebuggersChanged,
    type EditorLaunch,
    EditorLaunchChanged,
    type EditorRequest,
    type EditorResponse,
    EditorSessionBegan,
    EditorSessionEnded,
    EditorSessionMessage,
    type EditorStart,
    type EditorStarted,
    GiveUpInEditor,
    RemoveEditorBreakpoints,
    type EditorExceptions,
    RequestInEditor,
    SetEditorExceptions,
    StartInEditor,
    StopInEditor,
} from './protocol';
import { leftToVscode, unlessTaskFails } from './tasks';

/** Names the start a session came of; VS Code hands unknown fields of a configuration on. */
const START_FIELD = '__batonStart';

/** What the agent hears of the conversation between editor and adapter. */
const EVENTS = new Set(['process', 'stopped', 'continued', 'thread', 'output', 'exited', 'terminated', 'breakpoint', 'capabilities']);
/** Those that end a session. */
const END_EVENTS = new Set(['exited', 'terminated']);
const BREAKPOINTS = ['setBreakpoints', 'setFunctionBreakpoints'];
const STARTS = new Set(['launch', 'attach']);
const RESPONSES = new Set(['initialize', ...STARTS, ...BREAKPOINTS]);
const ENDS = new Set(['disconnect', 'terminate']);
const REQUESTS = new Set(['setExceptionBreakpoints', 'configurationDone', 'restart', ...ENDS, ...BREAKPOINTS, ...RESUMES]);

/** Requests in which VS Code makes an address of the source's path, and in a remote window a wrong one. */
const WITH_SOURCE = new Set(['gotoTargets', 'breakpointLocations', 'source']);

/** How long an end waits for the other parts of a compound: one of them may ask the person something. */
const LONGEST_HOLD_MS = 30_000;

/**
 * The types of js-debug. Asked to end while it starts a program, it ends itself alone: the program begins a moment later,
 * and runs on with no debugger.
 */
const ENDS_AFTER_START = new Set(['node', 'node-terminal', 'extensionHost', 'chrome', 'msedge'].flatMap((type) => [type, `pwa-${type}`]));
/** How long it may take to start one that is to end. */
const LONGEST_START_MS = 10_000;

type Configuration = vscode.DebugConfiguration;
interface ExceptionArguments {
    filters: string[];
    filterOptions: { filterId: string }[];
}
interface Compound {
    name: string;
    /** Whatever is written there. */
    configurations?: unknown;
    preLaunchTask?: unknown;
    stopAll?: boolean;
}
/** The sections of a launch.json. */
interface Launch {
    configurations: Configuration;
    compounds: Compound;
}
type Folder = vscode.WorkspaceFolder | undefined;
interface Part {
    folder: Folder;
    configuration: Configuration;
}
/** What a name stands for: one configuration, or the parts of a compound. */
interface Found {
    folder: Folder;
    parts: Part[];
    compound?: Compound;
}

/** A session of the editor, whoever started it. */
interface Known {
    session: vscode.DebugSession;
    focus: StopFocus;
    passing: Passing;
    /** Comes when the adapter has answered the start. */
    started: Promise<void>;
    /** What an agent that comes later has to hear: what the adapter can, and where the program stands. */
    capabilities?: DapMessage;
    stopped?: DapMessage | undefined;
    /** It has ended by itself. */
    isOver?: boolean;
    /** A client has ended it. */
    isEnding?: boolean;
    /** It is ended because another part of its compound has not started. */
    isGivenUp?: boolean;
    /** VS Code has told the adapter which exceptions stop it; from now on it is the user who chooses. */
    hasExceptions?: boolean;
}

export class EditorDebugger implements vscode.Disposable {
    private connection: MessageConnection | undefined;
    private readonly sessions = new Map<string, Known>();
    /** How often each has begun and ended: one that the user restarts keeps its id. */
    private readonly runs = new Map<string, { begun: number; ended: number }>();
    /** Starts whose sessions all end when somebody ends one of them (`stopAll`). */
    private readonly together = new Set<string>();
    /** Starts that are under way, and whether their client has given them up. */
    private readonly starting = new Map<string, boolean>();
    /** Sessions of starts that were given up. */
    private readonly turnedAway = new Set<string>();
    /** Ends of parts of compounds that are starting, by their starts. */
    private readonly held = new Map<string, (() => void)[]>();
    /** What a client chose. */
    private exceptions: EditorExceptions = {};
    private readonly subscriptions: vscode.Disposable[];

    constructor(private readonly log: vscode.LogOutputChannel) {
        this.subscriptions = [
            vscode.debug.registerDebugAdapterTrackerFactory('*', {
                createDebugAdapterTracker: (session) => this.track(session),
            }),
            followUser(),
            vscode.debug.onDidTerminateDebugSession((session) => this.onRunEnded(session)),
            vscode.debug.onDidChangeBreakpoints(() => this.tellBreakpoints()),
            vscode.workspace.onDidChangeConfiguration((change) => {
                if (change.affectsConfiguration('launch')) {
                    this.tell(EditorLaunchChanged, besidesFolders());
                }
            }),
            vscode.extensions.onDidChange(() => this.tell(EditorDebuggersChanged, { types: knownTypes() })),
        ];
    }

    serve(connection: MessageConnection): void {
        this.connection = connection;
        connection.onRequest(StartInEditor, (wish) => this.start(wish));
        connection.onRequest(RequestInEditor, (request) => this.request(request));
        connection.onRequest(StopInEditor, async ({ session }) => {
            const known = this.sessions.get(session);
            // Without a session VS Code would end all of them.
            if (known !== undefined) {
                this.release(this.startOf(known.session));
                await endStarted(known);
            }
            return {};
        });
        connection.onRequest(GiveUpInEditor, async ({ start }) => {
            if (this.starting.has(start)) {
                this.starting.set(start, true);
            }
            this.release(start);
            await Promise.all(this.begunBy(start).map(endStarted));
            return {};
        });
        connection.onRequest(AddEditorBreakpoint, (wish) => {
            const breakpoint = toVscode(wish);
            vscode.debug.addBreakpoints([breakpoint]);
            return { ...wish, id: breakpoint.id };
        });
        this.exceptions = {};
        connection.onRequest(SetEditorExceptions, (exceptions) => {
            this.exceptions = exceptions;
            return {};
        });
        connection.onRequest(RemoveEditorBreakpoints, ({ ids }) => {
            vscode.debug.removeBreakpoints(vscode.debug.breakpoints.filter((known) => ids.includes(known.id)));
            return {};
        });
    }

    /** Tells a new agent what there is already. */
    greet(): void {
        this.tell(EditorDebuggersChanged, { types: knownTypes() });
        this.tell(EditorLaunchChanged, besidesFolders());
        this.tellBreakpoints();
        for (const { session, capabilities, stopped } of this.sessions.values()) {
            this.tellBegan(session);
            [capabilities, stopped].forEach((message) => message && this.tellMessage(session, message, true));
        }
    }

    private async start(wish: EditorStart): Promise<EditorStarted> {
        if (!vscode.workspace.isTrusted) {
            const message = vscode.l10n.t('An AI client wants to debug here, but you do not trust this workspace yet.');
            void warn({ code: 'untrusted', message });
            return failure('untrusted', 'The workspace is not trusted, so nothing is debugged in it; the user was asked to trust it.');
        }
        const found = wish.configuration ? fromWish(wish) : find(wish);
        if (typeof found === 'string') {
            return failure('unknown_configuration', `There is no launch configuration named ${found} in this window.`);
        }
        const unknown = unknownType(found);
        if (unknown !== undefined) {
            const message = `No installed extension debugs the type ${unknown}; ask the user to install one.`;
            return failure('unknown_type', message);
        }
        if (found.parts.length > 1) {
            this.hold(wish.start);
        }
        this.starting.set(wish.start, false);
        try {
            const isStarted = await this.startAll(found, wish);
            return isStarted ? { failure: null } : failure('start_failed', 'VS Code did not start it; its own message in the window says why.');
        } catch (error) {
            return failure('start_failed', reason(error));
        } finally {
            this.starting.delete(wish.start);
            this.release(wish.start);
        }
    }

    /**
     * Starts the parts of a compound as VS Code does, but all tasks first. Nothing of this may end in a dialog: nobody is
     * there who would expect it.
     */
    private async startAll({ folder, parts, compound }: Found, wish: EditorStart): Promise<boolean> {
        const options: vscode.DebugSessionOptions = { noDebug: wish.no_debug ?? false, suppressDebugView: true };
        // One that several parts name is run once.
        const tasks = new Map<string, Promise<unknown>>();
        const left = (label: unknown, of: Folder): Promise<unknown> => {
            const key = JSON.stringify([label, of?.uri.toString()]);
            const known = tasks.get(key) ?? leftToVscode(label, of);
            tasks.set(key, known);
            return known;
        };
        // A task that is VS Code's to run is run with the first part, before the others start.
        const first = (await left(compound?.preLaunchTask, folder)) ?? undefined;
        const starts: (() => Promise<boolean>)[] = [];
        for (const [idx, part] of parts.entries()) {
            const own = await left(part.configuration['preLaunchTask'], part.folder);
            const preLaunchTask = (idx === 0 ? first : undefined) ?? own;
            if (own && preLaunchTask !== own) {
                throw new Error('VS Code itself has to run two tasks before it, and takes one: start the parts by their names.');
            }
            const configuration = { ...part.configuration, [START_FIELD]: wish.start, preLaunchTask };
            const start = async () => !this.isGivenUp(wish.start) && (await vscode.debug.startDebugging(part.folder, configuration, options));
            starts.push(() => unlessTaskFails(preLaunchTask, part.folder, start));
        }
        if (compound?.stopAll === true) {
            this.together.add(wish.start);
        }
        const isHeadStarted = first === undefined || (await starts.shift()?.()) !== false;
        const others = isHeadStarted ? await Promise.allSettled(starts.map((start) => start())) : [];
        const isStarted = isHeadStarted && others.every((other) => other.status === 'fulfilled' && other.value);
        if (!isStarted) {
            this.together.delete(wish.start);
            const begun = this.begunBy(wish.start);
            for (const known of begun) {
                known.isGivenUp = true;
                // One that has come to no session tells nothing itself.
                const output = `Another part of ${compound?.name} did not start, so this one is ended.`;
                this.tellMessage(known.session, { type: 'event', seq: 0, event: 'output', body: { category: 'important', output } }, true);
            }
            await Promise.all(begun.map(endStarted));
        }
        const refused = others.find((other) => other.status === 'rejected');
        if (refused !== undefined) {
            throw refused.reason;
        }
        return isStarted;
    }

    /** The programs that a start has led to, as far as they have not ended. */
    private begunBy(start: string): Known[] {
        return [...this.sessions.values()].filter(({ session }) => session.parentSession === undefined && this.startOf(session) === start);
    }

    private async request({ session, command, arguments: args }: EditorRequest): Promise<EditorResponse> {
        const known = this.sessions.get(session);
        if (known === undefined) {
            return { refusal: 'the session has ended' };
        }
        known.focus.onClient(command);
        if (RESUMES.has(command)) {
            known.passing.onResume();
        }
        if (WITH_SOURCE.has(command)) {
            addressSource(args);
        }
        try {
            return { body: await known.passing.send(command, args) };
        } catch (error) {
            return { refusal: reason(error) };
        }
    }

    private isGivenUp(start: string | null): boolean {
        return start !== null && this.starting.get(start) === true;
    }

    /** Ends what nobody waits for any more. Before its adapter answers, VS Code takes no end of it. */
    private turnAway(session: vscode.DebugSession): vscode.DebugAdapterTracker {
        this.turnedAway.add(session.id);
        return {
            onDidSendMessage: (message: DapMessage) => {
                withoutDialog(message);
                const isDue = ENDS_AFTER_START.has(session.type) ? isStartAnswer(message) : message.command === 'initialize';
                if (isDue) {
                    void vscode.debug.stopDebugging(session);
                }
            },
        };
    }

    private track(session: vscode.DebugSession): vscode.DebugAdapterTracker {
        if (this.isGivenUp(this.startOf(session))) {
            return this.turnAway(session);
        }
        const parentId = session.parentSession?.id ?? '';
        const parent = this.sessions.get(parentId);
        if (parent?.isEnding === true || this.turnedAway.has(parentId)) {
            // It ends with its parent, of which nobody hears any more.
            return {};
        }
        const isClients = this.startOf(session) !== null || parent?.focus.isClients === true;
        const passing = new Passing(session);
        let setStarted = (): void => undefined;
        const started = new Promise<void>((resolve) => (setStarted = resolve));
        const known: Known = { session, focus: new StopFocus(session, isClients, () => passing.idle()), passing, started };
        const runs = this.runs.get(session.id) ?? { begun: 0, ended: 0 };
        runs.begun += 1;
        this.runs.set(session.id, runs);
        if (this.sessions.has(session.id)) {
            this.onEnded(session);
        }
        this.sessions.set(session.id, known);
        this.tellBegan(session);
        return {
            onDidSendMessage: (message: DapMessage) => {
                known.focus.onReceived(message);
                known.passing.onReceived(message);
                if (known.focus.isClients) {
                    withoutDialog(message);
                }
                if (message.command === 'initialize') {
                    known.capabilities = message;
                } else if (message.event === 'stopped' || message.event === 'continued') {
                    known.stopped = message.event === 'stopped' ? message : undefined;
                } else if (message.event === 'terminated') {
                    known.isOver = true;
                }
                if (isStartAnswer(message)) {
                    setStarted();
                }
                this.tellMessage(session, message, true);
            },
            onWillReceiveMessage: (message: DapMessage) => {
                known.focus.onSent(message, known.passing.onSent(message));
                // One that is restarted is not stopped.
                if (ENDS.has(message.command ?? '') && known.isOver !== true && message.arguments?.restart !== true) {
                    this.onStopped(session);
                }
                this.chooseExceptions(known, message);
                // What nobody asked for is not told as the user's.
                if (!(known.isGivenUp === true && ENDS.has(message.command ?? ''))) {
                    this.tellMessage(session, message, false);
                }
            },
            onError: ({ message }) => {
                this.log.warn(`${session.name}: ${message}`);
                // Later ones are the connection's, at its end.
                if (known.capabilities === undefined) {
                    const output = { category: 'important', output: message };
                    this.tellMessage(session, { type: 'event', seq: 0, event: 'output', body: output }, true);
                }
            },
            onExit: () => {
                if (this.sessions.get(session.id) === known) {
                    this.onEnded(session);
                }
            },
        };
    }

    /** Puts a client's choice in the place of the user's when a session of the client's begins. */
    private chooseExceptions(known: Known, message: DapMessage): void {
        if (message.command !== 'setExceptionBreakpoints' || known.hasExceptions) {
            return;
        }
        known.hasExceptions = true;
        const chosen = this.exceptions.arguments as ExceptionArguments | null | undefined;
        if (chosen && known.focus.isClients) {
            const { exceptionBreakpointFilters = [], supportsExceptionFilterOptions } = known.capabilities?.body ?? {};
            const offered = new Set(exceptionBreakpointFilters.map(({ filter }) => filter));
            const filterOptions = chosen.filterOptions.filter(({ filterId }) => offered.has(filterId));
            message.arguments = {
                filters: chosen.filters.filter((filter) => offered.has(filter)),
                ...(supportsExceptionFilterOptions ? { filterOptions } : {}),
            };
        }
    }

    private tellBegan(session: vscode.DebugSession): void {
        this.tell(EditorSessionBegan, {
            session: session.id,
            parent: session.parentSession?.id ?? null,
            name: session.name,
            kind: session.type,
            request: session.configuration.request,
            start: this.startOf(session),
        });
    }

    private tellMessage(session: vscode.DebugSession, message: DapMessage, from_adapter: boolean): void {
        if (!isOfInterest(message, from_adapter)) {
            return;
        }
        const tell = (): void => this.tell(EditorSessionMessage, { session: session.id, from_adapter, message });
        // VS Code clears away what is over.
        const isClearing = ENDS.has(message.command ?? '') && this.sessions.get(session.id)?.isOver === true;
        if (isClearing || END_EVENTS.has(message.event ?? '')) {
            this.tellEnd(session, tell);
        } else {
            tell();
        }
    }

    /** A part of a compound that ended before another one began would leave that one to nobody. */
    private tellEnd(session: vscode.DebugSession, tell: () => void): void {
        const held = this.held.get(this.startOf(session) ?? '');
        if (held === undefined) {
            tell();
        } else {
            held.push(tell);
        }
    }

    private hold(start: string): void {
        this.held.set(start, []);
        setTimeout(() => this.release(start), LONGEST_HOLD_MS);
    }

    private release(start: string | null): void {
        const held = this.held.get(start ?? '') ?? [];
        this.held.delete(start ?? '');
        held.forEach((tell) => tell());
    }

    private startOf(session: vscode.DebugSession): string | null {
        const mark: unknown = session.configuration[START_FIELD];
        return typeof mark === 'string' ? mark : null;
    }

    /** VS Code may tell the end of a run when the next has begun already. */
    private onRunEnded(session: vscode.DebugSession): void {
        const runs = this.runs.get(session.id);
        if (runs !== undefined && ++runs.ended < runs.begun) {
            return;
        }
        this.runs.delete(session.id);
        this.turnedAway.delete(session.id);
        this.onEnded(session);
    }

    private onEnded(session: vscode.DebugSession): void {
        if (this.sessions.delete(session.id)) {
            this.tellEnd(session, () => this.tell(EditorSessionEnded, { session: session.id }));
        }
        const start = this.startOf(session);
        if (start !== null && ![...this.sessions.values()].some((other) => this.startOf(other.session) === start)) {
            this.together.delete(start);
        }
    }

    /** Somebody ends a session: with it end those that are to. */
    private onStopped(session: vscode.DebugSession): void {
        const start = this.startOf(session);
        if (start !== null && this.together.delete(start)) {
            const others = this.begunBy(start).filter((other) => other.session !== session);
            others.forEach((other) => void endStarted(other));
        }
    }

    private tellBreakpoints(): void {
        const breakpoints = vscode.debug.breakpoints
            .filter((known) => known instanceof vscode.FunctionBreakpoint || known instanceof vscode.SourceBreakpoint)
            .filter((known) => known instanceof vscode.FunctionBreakpoint || isOnDisk(known.location.uri))
            .map(fromVscode);
        this.tell(EditorBreakpointsChanged, { breakpoints });
    }

    private tell<P>(type: NotificationType<P>, params: P): void {
        tell(this.connection, type, params);
    }

    dispose(): void {
        for (const subscription of this.subscriptions) {
            subscription.dispose();
        }
    }
}

function failure(code: string, message: string): EditorStarted {
    return { failure: { code, message } };
}

function isStartAnswer({ type, command = '' }: DapMessage): boolean {
    return type === 'response' && STARTS.has(command);
}

/** Ends a session; one whose adapter would leave its program behind when it has started that. */
async function endStarted(known: Known): Promise<void> {
    const { session, started } = known;
    known.isEnding = true;
    if (ENDS_AFTER_START.has(session.type)) {
        await Promise.race([started, new Promise((resolve) => setTimeout(resolve, LONGEST_START_MS))]);
    }
    await vscode.debug.stopDebugging(session);
}

/** A program that could not be started is told to the client; VS Code would hold its own message open until it is closed. */
function withoutDialog(message: DapMessage): void {
    if (isStartAnswer(message) && message.success === false) {
        const { error } = message.body ?? {};
        const told = error?.format === undefined ? { id: 0, format: message.message ?? '' } : error;
        message.body = { ...message.body, error: { ...told, showUser: false } };
    }
}

function isOfInterest(message: DapMessage, fromAdapter: boolean): boolean {
    if (message.type === 'event') {
        return EVENTS.has(message.event ?? '') && message.body?.category !== 'telemetry';
    }
    return (fromAdapter ? RESPONSES : REQUESTS).has(message.command ?? '');
}

/** As an address of this machine, the path comes back to it as it was. */
function addressSource(args: unknown): void {
    const source = (args as { source?: { path?: unknown } } | null)?.source;
    if (typeof source?.path === 'string' && path.isAbsolute(source.path)) {
        source.path = vscode.Uri.file(source.path);
    }
}

function fromWish(wish: EditorStart): Found {
    const folder = vscode.workspace.workspaceFolders?.find((known) => known.uri.fsPath === wish.folder);
    return { folder, parts: [{ folder, configuration: wish.configuration as Configuration }] };
}

/** Looks in the folder that was named, or in all, and in the workspace file; or gives the name that nothing has. */
function find(wish: EditorStart): Found | string {
    const folders = vscode.workspace.workspaceFolders ?? [];
    const places = folders.filter((folder) => wish.folder == null || folder.uri.fsPath === wish.folder);
    for (const folder of [...places, undefined]) {
        const configuration = named(wish.name, 'configurations', folder);
        if (configuration !== undefined) {
            return { folder, parts: [{ folder, configuration }] };
        }
        const compound = named(wish.name, 'compounds', folder);
        if (compound !== undefined) {
            return findParts(compound, folder);
        }
    }
    return wish.name;
}

/** A part is in the folder that it names; else in that of the compound, or in another. */
function findParts(compound: Compound, own: Folder): Found | string {
    const all: Folder[] = [...(vscode.workspace.workspaceFolders ?? []), undefined];
    const parts: Part[] = [];
    const written: unknown[] = Array.isArray(compound.configurations) ? compound.configurations : [];
    if (written.length === 0) {
        return `in ${compound.name}, a compound`;
    }
    for (const part of written) {
        const wish = (typeof part === 'string' ? { name: part } : (part ?? {})) as { name?: string; folder?: string };
        const places = wish.folder === undefined ? [own, ...all] : all.filter((folder) => folder?.name === wish.folder);
        const found = places.map((folder) => ({ folder, configuration: named(wish.name ?? '', 'configurations', folder) }));
        const first = found.find((place): place is Part => place.configuration !== undefined);
        if (first === undefined) {
            return `${wish.name ?? JSON.stringify(part)} (a part of ${compound.name})`;
        }
        parts.push(first);
    }
    return { folder: own, parts, compound };
}

function named<S extends keyof Launch>(name: string, section: S, folder: Folder): Launch[S] | undefined {
    const values = vscode.workspace.getConfiguration('launch', folder?.uri ?? null).inspect<Launch[S][]>(section);
    const all = objectsOf([values?.workspaceFolderValue, values?.workspaceValue, values?.globalValue]);
    return all.find((item) => item.name === name);
}

/** What is not in a folder's launch.json, which the agent reads itself. */
function besidesFolders(): EditorLaunch {
    const launch = vscode.workspace.getConfiguration('launch', null);
    const section = (name: string): Record<string, unknown>[] => {
        const values = launch.inspect<Record<string, unknown>[]>(name);
        // Without a workspace file the one folder is the workspace.
        const ofWorkspace = vscode.workspace.workspaceFile === undefined ? undefined : values?.workspaceValue;
        return objectsOf([ofWorkspace, values?.globalValue]);
    };
    return { configurations: section('configurations'), compounds: section('compounds'), inputs: section('inputs') };
}

/** The objects of all lists; what VS Code hands out is frozen, and may be anything. */
function objectsOf<T>(lists: (T[] | undefined)[]): T[] {
    const all = lists.flatMap((list) => (Array.isArray(list) ? list : []));
    return JSON.parse(JSON.stringify(all.filter((item) => typeof item === 'object' && item !== null))) as T[];
}

/** The type of a configuration that nothing contributes: VS Code would ask the user in a dialog. */
function unknownType({ parts }: Found): string | undefined {
    const known = knownTypes();
    return parts.map(({ configuration }) => configuration.type).find((type) => !known.includes(type));
}

/** What some extension debugs. */
function knownTypes(): string[] {
    return vscode.extensions.all.flatMap(({ packageJSON }) => {
        const { contributes } = packageJSON as { contributes?: { debuggers?: { type: string }[] } };
        return (contributes?.debuggers ?? []).map(({ type }) => type);
    });
}

function fromVscode(breakpoint: vscode.SourceBreakpoint | vscode.FunctionBreakpoint): EditorBreakpoint {
    const location = breakpoint instanceof vscode.SourceBreakpoint ? breakpoint.location : undefined;
    const { line = 0, character = 0 } = location?.range.start ?? {};
    return {
        id: breakpoint.id,
        path: location?.uri.fsPath ?? '',
        line: line + 1,
        column: character > 0 ? character + 1 : null,
        enabled: breakpoint.enabled,
        condition: breakpoint.condition ?? null,
        hit_condition: breakpoint.hitCondition ?? null,
        log_message: breakpoint.logMessage ?? null,
        function: breakpoint instanceof vscode.FunctionBreakpoint ? breakpoint.functionName : null,
    };
}

function toVscode(wish: EditorBreakpoint): vscode.Breakpoint {
    const conditions = [wish.enabled, wish.condition ?? undefined, wish.hit_condition ?? undefined] as const;
    if (wish.function != null) {
        return new vscode.FunctionBreakpoint(wish.function, ...conditions);
    }
    const position = new vscode.Position(wish.line - 1, (wish.column ?? 1) - 1);
    const location = new vscode.Location(vscode.Uri.file(wish.path), position);
    return new vscode.SourceBreakpoint(location, ...conditions, wish.log_message ?? undefined);
}
