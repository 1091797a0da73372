// The settings `baton.*`: auto-start is this window's own; port, routing and the like belong to the coordinator.

import * as vscode from 'vscode';

import type { Agent } from './agent';
import type { Identity } from './identity';
import { warn, warnOf } from './problems';
import { ChangePort, ChangeSettings, type PortChanged, SetAutoStart, type SettingsChange } from './protocol';

export const MIN_PORT = 1024;
export const MAX_PORT = 65_535;

/** Settings of the coordinator: their names in VS Code and on the wire. */
const SHARED = { followFocus: 'follow_focus', aiHandover: 'ai_handover', routing: 'routing', toolsets: 'toolsets' } as const;
/** Key of the port setting that was carried out last: `baton port` may have moved Baton since, and that is to stay. */
const PORT_KEY = 'port';

export class Settings implements vscode.Disposable {
    private readonly subscription: vscode.Disposable;

    constructor(
        private readonly identity: Identity,
        private readonly agent: () => Agent,
        private readonly memory: vscode.Memento,
    ) {
        this.subscription = vscode.workspace.onDidChangeConfiguration((event) => void this.push(event).catch(warnOf));
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

    /** Moves Baton, and remembers that in the setting. */
    async changePort(port: number): Promise<PortChanged> {
        const changed = await this.agent().request(ChangePort, { port });
        await this.memory.update(PORT_KEY, port);
        await configuration().update('port', port, vscode.ConfigurationTarget.Global);
        return changed;
    }

    /** Carries out what the user changed; without an event, all that the user ever set: the rest is left as it is. */
    async push(event?: vscode.ConfigurationChangeEvent): Promise<void> {
        if (event?.affectsConfiguration('baton.autoStart')) {
            // The setting was changed later than the wish.
            this.identity.autoStart = undefined;
            await this.agent().request(SetAutoStart, { auto_start: this.autoStart });
        }
        const change: SettingsChange = {};
        for (const [name, key] of Object.entries(SHARED)) {
            const value = event?.affectsConfiguration(`baton.${name}`) ? configuration().get(name) : event ? undefined : explicit(name);
            Object.assign(change, value === undefined ? {} : { [key]: value });
        }
        if (Object.keys(change).length > 0) {
            await this.agent().request(ChangeSettings, change);
        }
        await this.pushPort();
    }

    private async pushPort(): Promise<void> {
        const port = explicit<number>('port');
        if (port === undefined || port === this.memory.get(PORT_KEY)) {
            return;
        }
        if (!isPort(port)) {
            return warn({ code: 'bad_port', message: '', args: [String(port)] });
        }
        await this.agent().request(ChangePort, { port });
        await this.memory.update(PORT_KEY, port);
    }

    dispose(): void {
        this.subscription.dispose();
    }
}

export function configuration(): vscode.WorkspaceConfiguration {
    return vscode.workspace.getConfiguration('baton');
}

export function isPort(port: number): boolean {
    return Number.isInteger(port) && port >= MIN_PORT && port <= MAX_PORT;
}

/** The value the user set for this machine. */
function explicit<T>(name: string): T | undefined {
    return configuration().inspect<T>(name)?.globalValue;
}
