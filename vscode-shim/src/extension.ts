// The extension of one VS Code window: starts its agent, shows where it stands, and lends it VS Code's debugger.

import * as vscode from 'vscode';

import { Agent } from './agent';
import { installBinaries } from './binaries';
import { EditorDebugger } from './debug';
import { serveHandover } from './handover';
import { Identity } from './identity';
import { openLog } from './log';
import { offerMcpServer } from './mcpProvider';
import { Panel } from './panel';
import { Settings } from './settings';
import { StatusBar } from './statusBar';

let running: { agent: Agent; identity: Identity } | undefined;

export function activate(context: vscode.ExtensionContext): void {
    const startedAt = performance.now();
    const log = openLog();
    const identity = Identity.claim(context);
    const debug = new EditorDebugger(log);
    const settings: Settings = new Settings(identity, () => agent, log);
    const agent: Agent = new Agent(
        {
            window: identity.id,
            binaries: () => installBinaries(context),
            autoStart: () => settings.autoStart,
            serve: (connection) => {
                serveHandover(connection);
                debug.serve(connection);
            },
            greet: () => {
                debug.greet();
                void settings.push();
            },
        },
        log,
    );
    running = { agent, identity };
    const panel = new Panel(agent, settings, identity.id, log);
    context.subscriptions.push(
        log,
        debug,
        settings,
        new StatusBar(agent, identity.id),
        panel.watch(),
        ...panel.register(),
        ...offerMcpServer(agent, context.extension.packageJSON.version),
    );
    void agent.start();
    log.info(`activated in ${(performance.now() - startedAt).toFixed(1)} ms`);
}

export async function deactivate(): Promise<void> {
    await running?.agent.end();
    running?.identity.dispose();
}
