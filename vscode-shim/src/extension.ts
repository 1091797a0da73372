// The extension of one VS Code window: starts its agent, shows where it stands, and lends it VS Code's debugger.

import * as vscode from 'vscode';

import { Agent } from './agent';
import { installBinaries } from './binaries';
import { EditorDebugger } from './debug';
import { serveHandover } from './handover';
import { Identity } from './identity';
import { type Log, openLog } from './log';
import { offerMcpServer } from './mcpProvider';
import { Panel } from './panel';
import { reason } from './problems';
import { Settings } from './settings';
import { showStatus } from './statusBar';

let running: { agent: Agent; identity: Identity; log: Log } | undefined;

export function activate(context: vscode.ExtensionContext): void {
    const startedAt = performance.now();
    const log = openLog();
    const identity = Identity.claim(context);
    const debug = new EditorDebugger(log);
    const { version } = context.extension.packageJSON as { version: string };
    const settings: Settings = new Settings(identity, () => agent, context.globalState);
    const agent: Agent = new Agent(
        {
            window: identity.id,
            version,
            binaries: (anew) => installBinaries(context, anew),
            autoStart: () => settings.autoStart,
            serve: (connection) => {
                serveHandover(connection);
                debug.serve(connection);
            },
            greet: () => {
                debug.greet();
                void settings.push().catch((error) => log.warn(`settings: ${reason(error)}`));
            },
        },
        log,
    );
    running = { agent, identity, log };
    const panel = new Panel(agent, settings, identity.id, log);
    // Not the log: the agent's last lines come after VS Code has disposed of these.
    context.subscriptions.push(
        debug,
        settings,
        showStatus(agent, identity.id),
        panel.watch(),
        ...panel.register(),
        ...offerMcpServer(agent, version),
    );
    void agent.start();
    log.info(`activated in ${(performance.now() - startedAt).toFixed(1)} ms`);
}

export async function deactivate(): Promise<void> {
    await running?.agent.end();
    running?.identity.dispose();
    running?.log.dispose();
}
