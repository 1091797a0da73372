// The settings `baton.*`: auto-start is this window's own; port, routing and the like belong to the coordinator.

import * as vscode from 'vscode';

import type { Agent } from './agent';
import type { Identity } from './identity';
import { type Log, reason } from './log';
import { type AiHandover, ChangePort, ChangeSettings, type Routing, SetAutoStart, type SettingsChange } from './protocol';

export class Settings implements vscode.Disposable {
    private readonly subscriptions: vscode.Disposable[];

    constructor(
        private readonly identity: Identity,
        private readonly agent: () => Agent,
        private readonly log: Log,
    ) {
        this.subscriptions = [vscode.workspace.onDidChangeConfiguration((event) => void this.onChange(event))];
    }

    /** The window's own wish when it has one, else the setting. */
    get autoStart(): boolean {
        return this.identity.autoStart ?? configuration().get('autoStart', true);
    }

    async toggleAutoStart(): Promise<boolean> {
        const wish = !this.autoStart;
        await this.agent().request(SetAutoStart, { auto_start: wish });
        this.identity.autoStart = wish;
        return wish;
    }

    /** Tells the coordinator what the user set; what was never set is left as it is. */
    async push(): Promise<void> {
        const change: SettingsChange = {
            follow_focus: explicit<boolean>('followFocus'),
            ai_handover: explicit<AiHandover>('aiHandover'),
            routing: explicit<Routing>('routing'),
            toolsets: explicit<string[]>('toolsets'),
        };
        if (Object.values(change).some((value) => value !== null)) {
            await this.attempt(this.agent().request(ChangeSettings, change));
        }
    }

    private async onChange(event: vscode.ConfigurationChangeEvent): Promise<void> {
        const settings = configuration();
        if (event.affectsConfiguration('baton.autoStart')) {
            // The setting was changed later than the wish.
            this.identity.autoStart = undefined;
            await this.attempt(this.agent().request(SetAutoStart, { auto_start: this.autoStart }));
        }
        const change: SettingsChange = {};
        if (event.affectsConfiguration('baton.followFocus')) {
            change.follow_focus = settings.get('followFocus', false);
        }
        if (event.affectsConfiguration('baton.aiHandover')) {
            change.ai_handover = settings.get<AiHandover>('aiHandover', 'ask');
        }
        if (event.affectsConfiguration('baton.routing')) {
            change.routing = settings.get<Routing>('routing', 'live');
        }
        if (event.affectsConfiguration('baton.toolsets')) {
            change.toolsets = settings.get<string[]>('toolsets', []);
        }
        if (Object.keys(change).length > 0) {
            await this.attempt(this.agent().request(ChangeSettings, change));
        }
        const port = explicit<number>('port');
        const url = this.agent().standing?.url;
        if (event.affectsConfiguration('baton.port') && port !== null && url && !url.includes(`:${port}/`)) {
            await this.attempt(this.agent().request(ChangePort, { port }));
        }
    }

    private async attempt(request: Promise<unknown>): Promise<void> {
        try {
            await request;
        } catch (error) {
            this.log.warn(`settings: ${reason(error)}`);
            void vscode.window.showWarningMessage(reason(error));
        }
    }

    dispose(): void {
        this.subscriptions.forEach((subscription) => subscription.dispose());
    }
}

export function configuration(): vscode.WorkspaceConfiguration {
    return vscode.workspace.getConfiguration('baton');
}

/** The value the user set for this machine; null when there is none. */
function explicit<T>(name: string): T | null {
    return configuration().inspect<T>(name)?.globalValue ?? null;
}
