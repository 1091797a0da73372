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
    RemoveEditorBreakpoints,
    type EditorExceptions,
    RequestInEditor,
    SetEditorExceptions,
    StartInEditor,
    StopInEditor,
} from './protocol';
import { runTaskOf, unlessTaskFails } from './tasks';

/** Names the start a session came of; VS Code hands unknown fields of a configuration on. */
const START_FIELD = '__batonStart';

/** What the agent hears of the conversation between editor and adapter. */
const EVENTS = new Set(['process', 'stopped', 'continued', 'thread', 'output', 'exited', 'terminated', 'breakpoint', 'capabilities']);
const BREAKPOINTS = ['setBreakpoints', 'setFunctionBreakpoints'];
const RESPONSES = new Set(['initialize', 'launch', 'attach', ...BREAKPOINTS]);
const REQUESTS = new Set(['setExceptionBreakpoints', 'configurationDone', 'disconnect', 'terminate', ...BREAKPOINTS, ...RESUMES]);

/** Requests in which VS Code makes an address of the source's path, and in a remote window a wrong one. */
const WITH_SOURCE = new Set(['gotoTargets', 'breakpointLocations', 'source']);

type Configuration = vscode.DebugConfiguration;
interface ExceptionArguments {
    filters: string[];
    filterOptions: { filterId: string }[];
}
interface Compound {
    name: string;
    configurations: (string | { name: string })[];
}
type Found =
    | { kind: 'configuration'; folder: vscode.WorkspaceFolder | undefined; configuration: Configuration }
    | { kind: 'compound'; folder: vscode.WorkspaceFolder | undefined; compound: Compound };

/** A session of the editor, whoever started it. */
interface Known {
    session: vscode.DebugSession;
    focus: StopFocus;
    passing: Passing;
    /** What an agent that comes later has to hear: what the adapter can, and where the program stands. */
    capabilities?: DapMessage;
    stopped?: DapMessage | undefined;
    /** VS Code has told the adapter which exceptions stop it; from now on it is the user who chooses. */
    hasExceptions?: boolean;
}

export class EditorDebugger implements vscode.Disposable {
    private connection: MessageConnection | undefined;
    private readonly sessions = new Map<string, Known>();
    /** Compounds under way: their sessions carry no mark of ours and are known by name. */
    private readonly compounds = new Map<string, Set<string>>();
    /** What a client chose. */
    private exceptions: EditorExceptions = {};
    private readonly subscriptions: vscode.Disposable[];

    constructor(private readonly log: vscode.LogOutputChannel) {
        this.subscriptions = [
            vscode.debug.registerDebugAdapterTrackerFactory('*', {
                createDebugAdapterTracker: (session) => this.track(session),
            }),
            followUser(),
            vscode.debug.onDidTerminateDebugSession((session) => this.onEnded(session)),
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
                await vscode.debug.stopDebugging(known.session);
            }
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
        if (found === undefined) {
            const message = `There is no launch configuration named ${wish.name} in this window.`;
            return failure('unknown_configuration', message);
        }
        const unknown = unknownType(found);
        if (unknown !== undefined) {
            const message = `No installed extension debugs the type ${unknown}; ask the user to install one.`;
            return failure('unknown_type', message);
        }
        try {
            const isStarted = await this.startFound(found, wish);
            return isStarted ? { failure: null } : failure('start_failed', 'VS Code did not start it; its own message in the window says why.');
        } catch (error) {
            return failure('start_failed', reason(error));
        }
    }

    /** Nothing of this may end in a dialog: nobody is there who would expect it. */
    private async startConfiguration(folder: vscode.WorkspaceFolder | undefined, given: Configuration, options: vscode.DebugSessionOptions): Promise<boolean> {
        const task = await runTaskOf(given, folder);
        if (task.failure !== undefined) {
            throw new Error(task.failure);
        }
        const configuration = task.hasRun ? { ...given, preLaunchTask: undefined } : given;
        return unlessTaskFails(configuration, folder, () => vscode.debug.startDebugging(folder, configuration, options));
    }

    private async startFound(found: Found, wish: EditorStart): Promise<boolean> {
        const options: vscode.DebugSessionOptions = { noDebug: wish.no_debug ?? false, suppressDebugView: true };
        if (found.kind === 'configuration') {
            const configuration = { ...found.configuration, [START_FIELD]: wish.start };
            return this.startConfiguration(found.folder, configuration, options);
        }
        const names = found.compound.configurations.map((part) => (typeof part === 'string' ? part : part.name));
        this.compounds.set(wish.start, new Set(names));
        try {
            return await vscode.debug.startDebugging(found.folder, found.compound.name, options);
        } finally {
            this.compounds.delete(wish.start);
        }
    }

    private async request({ session, command, arguments: args }: EditorRequest): Promise<EditorResponse> {
        const known = this.sessions.get(session);
        if (known === undefined) {
            return { refusal: 'the session has ended' };
        }
        known.focus.onClient(command);
        if (WITH_SOURCE.has(command)) {
            addressSource(args);
        }
        try {
            return { body: await known.passing.send(known.session, command, args) };
        } catch (error) {
            return { refusal: reason(error) };
        }
    }

    private track(session: vscode.DebugSession): vscode.DebugAdapterTracker {
        const parent = session.parentSession && this.sessions.get(session.parentSession.id);
        const isClients = this.startOf(session) !== null || parent?.focus.isClients === true;
        const passing = new Passing();
        const known: Known = { session, focus: new StopFocus(session, isClients, () => passing.idle()), passing };
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
                }
                this.tellMessage(session, message, true);
            },
            onWillReceiveMessage: (message: DapMessage) => {
                known.focus.onSent(message, known.passing.onSent(message));
                this.chooseExceptions(known, message);
                this.tellMessage(session, message, false);
            },
            onError: ({ message }) => {
                this.log.warn(`${session.name}: ${message}`);
                // Later ones are the connection's, at its end.
                if (known.capabilities === undefined) {
                    const output = { category: 'important', output: message };
                    this.tellMessage(session, { type: 'event', seq: 0, event: 'output', body: output }, true);
                }
            },
            onExit: () => this.onEnded(session),
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
        if (isOfInterest(message, from_adapter)) {
            this.tell(EditorSessionMessage, { session: session.id, from_adapter, message });
        }
    }

    private startOf(session: vscode.DebugSession): string | null {
        const mark: unknown = session.configuration[START_FIELD];
        if (typeof mark === 'string') {
            return mark;
        }
        const isPart = ([, names]: [string, Set<string>]) => !session.parentSession && names.has(session.configuration.name);
        return [...this.compounds].find(isPart)?.[0] ?? null;
    }

    private onEnded(session: vscode.DebugSession): void {
        if (this.sessions.delete(session.id)) {
            this.tell(EditorSessionEnded, { session: session.id });
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

/** A program that could not be started is told to the client; VS Code would hold its own message open until it is closed. */
function withoutDialog(message: DapMessage): void {
    if ((message.command === 'launch' || message.command === 'attach') && message.success === false) {
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
    return { kind: 'configuration', folder, configuration: wish.configuration as Configuration };
}

/** Looks in the folder that was named, or in all, and in the workspace file. */
function find(wish: EditorStart): Found | undefined {
    const folders = vscode.workspace.workspaceFolders ?? [];
    const places = folders.filter((folder) => wish.folder == null || folder.uri.fsPath === wish.folder);
    for (const folder of [...places, undefined]) {
        const launch = vscode.workspace.getConfiguration('launch', folder?.uri ?? null);
        const configuration = sectionOf<Configuration>(launch, 'configurations').find(({ name }) => name === wish.name);
        if (configuration !== undefined) {
            return { kind: 'configuration', folder, configuration };
        }
        const compound = sectionOf<Compound>(launch, 'compounds').find(({ name }) => name === wish.name);
        if (compound !== undefined) {
            return { kind: 'compound', folder, compound };
        }
    }
    return undefined;
}

function sectionOf<T>(launch: vscode.WorkspaceConfiguration, section: string): T[] {
    const values = launch.inspect<T[]>(section);
    return objectsOf([values?.workspaceFolderValue, values?.workspaceValue, values?.globalValue]);
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
function unknownType(found: Found): string | undefined {
    if (found.kind === 'compound') {
        return undefined;
    }
    const { type } = found.configuration;
    return knownTypes().includes(type) ? undefined : type;
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
