// Where the program stands is shown without taking the focus from anybody, unless `baton.revealOnStop` asks for it.
//
// A `stopped` event makes VS Code bring the window to the front and move the keyboard into the editor. That is right
// after a step of the user's, and wrong while they type elsewhere and an AI client steps. With `preserveFocusHint` in
// the event VS Code leaves the focus alone, and shows nothing either: that is asked for by a command afterwards, unless
// it would open a file over the one that the user may be typing in.

import * as vscode from 'vscode';

import { configuration } from './configuration';

export interface DapMessage {
    type: string;
    seq: number;
    request_seq?: number;
    event?: string;
    command?: string;
    success?: boolean;
    message?: string;
    arguments?: { startFrame?: number; restart?: boolean; filters?: string[]; filterOptions?: { filterId: string }[] };
    body?: {
        category?: string;
        output?: string;
        error?: { format?: string; showUser?: boolean };
        preserveFocusHint?: boolean;
        threadId?: number;
        stackFrames?: StackFrame[];
        exceptionBreakpointFilters?: { filter: string }[];
        supportsExceptionFilterOptions?: boolean;
    };
}

interface StackFrame {
    id: number;
    source?: { path?: string };
}

export const RESUMES = new Set(['continue', 'next', 'stepIn', 'stepOut', 'stepBack', 'reverseContinue', 'goto', 'restartFrame']);
/** Shows the top frame of what is stopped, and keeps the focus where it is. */
const SHOW_FRAME = 'workbench.action.debug.focusProcess';

/** VS Code takes an answer up a little after the tracker has seen it; when it takes longer, once more. */
const SHOW_AFTER_MS = [10, 40, 150, 500, 1_500];
/** Whoever opens a file later than this is the user. */
const ASKED_FOR_MS = 10_000;
/** So often at least. */
const N_SHOWN = 2;

/** One session: who let it run last, and which stop is still to be shown. */
export class StopFocus {
    /** Resumes of the client that the tracker will see. */
    private nExpected = 0;
    /** The `seq` of VS Code's own request for the top of the stack, while a stop is to be shown. */
    private top: number | undefined;
    private isToShow = false;
    private nStops = 0;

    constructor(
        private readonly session: vscode.DebugSession,
        /** An AI client let it run, and not the user. */
        public isClients: boolean,
        /** Ends when the client has what it asks of a stop: VS Code passes nothing on while it draws. */
        private readonly idle: () => Promise<void>,
    ) {}

    /** A request that a client makes. */
    onClient(command: string): void {
        if (RESUMES.has(command)) {
            this.isClients = true;
            this.nExpected += 1;
            // Where it stood is drawn no more: that would only hold up the step.
            this.isToShow = false;
        }
    }

    /** A message to the adapter; of those that a client asks for VS Code takes no answer up. */
    onSent({ command = '', seq, arguments: args }: DapMessage, isOfClient: boolean): void {
        if (command === 'stackTrace' && this.isToShow && !isOfClient && !args?.startFrame) {
            this.top = seq;
        } else if (RESUMES.has(command)) {
            this.isToShow = false;
            if (this.nExpected > 0) {
                this.nExpected -= 1;
            } else {
                this.isClients = false;
            }
        }
    }

    /** A message of the adapter, before VS Code gets it. */
    onReceived(message: DapMessage): void {
        if (message.event === 'stopped' && this.isClients && !configuration().get<boolean>('revealOnStop', false)) {
            message.body = { ...message.body, preserveFocusHint: true };
            this.isToShow = true;
            this.nStops += 1;
        } else if (message.type === 'response' && this.isToShow && message.request_seq === this.top) {
            void this.show(message.body?.stackFrames?.[0]);
        }
    }

    private async show(frame: StackFrame | undefined): Promise<void> {
        const path = frame?.source?.path;
        const stop = this.nStops;
        const isOver = (): boolean => !this.isToShow || this.nStops !== stop;
        await this.idle();
        if (!isOver() && wouldCover(path)) {
            this.isToShow = false;
        }
        for (const [nShown, pause] of SHOW_AFTER_MS.entries()) {
            await new Promise((resolve) => setTimeout(resolve, pause));
            const item = vscode.debug.activeStackItem;
            const shown = item instanceof vscode.DebugStackFrame ? item : undefined;
            // What the user looks at in another session stays.
            const isElsewhere = shown !== undefined && shown.session.id !== this.session.id;
            // The frame of the stop before can have the same id.
            const isShown = nShown >= N_SHOWN && shown?.frameId === frame?.id;
            if (isOver() || isElsewhere || isShown) {
                break;
            }
            asked = { path, at: performance.now() };
            noteShown(vscode.window.activeTextEditor);
            await Promise.resolve(vscode.commands.executeCommand(SHOW_FRAME, null)).catch(() => undefined);
        }
        if (!isOver()) {
            this.isToShow = false;
        }
    }
}

/** The file in which VS Code was last asked to show a stop: of a program that ended meanwhile it shows none. */
let asked: { path: string | undefined; at: number } | undefined;
/** The file that a stop was shown in last, as long as the user does nothing in it: the next may be shown in its place. */
let shownLast: string | undefined;

/** An editor has come to the front, or is there already. */
function noteShown(editor: vscode.TextEditor | undefined): void {
    if (asked === undefined || performance.now() > asked.at + ASKED_FOR_MS) {
        return;
    }
    if (editor !== undefined && editor.document.uri.fsPath === asked.path) {
        shownLast = asked.path;
    }
}

/** Follows what is shown, and where the user types and clicks. */
export function followUser(): vscode.Disposable {
    const { Keyboard, Mouse } = vscode.TextEditorSelectionChangeKind;
    const selected = vscode.window.onDidChangeTextEditorSelection(({ textEditor, kind }) => {
        if ((kind === Keyboard || kind === Mouse) && textEditor.document.uri.fsPath === shownLast) {
            shownLast = undefined;
        }
    });
    return vscode.Disposable.from(selected, vscode.window.onDidChangeActiveTextEditor(noteShown));
}

/** Whether a file would be opened over an editor that the user works in: what is typed there would get lost. */
function wouldCover(path: string | undefined): boolean {
    const isOpen = vscode.window.visibleTextEditors.some((editor) => editor.document.uri.fsPath === path);
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    const isOurs = input instanceof vscode.TabInputText && input.uri.fsPath === shownLast;
    // Nobody types into a page of VS Code's, as the one of the start.
    return !isOpen && !isOurs && input !== undefined && !(input instanceof vscode.TabInputWebview);
}
