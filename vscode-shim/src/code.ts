// Lends VS Code's languages to the agent: opens files, runs commands, tells problems, changes texts. What is asked and
// what it means is the agent's affair; here VS Code's objects become plain ones, and back.

import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import * as vscode from 'vscode';
import type { MessageConnection } from 'vscode-jsonrpc/node';

import { isOnDisk } from './agent';
import {
    ApplyInEditor,
    type CodeApplied,
    type CodeEdits,
    type CodeFile,
    type CodeFileOperation,
    type CodeOpened,
    type CodeProblems,
    ExecuteInEditor,
    GetEditorProblems,
    OpenInEditor,
} from './protocol';

/** VS Code reads a file that changed on disk within this time, or it does not watch it. */
const RELOAD_MS = 2_000;
/** What a person typed is heard here within this time, or it is not what an edit was refused for. */
const TYPED_MS = 1_000;
/** How often an edit is made when VS Code refuses it, because a person types. */
const MAX_TRIES = 3;
/** Results whose objects later commands may need. */
const MAX_KEPT = 20;
/** Deeper than any answer. */
const MAX_DEPTH = 60;

/** What stands in arguments for an object that only VS Code makes: one of these. */
interface Marked {
    $path?: string;
    $position?: [number, number];
    $range?: [number, number, number, number];
    /** A result that was kept, and the index of the object in it. */
    $kept?: [number, number];
}

export class EditorLanguages implements vscode.Disposable {
    private readonly kept = new Map<number, unknown[]>();
    private lastKept = 0;
    /** When a text became what it is, and when its problems were told last. */
    private readonly changedAt = new Map<string, number>();
    private readonly toldAt = new Map<string, number>();
    private readonly subscriptions: vscode.Disposable[];

    constructor() {
        this.subscriptions = [
            vscode.workspace.onDidOpenTextDocument(({ uri }) => this.onText(uri)),
            vscode.workspace.onDidChangeTextDocument(({ document }) => this.onText(document.uri)),
            vscode.workspace.onDidCloseTextDocument(({ uri }) => {
                this.changedAt.delete(uri.toString());
                this.toldAt.delete(uri.toString());
            }),
            vscode.languages.onDidChangeDiagnostics(({ uris }) =>
                uris.forEach((uri) => this.toldAt.set(uri.toString(), clock())),
            ),
        ];
    }

    serve(connection: MessageConnection): void {
        connection.onRequest(OpenInEditor, (file) => this.open(file));
        connection.onRequest(ExecuteInEditor, async ({ command, arguments: args, keep }) => {
            const result: unknown = await vscode.commands.executeCommand(command, ...args.map((arg) => this.revive(arg)));
            return { result: plain(result) ?? null, kept: keep && Array.isArray(result) ? this.keep(result) : null };
        });
        connection.onRequest(GetEditorProblems, ({ path }) => this.problems(path ?? undefined));
        connection.onRequest(ApplyInEditor, (edits) => apply(edits));
    }

    private async open({ path, hash }: CodeFile): Promise<CodeOpened> {
        const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path));
        const event = `onLanguage:${document.languageId}`;
        const extensions = vscode.extensions.all.filter(({ packageJSON }) => {
            const { activationEvents } = packageJSON as { activationEvents?: string[] };
            return activationEvents?.includes(event) ?? false;
        });
        await Promise.allSettled(extensions.map((extension) => extension.activate()));
        const isAsOnDisk = () => hashOf(document.getText().replace(/\r\n?/g, '\n')) === hash;
        const is_current = await changed(() => document.isDirty || isAsOnDisk(), RELOAD_MS);
        const unsaved = vscode.workspace.textDocuments.filter((open) => open.isDirty && isOnDisk(open.uri));
        if (!is_current) {
            unsaved.push(document);
        }
        return {
            language: document.languageId,
            n_extensions: extensions.length,
            is_current,
            in_tab: tabs().has(document.uri.toString()),
            unsaved: unsaved.map((open) => ({ path: open.uri.fsPath, text: open.getText() })),
        };
    }

    private problems(path: string | undefined): CodeProblems {
        const uri = path === undefined ? undefined : vscode.Uri.file(path);
        const all = uri === undefined ? vscode.languages.getDiagnostics() : [[uri, vscode.languages.getDiagnostics(uri)] as const];
        const files = all
            .filter(([{ scheme }, problems]) => (scheme === 'file' || scheme === 'vscode-remote') && problems.length > 0)
            .map(([{ fsPath }, problems]) => ({ path: fsPath, problems: problems.map((problem) => plain(problem)) }));
        const key = uri?.toString() ?? '';
        // One that was open before us is as old as the extension host.
        const changedAt = this.changedAt.get(key) ?? 0;
        const toldAt = this.toldAt.get(key) ?? 0;
        const now = clock();
        return { files, text_age_ms: now - changedAt, told_age_ms: toldAt >= changedAt && toldAt > 0 ? now - toldAt : null };
    }

    private onText(uri: vscode.Uri): void {
        this.changedAt.set(uri.toString(), clock());
    }

    private keep(result: unknown[]): number {
        this.lastKept += 1;
        this.kept.set(this.lastKept, result);
        this.kept.delete(this.lastKept - MAX_KEPT);
        return this.lastKept;
    }

    private revive(value: unknown): unknown {
        if (typeof value !== 'object' || value === null) {
            return value ?? undefined;
        }
        const { $path, $position, $range, $kept } = value as Marked;
        if ($path !== undefined) {
            return vscode.Uri.file($path);
        }
        if ($position !== undefined) {
            return new vscode.Position(...$position);
        }
        if ($range !== undefined) {
            return new vscode.Range(...$range);
        }
        if ($kept !== undefined) {
            const [kept, index] = $kept;
            return this.kept.get(kept)?.[index];
        }
        return value;
    }

    dispose(): void {
        for (const subscription of this.subscriptions) {
            subscription.dispose();
        }
    }
}

/** Milliseconds that only grow; the time of day may be set back. */
function clock(): number {
    return Math.round(performance.now());
}

/** Waits until it is so, as it may be after a change of a text; false when it never was. */
function changed(isSo: () => boolean, limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
        const end = (is: boolean) => {
            watch.dispose();
            clearTimeout(timer);
            resolve(is);
        };
        const timer = setTimeout(() => end(isSo()), limitMs);
        const watch = vscode.workspace.onDidChangeTextDocument(() => {
            if (isSo()) {
                end(true);
            }
        });
        if (isSo()) {
            end(true);
        }
    });
}

/** All of it, or nothing; files without unsaved changes are saved, so that the disk holds what VS Code shows. */
async function apply({ files, operations = [] }: CodeEdits, triesLeft = MAX_TRIES): Promise<CodeApplied> {
    const saved: string[] = [];
    const texts: { document: vscode.TextDocument; version: number }[] = [];
    for (const { path, hash } of files) {
        const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path));
        if (hashOf(document.getText()) !== hash) {
            return { changed: path };
        }
        texts.push({ document, version: document.version });
        if (!document.isDirty) {
            saved.push(path);
        }
    }
    const failure = inTheWay(operations);
    if (failure !== undefined) {
        return { failure };
    }
    const all = new vscode.WorkspaceEdit();
    for (const { from, to, text } of operations) {
        if (typeof from === 'string' && typeof to === 'string') {
            all.renameFile(vscode.Uri.file(from), vscode.Uri.file(to));
        } else if (typeof from === 'string') {
            all.deleteFile(vscode.Uri.file(from));
        } else if (typeof to === 'string') {
            all.createFile(vscode.Uri.file(to), { contents: Buffer.from(text ?? '') });
        }
    }
    // Afterwards, so that the file that a new text imports is there: TypeScript looks once, and again much later.
    for (const { path, edits } of files.filter(({ edits }) => edits.length > 0)) {
        const uri = vscode.Uri.file(nameAfter(path, operations) ?? path);
        all.set(
            uri,
            edits.map(({ range, text }) => new vscode.TextEdit(new vscode.Range(...(range as [number, number, number, number])), text)),
        );
    }
    if (!(await vscode.workspace.applyEdit(all))) {
        // Texts are edited all or not at all. The likeliest reason: the window had a newer text than the extension
        // host, so the hash fitted what is no longer there.
        const isNewer = () => texts.some(({ document, version }) => document.version !== version);
        return operations.length === 0 && triesLeft > 1 && (await changed(isNewer, TYPED_MS))
            ? apply({ files }, triesLeft - 1)
            : { failure: 'VS Code refused the edit' };
    }
    const results = await Promise.all(saved.map((path) => save(nameAfter(path, operations))));
    const unsaved = saved.filter((_, index) => !results[index]);
    return unsaved.length === 0 ? {} : { failure: `not saved: ${unsaved.join(', ')}` };
}

/** Where a file is in the end; undefined when it is gone. */
function nameAfter(path: string, operations: CodeFileOperation[]): string | undefined {
    return operations.reduce<string | undefined>((now, { from, to }) => {
        if (now === undefined || typeof from !== 'string' || (now !== from && !now.startsWith(`${from}/`))) {
            return now;
        }
        return typeof to === 'string' ? to + now.slice(from.length) : undefined;
    }, path);
}

async function save(path: string | undefined): Promise<boolean> {
    if (path === undefined) {
        return true;
    }
    const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path));
    return !document.isDirty || document.save();
}

/** Why an operation would fail: VS Code would stop in the middle, and leave what is done by then. */
function inTheWay(operations: CodeFileOperation[]): string | undefined {
    const leaving = new Set(operations.map(({ from }) => from));
    for (const { from, to } of operations) {
        if (typeof to === 'string' && !leaving.has(to) && fs.existsSync(to)) {
            return `${to} is there already`;
        }
        for (const path of [from, to].filter((path) => typeof path === 'string')) {
            let folder = dirname(path);
            while (!fs.existsSync(folder) && folder !== dirname(folder)) {
                folder = dirname(folder);
            }
            try {
                fs.accessSync(folder, fs.constants.W_OK);
            } catch {
                return `${folder} cannot be written to`;
            }
        }
    }
    return undefined;
}

function tabs(): Set<string> {
    const inputs = vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.map(({ input }) => input));
    return new Set(inputs.flatMap((input) => (input instanceof vscode.TabInputText ? [input.uri.toString()] : [])));
}

function hashOf(text: string): string {
    return createHash('sha256').update(text).digest('hex');
}

/** VS Code's objects as the language server protocol writes them. */
function plain(value: unknown, depth = 0): unknown {
    if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) {
        return typeof value === 'function' || typeof value === 'object' ? null : value;
    }
    const inner = (of: unknown) => plain(of, depth + 1);
    if (value instanceof vscode.Uri) {
        // On this machine's disk, whatever VS Code calls it from far away.
        return (isOnDisk(value) ? vscode.Uri.file(value.fsPath) : value).toString();
    }
    if (value instanceof vscode.Position) {
        return { line: value.line, character: value.character };
    }
    if (value instanceof vscode.Range) {
        return { start: inner(value.start), end: inner(value.end) };
    }
    if (value instanceof vscode.TextEdit) {
        return { range: inner(value.range), newText: value.newText };
    }
    if (value instanceof vscode.WorkspaceEdit) {
        return { documentChanges: steps(value) };
    }
    if (value instanceof vscode.MarkdownString || value instanceof vscode.SnippetString) {
        return { value: value.value };
    }
    if (Array.isArray(value)) {
        return value.map(inner);
    }
    return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, inner(of)]));
}

/** What an edit does to a file beyond its text, as VS Code keeps it. */
interface FileEntry {
    from?: vscode.Uri;
    to?: vscode.Uri;
    options?: { contents?: unknown };
}

/**
 * What an edit does, in order. VS Code tells extensions its texts alone, so the rest is looked up inside, and an edit
 * that hides it is refused: a file that does not move along with the texts would break them. Where an
 * edit comes from a command the texts stand after everything else, wherever they stood. What is edited is what is
 * there: a file that gets its name by the edit is edited afterwards, any other before.
 */
function steps(edit: vscode.WorkspaceEdit): object[] {
    const inside = edit as unknown as { _allEntries?(): FileEntry[] };
    if (typeof inside._allEntries !== 'function') {
        throw new Error('This version of VS Code does not tell what the change does to files. Make the change in VS Code.');
    }
    const entries = inside._allEntries().filter(({ from, to }) => from !== undefined || to !== undefined);
    const created = entries.filter(({ from }) => from === undefined);
    const moved = entries.filter(({ from }) => from !== undefined);
    const texts = edit.entries().map(([uri, edits]) => ({ uri, step: { textDocument: { uri: plain(uri) }, edits: edits.map((one) => plain(one)) } }));
    const comes = ({ path }: vscode.Uri) => moved.some(({ to }) => to !== undefined && (path === to.path || path.startsWith(`${to.path}/`)));
    return [
        ...created.map(({ to, options }) => {
            // What it shall hold does not come through a command; an empty file is not what was meant.
            const kind = options?.contents === undefined ? 'create' : 'fill';
            return { kind, uri: plain(to), options: plain(options) };
        }),
        ...texts.filter(({ uri }) => !comes(uri)).map(({ step }) => step),
        ...moved.map(({ from, to, options }) =>
            to === undefined
                ? { kind: 'delete', uri: plain(from), options: plain(options) }
                : { kind: 'rename', oldUri: plain(from), newUri: plain(to), options: plain(options) },
        ),
        ...texts.filter(({ uri }) => comes(uri)).map(({ step }) => step),
    ];
}
