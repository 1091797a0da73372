// Lends VS Code's languages to the agent: opens files, runs commands, tells problems, changes texts. What is asked and
// what it means is the agent's affair; here VS Code's objects become plain ones, and back.

import { createHash } from 'node:crypto';
import * as vscode from 'vscode';
import type { MessageConnection } from 'vscode-jsonrpc/node';

import { isOnDisk } from './agent';
import {
    ApplyInEditor,
    type CodeApplied,
    type CodeEdits,
    type CodeFile,
    type CodeOpened,
    type CodeProblems,
    ExecuteInEditor,
    GetEditorProblems,
    OpenInEditor,
} from './protocol';

/** VS Code reads a file that changed on disk within this time, or it does not watch it. */
const RELOAD_MS = 2_000;
/** Results whose objects later commands may need. */
const MAX_KEPT = 20;
/** Deeper than any answer. */
const MAX_DEPTH = 60;

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
                uris.forEach((uri) => this.toldAt.set(uri.toString(), Date.now())),
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
        const extensions = vscode.extensions.all.filter(({ packageJSON }) => packageJSON.activationEvents?.includes(event));
        await Promise.allSettled(extensions.map((extension) => extension.activate()));
        const isAsOnDisk = () => hashOf(document.getText().replace(/\r\n?/g, '\n')) === hash;
        const is_current = document.isDirty || isAsOnDisk() || (await changed(document, isAsOnDisk));
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
        const changedAt = this.changedAt.get(key) ?? 0;
        const toldAt = this.toldAt.get(key) ?? 0;
        const now = Date.now();
        return { files, text_age_ms: now - changedAt, told_age_ms: toldAt >= changedAt && toldAt > 0 ? now - toldAt : null };
    }

    private onText(uri: vscode.Uri): void {
        this.changedAt.set(uri.toString(), Date.now());
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
        const { $path, $position, $range, $kept } = value as Record<string, never>;
        if ($path !== undefined) {
            return vscode.Uri.file($path);
        }
        if ($position !== undefined) {
            return new vscode.Position(...($position as [number, number]));
        }
        if ($range !== undefined) {
            return new vscode.Range(...($range as [number, number, number, number]));
        }
        if ($kept !== undefined) {
            const [kept, index] = $kept as [number, number];
            return this.kept.get(kept)?.[index];
        }
        return value;
    }

    dispose(): void {
        this.subscriptions.forEach((subscription) => subscription.dispose());
    }
}

/** Waits for a change that makes it so; false when none came. */
function changed(document: vscode.TextDocument, isSo: () => boolean): Promise<boolean> {
    return new Promise((resolve) => {
        const end = (is: boolean) => {
            watch.dispose();
            clearTimeout(timer);
            resolve(is);
        };
        const timer = setTimeout(() => end(isSo()), RELOAD_MS);
        const watch = vscode.workspace.onDidChangeTextDocument((event) => {
            if (event.document === document && (document.isDirty || isSo())) {
                end(true);
            }
        });
    });
}

/** All files, or none; those without unsaved changes are saved, so that the disk holds what VS Code shows. */
async function apply({ files }: CodeEdits): Promise<CodeApplied> {
    const all = new vscode.WorkspaceEdit();
    const saved: vscode.TextDocument[] = [];
    for (const { path, hash, edits } of files) {
        const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path));
        if (hashOf(document.getText()) !== hash) {
            return { changed: path };
        }
        if (!document.isDirty) {
            saved.push(document);
        }
        all.set(
            document.uri,
            edits.map(({ range, text }) => new vscode.TextEdit(new vscode.Range(...(range as [number, number, number, number])), text)),
        );
    }
    if (!(await vscode.workspace.applyEdit(all))) {
        return { failure: 'VS Code refused the edit' };
    }
    const results = await Promise.all(saved.map((document) => document.save()));
    const unsaved = saved.filter((_, index) => !results[index]);
    return unsaved.length === 0 ? {} : { failure: `not saved: ${unsaved.map(({ uri }) => uri.fsPath).join(', ')}` };
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
        const texts = value.entries().map(([uri, edits]) => ({ textDocument: { uri: inner(uri) }, edits: edits.map(inner) }));
        return { documentChanges: [...texts, ...fileOperations(value)] };
    }
    if (value instanceof vscode.MarkdownString || value instanceof vscode.SnippetString) {
        return { value: value.value };
    }
    if (Array.isArray(value)) {
        return value.map(inner);
    }
    return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, inner(of)]));
}

/** What an edit does to files beyond their texts: VS Code shows that to no extension, so it is looked up inside. */
function fileOperations(edit: vscode.WorkspaceEdit): object[] {
    const inside = edit as unknown as { _allEntries?(): { from?: vscode.Uri; to?: vscode.Uri }[] };
    const operations = (inside._allEntries?.() ?? []).filter(({ from, to }) => from !== undefined || to !== undefined);
    return operations.map(({ from, to }) => ({ kind: from === undefined ? 'create' : to === undefined ? 'delete' : 'rename' }));
}
