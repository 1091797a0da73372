// What crosses the channel between the agent and this extension.
// Generated from proto/src/shim.rs; never edited by hand.

import { NotificationType, RequestType } from 'vscode-jsonrpc/node';

/** How often the extension host gives a sign of life, in milliseconds. */
export const HEARTBEAT_MS = 1500;
/** Exit code of an agent that is to be started again at once. */
export const EXIT_RESTART = 75;

/** A verb and the window it is meant for. */
export interface Action {
    /** What to do. */
    verb: Verb;
    /** To which window; absent: to this one. */
    window?: WindowId | null;
}

/** The window's auto-start setting. */
export interface AutoStart {
    /** On or off. */
    auto_start: boolean;
}

/** What to paste into a client's file; a sentence that says what was done, when it was to be written there. */
export interface ClientConfig {
    /** The file that it is to be pasted into; absent when it was written there. */
    file?: string | null;
    /** What `baton config` prints. */
    text: string;
}

/** Which client's configuration is wanted. */
export interface ClientConfigWish {
    /** `ClientName::id`. */
    client: string;
    /** How the client reaches Baton; absent: what works best for it. */
    transport?: Transport | null;
    /** It is written into the client's own file. */
    write?: boolean;
}

/** An AI client. */
export interface ClientName {
    /** As `baton config` takes it. */
    id: string;
    /** For people. */
    label: string;
}

/** The AI clients there are configurations for. */
export interface Clients {
    /** In the order to show them. */
    clients: ClientName[];
}

/** Whether the changes were made. */
export interface CodeApplied {
    /** The file whose text is another one; nothing was changed then. */
    changed?: string | null;
    /** Why else nothing was changed. */
    failure?: string | null;
}

/** A command of VS Code's. */
export interface CodeCommand {
    /** Its arguments. An object with the one member `$path`, `$position` (line, character) or `$range` (twice that) stands for VS Code's own; one with `$kept` (a number of `CodeResult::kept`, an index) for what is kept. */
    arguments: unknown[];
    /** Its id. */
    command: string;
    /** Whether later commands need the objects of the result. */
    keep?: boolean;
}

/** A range, counted in UTF-16 from 0, and its new text. */
export interface CodeEdit {
    /** Line, character, line, character. */
    range: number[];
    /** What is there then. */
    text: string;
}

/** Changes of several files. */
export interface CodeEdits {
    /** By file, as they are called before the operations, with all that these touch. */
    files: CodeFileEdits[];
    /** Before the edits, one after the other. */
    operations?: CodeFileOperation[];
}

/** A file, and what the agent knows of it. */
export interface CodeFile {
    /** SHA-256, in hex, of its text on disk with `\n` for every line break. */
    hash: string;
    /** Absolute path. */
    path: string;
}

/** Changes of a file. */
export interface CodeFileEdits {
    /** None touches another. */
    edits: CodeEdit[];
    /** SHA-256, in hex, of the text that the edits are for. */
    hash: string;
    /** Absolute path. */
    path: string;
}

/** A file or a folder that comes, goes or gets another name. */
export interface CodeFileOperation {
    /** Absolute path; absent: it is created. */
    from?: string | null;
    /** What is in a file that is created. */
    text?: string | null;
    /** Absolute path, where nothing is by then; absent: it is deleted. */
    to?: string | null;
}

/** What VS Code finds wrong in a file. */
export interface CodeFileProblems {
    /** Absolute path. */
    path: string;
    /** VS Code's diagnostics; severities count from 0. */
    problems: unknown[];
}

/** A file as VS Code has it. */
export interface CodeOpened {
    /** Whether a tab shows it. */
    in_tab: boolean;
    /** False when VS Code has not yet read what the disk holds. */
    is_current: boolean;
    /** VS Code's name of its language. */
    language: string;
    /** Extensions that are started for that language; they run now. */
    n_extensions: number;
    /** The files on disk whose text in VS Code is another. */
    unsaved: CodeText[];
}

/** What VS Code finds wrong. */
export interface CodeProblems {
    /** By file. */
    files: CodeFileProblems[];
    /** Milliseconds since the text of the file became what it is. */
    text_age_ms: number;
    /** Milliseconds since VS Code was told of problems of that text; null when it was not. */
    told_age_ms?: number | null;
}

/** What a command gave. */
export interface CodeResult {
    /** Where its objects are kept, for a while. */
    kept?: number | null;
    /** As plain objects; what the language server protocol has looks as it does there, but for numbers of kinds, which count from 0. */
    result?: unknown;
}

/** One file, or all. */
export interface CodeScope {
    /** Absolute path. */
    path?: string | null;
}

/** A text that is not on disk. */
export interface CodeText {
    /** Absolute path. */
    path: string;
    /** All of it. */
    text: string;
}

/** A breakpoint of the editor. */
export interface EditorBreakpoint {
    /** 1-based. */
    column?: number | null;
    /** Stop only when this expression is true. */
    condition?: string | null;
    /** False when the user switched it off. */
    enabled: boolean;
    /** The function at whose beginning it is; path and line are nothing then. */
    function?: string | null;
    /** Stop only at some hits. */
    hit_condition?: string | null;
    /** VS Code's id; empty for one that is to be added. */
    id?: string;
    /** 1-based. */
    line: number;
    /** Log this instead of stopping. */
    log_message?: string | null;
    /** Absolute path. */
    path: string;
}

/** Breakpoints of the editor, by their ids. */
export interface EditorBreakpointIds {
    /** VS Code's ids. */
    ids: string[];
}

/** All breakpoints of the editor that are in source files or on functions. */
export interface EditorBreakpoints {
    /** In VS Code's order. */
    breakpoints: EditorBreakpoint[];
}

/** What the editor can debug. */
export interface EditorDebuggers {
    /** Types of configurations that an extension serves. */
    types: string[];
}

/** What a client chose instead of the user's own choice; sessions of the user's keep theirs. */
export interface EditorExceptions {
    /** Arguments of `setExceptionBreakpoints`, of which an adapter gets what it offers; null: the user's choice. */
    arguments?: Record<string, unknown> | null;
}

/** What the workspace file and the user's settings say under `launch`, as it is written. */
export interface EditorLaunch {
    /** Groups of configurations. */
    compounds: Record<string, unknown>[];
    /** Configurations. */
    configurations: Record<string, unknown>[];
    /** What the configurations can ask the user for. */
    inputs: Record<string, unknown>[];
}

/** A DAP message between the editor and an adapter. */
export interface EditorMessage {
    /** True when the adapter sent it, false when the editor did. */
    from_adapter: boolean;
    /** The message. */
    message: unknown;
    /** VS Code's id of the session. */
    session: string;
}

/** A DAP request for an adapter. */
export interface EditorRequest {
    /** Its arguments. */
    arguments?: unknown;
    /** The DAP command. */
    command: string;
    /** VS Code's id of the session. */
    session: string;
}

/** The answer of the adapter. */
export interface EditorResponse {
    /** Body of a successful response. */
    body?: unknown;
    /** What the adapter said when it refused. */
    refusal?: string | null;
}

/** A debug session of the editor, whoever started it. */
export interface EditorSession {
    /** Type of its configuration. */
    kind: string;
    /** Name of its configuration. */
    name: string;
    /** The session it is a child of. */
    parent?: string | null;
    /** `launch` or `attach`. */
    request: string;
    /** VS Code's id of the session. */
    session: string;
    /** `EditorStart::start`, when it came of one. */
    start?: string | null;
}

/** A session of the editor, by its id. */
export interface EditorSessionRef {
    /** VS Code's id of the session. */
    session: string;
}

/** Settings `baton.*` of the user's, by their names without `baton.`. */
export interface EditorSettings {
    /** Those that are to be carried out, as they stand in the user's file; the others stay as they are. */
    values: Record<string, unknown>;
}

/** What to start in the editor. */
export interface EditorStart {
    /** A configuration that is in no file; wins over `name`. */
    configuration?: Record<string, unknown> | null;
    /** The folder whose launch.json is meant; absent: any folder that has the name. */
    folder?: string | null;
    /** Name in launch.json; also of a compound. */
    name: string;
    /** Run without debugging. */
    no_debug?: boolean;
    /** Handed back in `EditorSession::start` by the sessions that come of it. */
    start: string;
}

/** A start, by its mark. */
export interface EditorStartRef {
    /** `EditorStart::start`. */
    start: string;
}

/** How the start went. */
export interface EditorStarted {
    /** Why nothing runs; null when it does. */
    failure?: Problem | null;
}

/** Where MCP is served. */
export interface Endpoint {
    /** The client token; for the `Authorization` header. */
    token: string;
    /** The stable URL. */
    url: string;
}

/** What the user says to it. */
export interface HandoverAnswer {
    /** True: make this window live. */
    agreed: boolean;
}

/** Who asks for this window. */
export interface HandoverQuestion {
    /** Name of the AI client. */
    client: string;
}

/** No content. */
export type Nothing = Record<string, never>;

/** Answer to a command of the user. */
export interface Outcome {
    /** Where it stands now. */
    state: WindowState;
    /** Its term when it is live. */
    term?: Term | null;
    /** The window it was done to. */
    window: WindowRef;
}

/** The coordinator's page, good for one use within a minute. */
export interface PagePlace {
    /** A file that leads there, for a browser on the agent's machine: its arguments can be read by everybody there. Null when it cannot be written. */
    file?: string | null;
    /** Where it is. */
    url: string;
}

/** The user moves the coordinator to another port. */
export interface PortChange {
    /** 1024 or higher. */
    port: number;
}

/** The coordinator listens on the new port; the old one answers for one more minute. */
export interface PortChanged {
    /** The new URL. */
    url: string;
}

/** Something that keeps Baton from working and that a person can mend. */
export interface Problem {
    /** What the sentence names (a port, a program); without it, the sentence can be translated. */
    args?: string[];
    /** Stable: `port_taken`, `coordinator_unreachable`, ... */
    code: string;
    /** One sentence that says what to try, in English; `{0}` stands for the first of `args`. */
    message: string;
}

/** They are carried out. */
export interface SettingsTaken {
    /** The new URL, when the port is another one now. */
    moved_to?: string | null;
}

/** Where this window stands, as the status bar shows it. */
export interface Standing {
    /** Whether it may become live by itself. */
    auto_start?: boolean;
    /** The live window. */
    live?: WindowRef | null;
    /** What a person has to do something about. */
    problem?: Problem | null;
    /** Where it stands; null while the agent has no coordinator. */
    state?: WindowState | null;
    /** The URL for clients; null while it is not known. */
    url?: string | null;
    /** Version of the agent. */
    version?: string;
    /** Why, in a few words. */
    why: string;
    /** This window. */
    window?: WindowId | null;
}

/** `baton status --json` while the coordinator runs. Scripts depend on the names. */
export interface Status {
    /** The window whose place is held (R6, R9). */
    awaiting?: WindowId | null;
    /** Its generation. */
    generation: number;
    /** The live window. */
    live?: WindowId | null;
    /** Process id of the coordinator. */
    pid: number;
    /** Its port. */
    port: number;
    /** Always true in an answer; false is what the command line prints when there is none. */
    running: boolean;
    /** Its term. */
    term?: Term | null;
    /** The URL for clients. */
    url: string;
    /** Version of its program. */
    version: string;
    /** What a person should know and do something about, a sentence each. */
    warnings?: string[];
    /** All windows, ordered by id. */
    windows: WindowStatus[];
}

/** The right to be live, ordered and strictly growing; on the wire `generation, seq`. */
export type Term = [number, number];

/** How a client reaches Baton. */
export type Transport = 'http' | 'stdio';

/** What the user can do to a window. */
export type Verb = 'take' | 'start' | 'stop' | 'restart';

/** A sign of life of the extension host. */
export interface WindowBeat {
    /** Whether the window is focused. */
    focused: boolean;
    /** Its absolute folders. */
    folders: string[];
    /** Name of the window. */
    name: string;
    /** Whether the user trusts the workspace; without trust nothing is debugged. */
    trusted: boolean;
}

/** The id of a window. It survives reloads of the window and restarts of its agent.  **Invariant:** 1 to 64 characters out of `A-Za-z0-9_-`, so that it can stand in a URL path and a file name. */
export type WindowId = string;

/** What a window is. */
export type WindowKind = 'vscode' | 'headless';

/** A window, named. */
export interface WindowRef {
    /** Its id. */
    id: WindowId;
    /** Its name. */
    name: string;
}

/** Where a window stands. */
export type WindowState = 'live' | 'standby' | 'off';

/** One window of `Status`. */
export interface WindowStatus {
    /** Its auto-start setting. */
    auto_start: boolean;
    /** Ids of its MCP debug sessions. */
    debug_sessions: string[];
    /** Its absolute folders. */
    folders: string[];
    /** Its id. */
    id: WindowId;
    /** VS Code or headless. */
    kind: WindowKind;
    /** When it was focused last, RFC 3339 in UTC; null when never. */
    last_focus?: string | null;
    /** Its name. */
    name: string;
    /** Process id of its agent. */
    pid: number;
    /** False while it is suspect (R10). */
    responsive: boolean;
    /** Where it stands. */
    state: WindowState;
}

/** What clients do in a window. */
export interface Work {
    /** Breakpoints on lines that clients set, by id. */
    breakpoints: WorkBreakpoint[];
    /** Clients that called, the latest first. */
    clients: WorkClient[];
    /** Debug sessions, the user's too, oldest first. */
    sessions: WorkSession[];
}

/** A breakpoint that a client set. */
export interface WorkBreakpoint {
    /** What the client calls itself, as far as that is known. */
    client?: string | null;
    /** As asked for. */
    condition?: string | null;
    /** From 1. */
    line: number;
    /** Absolute. */
    path: string;
}

/** A client that called. */
export interface WorkClient {
    /** What it calls itself. */
    name: string;
    /** Seconds since its last call began. */
    seconds: number;
}

/** A debug session. */
export interface WorkSession {
    /** The user started it. */
    by_user: boolean;
    /** As clients name it. */
    id: string;
    /** Name of its configuration. */
    name: string;
    /** Whether its program is stopped. */
    stopped: boolean;
}

export const Act = new RequestType<Action, Outcome, void>('window/act');
export const SetAutoStart = new RequestType<AutoStart, Outcome, void>('window/setAutoStart');
export const GetStatus = new RequestType<Nothing, Status, void>('baton/status');
export const ChangePort = new RequestType<PortChange, PortChanged, void>('baton/changePort');
export const TakeSettings = new RequestType<EditorSettings, SettingsTaken, void>('baton/settings');
export const ListClients = new RequestType<Nothing, Clients, void>('baton/clients');
export const GetClientConfig = new RequestType<ClientConfigWish, ClientConfig, void>('baton/clientConfig');
export const GetWork = new RequestType<Nothing, Work, void>('window/work');
export const OpenPage = new RequestType<Nothing, PagePlace, void>('baton/openPage');
export const GetEndpoint = new RequestType<Nothing, Endpoint, void>('baton/endpoint');
export const AskHandover = new RequestType<HandoverQuestion, HandoverAnswer, void>('window/askHandover');
export const StartInEditor = new RequestType<EditorStart, EditorStarted, void>('debug/start');
export const RequestInEditor = new RequestType<EditorRequest, EditorResponse, void>('debug/request');
export const StopInEditor = new RequestType<EditorSessionRef, Nothing, void>('debug/stop');
export const GiveUpInEditor = new RequestType<EditorStartRef, Nothing, void>('debug/giveUp');
export const AddEditorBreakpoint = new RequestType<EditorBreakpoint, EditorBreakpoint, void>('debug/addBreakpoint');
export const RemoveEditorBreakpoints = new RequestType<EditorBreakpointIds, Nothing, void>('debug/removeBreakpoints');
export const SetEditorExceptions = new RequestType<EditorExceptions, Nothing, void>('debug/setExceptions');
export const OpenInEditor = new RequestType<CodeFile, CodeOpened, void>('code/open');
export const ExecuteInEditor = new RequestType<CodeCommand, CodeResult, void>('code/execute');
export const GetEditorProblems = new RequestType<CodeScope, CodeProblems, void>('code/problems');
export const ApplyInEditor = new RequestType<CodeEdits, CodeApplied, void>('code/apply');
export const Beat = new NotificationType<WindowBeat>('window/beat');
export const EditorSessionBegan = new NotificationType<EditorSession>('debug/sessionBegan');
export const EditorSessionMessage = new NotificationType<EditorMessage>('debug/message');
export const EditorSessionEnded = new NotificationType<EditorSessionRef>('debug/sessionEnded');
export const EditorBreakpointsChanged = new NotificationType<EditorBreakpoints>('debug/breakpoints');
export const EditorDebuggersChanged = new NotificationType<EditorDebuggers>('debug/debuggers');
export const EditorLaunchChanged = new NotificationType<EditorLaunch>('debug/launch');
export const BeatHeard = new NotificationType<Nothing>('window/beatHeard');
export const StandingChanged = new NotificationType<Standing>('window/standing');
