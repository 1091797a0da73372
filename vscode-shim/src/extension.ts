// The extension of one VS Code window: starts its agent, shows where it stands, and lends it VS Code's debugger.

import * as vscode from 'vscode';

import { Agent } from './agent';
import { installBinaries } from './binaries';
import { ClientConfigs } from './clients';
import { EditorLanguages } from './code';
import { EditorDebugger } from './debug';
import { serveHandover } from './handover';
import { offerMcpServer } from './mcpProvider';
import { Panel } from './panel';
import { reason } from './problems';
import { Settings } from './settings';
import { showStatus } from './statusBar';
import { WindowsView } from './view';

let running: { agent: Agent; log: vscode.LogOutputChannel } | undefined;

export function activate(context: vscode.ExtensionContext): void {
    const startedAt = performance.now();
    const log = vscode.window.createOutputChannel('Baton', { log: true });
    const debug = new EditorDebugger(log);
    const languages = new EditorLanguages();
    const { version } = context.extension.packageJSON as { version: string };
    const noFolder = vscode.Uri.joinPath(context.globalStorageUri, 'empty-windows');
    const settings: Settings = new Settings(() => agent, () => clients, context.globalState);
    const agent: Agent = new Agent(
        {
            version,
            storage: vscode.Uri.joinPath(context.storageUri ?? noFolder, 'windows').fsPath,
            binaries: (anew) => installBinaries(context, anew),
            serve: (connection) => {
                serveHandover(connection);
                debug.serve(connection);
                languages.serve(connection);
            },
            greet: () => {
                debug.greet();
                void settings.push().catch((error: unknown) => log.warn(`settings: ${reason(error)}`));
            },
        },
        log,
    );
    running = { agent, log };
    const clients = new ClientConfigs(agent, context.globalState);
    const panel = new Panel(agent, settings, clients, log);
    // Not the log: the agent's last lines come after VS Code has disposed of these.
    context.subscriptions.push(
        debug,
        languages,
        settings,
        showStatus(agent),
        panel.watch(),
        new WindowsView(agent, panel.actions, (run) => panel.guarded(run)),
        ...panel.register(),
        ...offerMcpServer(agent, version),
    );
    void agent.start();
    log.info(`activated in ${(performance.now() - startedAt).toFixed(1)} ms`);
}

export async function deactivate(): Promise<void> {
    await running?.agent.end();
    running?.log.dispose();
}
