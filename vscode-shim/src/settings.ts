// The settings `baton.*`: what the user changed goes to the agent, which carries it out.

import * as vscode from 'vscode';

import type { Agent } from './agent';
import type { ClientConfigs } from './clients';
import { configuration, explicit } from './configuration';
import { warnOf } from './problems';
import { ChangePort, TakeSettings } from './protocol';

const MIN_PORT = 1024;
const MAX_PORT = 65_535;

/** What the coordinator keeps; the port is different, and auto-start is this window's own. */
const SHARED = ['followFocus', 'aiHandover', 'routing', 'toolsets', 'debugEnabled', 'redact'];
/** Key of the port setting that was carried out last: `baton port` may have moved Baton since, and that is to stay. */
const PORT_KEY = 'port';

export class Settings implements vscode.Disposable {
    private readonly subscription: vscode.Disposable;

    constructor(
        private readonly agent: () => Agent,
        private readonly clients: () => ClientConfigs,
        private readonly memory: vscode.Memento,
    ) {
        this.subscription = vscode.workspace.onDidChangeConfiguration((event) => void this.push(event).catch(warnOf));
    }

    /** Moves Baton, and remembers that in the setting. */
    async changePort(port: number): Promise<string> {
        const { url } = await this.agent().request(ChangePort, { port });
        await this.memory.update(PORT_KEY, port);
        await configuration().update('port', port, vscode.ConfigurationTarget.Global);
        return url;
    }

    /** Carries out what the user changed; without an event, all that the user ever set: the rest is left as it is. */
    async push(event?: vscode.ConfigurationChangeEvent): Promise<void> {
        const isMeant = (name: string) => event?.affectsConfiguration(`baton.${name}`) ?? name !== 'autoStart';
        const valueOf = (name: string): unknown => (event ? configuration().get(name) : explicit(name));
        const named = ['autoStart', ...SHARED].filter(isMeant);
        const meant = named.map((name): [string, unknown] => [name, valueOf(name)]);
        const port = explicit('port');
        if (isMeant('port') && port !== this.memory.get(PORT_KEY)) {
            meant.push(['port', port]);
        }
        const values = Object.fromEntries(meant.filter(([, value]) => value !== undefined));
        if (Object.keys(values).length === 0) {
            return;
        }
        const { moved_to } = await this.agent().request(TakeSettings, { values });
        if ('port' in values) {
            await this.memory.update(PORT_KEY, port);
        }
        // Every window carries it out; the one that the user looks at says so.
        if (moved_to && event && vscode.window.state.focused) {
            await this.clients().offerNewUrl(moved_to);
        }
    }

    dispose(): void {
        this.subscription.dispose();
    }
}

export function isPort(port: number): boolean {
    return Number.isInteger(port) && port >= MIN_PORT && port <= MAX_PORT;
}
