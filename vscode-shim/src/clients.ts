// Copies the configuration that an AI client wants; the text comes from the agent, as `baton config` prints it.

import * as vscode from 'vscode';

import type { Agent } from './agent';
import { unlinked } from './plain';
import { warnOf } from './problems';
import { type ClientConfigWish, GetClientConfig, ListClients, type Transport } from './protocol';

export async function copyClientConfig(agent: Agent): Promise<void> {
    const { clients } = await agent.request(ListClients, {});
    const items = clients.map((client) => ({ label: client.label, id: client.id }));
    const client = await vscode.window.showQuickPick(items, {
        title: vscode.l10n.t('Copy the configuration for which client?'),
    });
    if (client === undefined) {
        return;
    }
    const ways: (vscode.QuickPickItem & { transport: Transport | null })[] = [
        {
            label: vscode.l10n.t('Recommended'),
            description: vscode.l10n.t('works best with this client'),
            transport: null,
        },
        { label: 'HTTP', description: vscode.l10n.t('URL with a token'), transport: 'http' },
        { label: 'stdio', description: vscode.l10n.t('command, no secret needed'), transport: 'stdio' },
    ];
    const way = await vscode.window.showQuickPick(ways, { title: client.label });
    if (way === undefined) {
        return;
    }
    const wish = { client: client.id, transport: way.transport };
    const { text } = await agent.request(GetClientConfig, wish);
    await vscode.env.clipboard.writeText(text);
    // The message is not waited for: it may stay for long.
    void offerToWrite(agent, client.label, wish).catch(warnOf);
}

/** Most people would paste it into the client's own file, which Baton can do. */
async function offerToWrite(agent: Agent, label: string, wish: ClientConfigWish): Promise<void> {
    const write = vscode.l10n.t('Write it for me');
    const message = vscode.l10n.t('Copied the configuration for {0} to the clipboard.', label);
    if ((await vscode.window.showInformationMessage(message, write)) === write) {
        const { text } = await agent.request(GetClientConfig, { ...wish, write: true });
        void vscode.window.showInformationMessage(unlinked(text));
    }
}

/** After a change of the port: clients have stored the old URL. */
export async function offerNewUrl(agent: Agent, url: string): Promise<void> {
    const copy = vscode.l10n.t('Copy a client\'s configuration...');
    const message = vscode.l10n.t('Baton is now at {0}. Update your clients with the new URL.', url);
    if ((await vscode.window.showInformationMessage(message, copy)) === copy) {
        await copyClientConfig(agent);
    }
}
