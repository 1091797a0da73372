// The view in the activity bar: all windows, what clients do in this one, and which clients those are.

import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';

import type { Agent } from './agent';
import { GetStatus, GetWork, type Status, type WindowStatus, type Work, type WorkBreakpoint, type WorkClient } from './protocol';

/** While somebody looks at it. */
const REFRESH_MS = 1_000;
const ID = 'baton.windows';

interface Session {
    id: string;
    name?: string;
    stopped?: boolean;
}
type Node =
    | { kind: 'window'; window: WindowStatus; isOwn: boolean }
    | { kind: 'session'; session: Session }
    | { kind: 'breakpoint'; breakpoint: WorkBreakpoint }
    | { kind: 'clients' }
    | { kind: 'connect' }
    | { kind: 'client'; client: WorkClient };

/** What can be done to a window of the view. */
export interface WindowActions {
    takeOver(window: WindowStatus): Promise<void>;
    stop(window: WindowStatus): Promise<void>;
    restart(window: WindowStatus): Promise<void>;
}

export class WindowsView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
    private readonly changes = new vscode.EventEmitter<void>();
    readonly onDidChangeTreeData = this.changes.event;
    private readonly subscriptions: vscode.Disposable[];
    private status: Status | undefined;
    private work: Work | undefined;
    private shown = '';
    private timer: NodeJS.Timeout | undefined;
    private isAsking = false;
    /** Something changed after the question that is under way. */
    private isToAsk = false;

    constructor(
        private readonly agent: Agent,
        actions: WindowActions,
        guarded: (run: () => Promise<void>) => Promise<void>,
    ) {
        const view = vscode.window.createTreeView<Node>(ID, { treeDataProvider: this });
        const onWindow = (name: string, run: (window: WindowStatus) => Promise<void>) =>
            vscode.commands.registerCommand(`baton.view.${name}`, (node?: Node) =>
                node?.kind === 'window' ? guarded(() => run(node.window)).then(() => this.refresh()) : undefined,
            );
        this.subscriptions = [
            view,
            this.changes,
            agent.onChange(() => view.visible && this.refresh()),
            view.onDidChangeVisibility(({ visible }) => this.watch(visible)),
            onWindow('takeOver', (window) => actions.takeOver(window)),
            onWindow('stop', (window) => actions.stop(window)),
            onWindow('restart', (window) => actions.restart(window)),
            vscode.commands.registerCommand('baton.view.remove', (node?: Node) => node?.kind === 'breakpoint' && remove(node.breakpoint)),
        ];
        this.watch(view.visible);
    }

    /** Nobody is asked anything while nobody looks. */
    private watch(isVisible: boolean): void {
        clearInterval(this.timer);
        this.timer = isVisible ? setInterval(() => this.refresh(), REFRESH_MS) : undefined;
        if (isVisible) {
            this.refresh();
        }
    }

    /** One question at a time, however long the agent takes for it. */
    private refresh(): void {
        this.isToAsk = true;
        if (!this.isAsking) {
            this.isAsking = true;
            void this.ask().finally(() => (this.isAsking = false));
        }
    }

    private async ask(): Promise<void> {
        while (this.isToAsk) {
            this.isToAsk = false;
            try {
                [this.status, this.work] = await Promise.all([this.agent.request(GetStatus, {}), this.agent.request(GetWork, {})]);
            } catch {
                // The bar says what is wrong.
                this.status = this.work = undefined;
            }
            const called = this.work?.clients.map(({ name, seconds }) => [name, ago(seconds)]);
            const now = JSON.stringify([this.status?.windows, { ...this.work, clients: called }, this.agent.standing?.why]);
            if (now !== this.shown) {
                this.shown = now;
                this.changes.fire();
            }
        }
    }

    getChildren(node?: Node): Node[] {
        const { status, work } = this;
        if (node === undefined) {
            const windows = [...(status?.windows ?? [])].sort((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name));
            const isOwn = ({ id }: WindowStatus) => id === this.agent.standing?.window;
            const nodes: Node[] = windows.map((window) => ({ kind: 'window', window, isOwn: isOwn(window) }));
            if (work?.clients.length) {
                return [...nodes, { kind: 'clients' }];
            }
            // Who has just installed Baton finds here what comes next.
            return work && windows.some((window) => isOwn(window) && window.state === 'live') ? [...nodes, { kind: 'connect' }] : nodes;
        }
        if (node.kind === 'clients') {
            return (work?.clients ?? []).map((client) => ({ kind: 'client', client }));
        }
        if (node.kind !== 'window') {
            return [];
        }
        const sessions: Session[] = node.isOwn
            ? (work?.sessions.filter(({ by_user }) => !by_user) ?? [])
            : node.window.debug_sessions.map((id) => ({ id }));
        return [
            ...sessions.map((session): Node => ({ kind: 'session', session })),
            ...(node.isOwn ? (work?.breakpoints ?? []) : []).map((breakpoint): Node => ({ kind: 'breakpoint', breakpoint })),
        ];
    }

    getTreeItem(node: Node): vscode.TreeItem {
        switch (node.kind) {
            case 'window':
                return this.windowItem(node.window, node.isOwn);
            case 'session':
                return sessionItem(node.session);
            case 'breakpoint':
                return breakpointItem(node.breakpoint);
            case 'clients': {
                const item = new vscode.TreeItem(vscode.l10n.t('Clients of this window'), vscode.TreeItemCollapsibleState.Expanded);
                item.id = 'clients';
                return item;
            }
            case 'connect':
                return connectItem();
            case 'client':
                return clientItem(node.client);
        }
    }

    private windowItem(window: WindowStatus, isOwn: boolean): vscode.TreeItem {
        const { Expanded, None } = vscode.TreeItemCollapsibleState;
        const hasMore = this.getChildren({ kind: 'window', window, isOwn }).length > 0;
        const item = new vscode.TreeItem(window.name, hasMore ? Expanded : None);
        // An item that gains or loses its children is another one to VS Code.
        item.id = `${window.id} ${hasMore}`;
        const words = [stateWord(window)];
        if (!window.responsive) {
            words.push(vscode.l10n.t('not responding'));
        }
        if (isOwn) {
            words.push(vscode.l10n.t('this window'));
        }
        item.description = words.join(', ');
        const why = isOwn && vscode.env.language.startsWith('en') ? this.agent.standing?.why : undefined;
        item.tooltip = [`${window.name}: ${stateWord(window)}${why ? ` (${why})` : ''}`, ...window.folders].join('\n');
        const icons = { live: 'radio-tower', standby: 'circle-outline', off: 'circle-slash' };
        item.iconPath = new vscode.ThemeIcon(window.responsive ? icons[window.state] : 'warning');
        item.contextValue = `window:${window.state}`;
        return item;
    }

    dispose(): void {
        clearInterval(this.timer);
        vscode.Disposable.from(...this.subscriptions).dispose();
    }
}

function rank({ state }: WindowStatus): number {
    return ['live', 'standby', 'off'].indexOf(state);
}

function stateWord({ state }: WindowStatus): string {
    return { live: vscode.l10n.t('live'), standby: vscode.l10n.t('standby'), off: vscode.l10n.t('off') }[state];
}

function sessionItem({ id, name, stopped }: Session): vscode.TreeItem {
    const item = new vscode.TreeItem(name ?? id);
    if (name !== undefined) {
        item.description = `${stopped ? vscode.l10n.t('stopped') : vscode.l10n.t('running')} (${id})`;
    }
    item.id = `session ${id}`;
    item.iconPath = new vscode.ThemeIcon(stopped ? 'debug-pause' : 'debug-alt');
    item.contextValue = 'session';
    return item;
}

function breakpointItem(breakpoint: WorkBreakpoint): vscode.TreeItem {
    const item = new vscode.TreeItem(`${path.basename(breakpoint.path)}:${breakpoint.line}`);
    item.description = [breakpoint.condition, breakpoint.client].filter(Boolean).join(', ');
    item.tooltip = breakpoint.path;
    item.iconPath = new vscode.ThemeIcon(breakpoint.condition ? 'debug-breakpoint-conditional' : 'debug-breakpoint');
    item.contextValue = 'breakpoint';
    const selection = new vscode.Range(breakpoint.line - 1, 0, breakpoint.line - 1, 0);
    const target = vscode.Uri.file(breakpoint.path);
    item.command = { command: 'vscode.open', title: vscode.l10n.t('Open'), arguments: [target, { selection }] };
    return item;
}

function connectItem(): vscode.TreeItem {
    const title = vscode.l10n.t('Connect an AI client...');
    const item = new vscode.TreeItem(title);
    item.description = vscode.l10n.t('none has called yet');
    item.iconPath = new vscode.ThemeIcon('plug');
    item.command = { command: 'baton.copyClientConfig', title };
    return item;
}

function clientItem({ name, seconds }: WorkClient): vscode.TreeItem {
    const item = new vscode.TreeItem(name);
    item.description = ago(seconds);
    item.iconPath = new vscode.ThemeIcon('comment-discussion');
    return item;
}

/** In steps, so that not every second is another one. */
function ago(seconds: number): string {
    const minutes = Math.floor(seconds / 60);
    return minutes < 1
        ? vscode.l10n.t('called just now')
        : minutes < 60
            ? vscode.l10n.t('called {0} min ago', minutes)
            : vscode.l10n.t('called {0} h ago', Math.floor(minutes / 60));
}

function remove({ path: file, line }: WorkBreakpoint): void {
    const isIt = (known: vscode.Breakpoint) =>
        known instanceof vscode.SourceBreakpoint && known.location.range.start.line === line - 1 && real(known.location.uri.fsPath) === file;
    vscode.debug.removeBreakpoints(vscode.debug.breakpoints.filter(isIt));
}

/** The agent knows files by where they lie, VS Code by how they were opened. */
function real(file: string): string {
    try {
        return fs.realpathSync(file);
    } catch {
        return file;
    }
}
