// Copies the configuration that an AI client wants; the text comes from the agent, as `baton config` prints it.

import * as vscode from 'vscode';

import type { Agent } from './agent';
import { unlinked } from './plain';
import { warnOf } from './problems';
import { type ClientConfigWish, GetClientConfig, ListClients, type Transport } from './protocol';

/** What was copied last, under this key. */
const LAST = 'clients.last';

interface Choice extends ClientConfigWish {
    label: string;
}
type ClientItem = vscode.QuickPickItem & { id: string; last?: Choice };

export class ClientConfigs {
    constructor(
        private readonly agent: Agent,
        private readonly memory: vscode.Memento,
    ) {}

    /** Copies what the user chooses; what they chose last is one pick. */
    async copy(): Promise<void> {
        const choice = await this.choose();
        if (choice === undefined) {
            return;
        }
        const { label, ...wish } = choice;
        const { text, file } = await this.agent.request(GetClientConfig, wish);
        await vscode.env.clipboard.writeText(text);
        await this.memory.update(LAST, choice);
        // The message is not waited for: it may stay for long.
        void this.offerToWrite(choice, file ?? label).catch(warnOf);
    }

    /** After a change of the port: clients have stored the old URL. */
    async offerNewUrl(url: string): Promise<void> {
        const copy = vscode.l10n.t('Connect an AI client...');
        const message = vscode.l10n.t('Baton is now at {0}. Update your clients with the new URL.', url);
        if ((await vscode.window.showInformationMessage(message, copy)) === copy) {
            await this.copy();
        }
    }

    private async choose(): Promise<Choice | undefined> {
        const { clients } = await this.agent.request(ListClients, {});
        const items: ClientItem[] = clients.map((client) => ({ label: client.label, id: client.id }));
        const last = this.memory.get<Choice>(LAST);
        if (last !== undefined && clients.some(({ id }) => id === last.client)) {
            const way = last.transport === 'http' ? 'HTTP' : (last.transport ?? vscode.l10n.t('Recommended'));
            const description = vscode.l10n.t('{0}, as last time', way);
            items.unshift({ label: `$(history) ${last.label}`, description, id: last.client, last });
        }
        const client = await vscode.window.showQuickPick(items, {
            title: vscode.l10n.t('Copy the configuration for which client?'),
        });
        if (client === undefined || client.last !== undefined) {
            return client?.last;
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
        return way && { client: client.id, label: client.label, transport: way.transport };
    }

    /** Most people would paste it into the client's own file, which Baton can do. */
    private async offerToWrite({ label, ...wish }: Choice, file: string): Promise<void> {
        const write = vscode.l10n.t('Write it for me');
        const message = vscode.l10n.t('Copied the configuration for {0} to the clipboard. Paste it into {1}.', label, unlinked(file));
        if ((await vscode.window.showInformationMessage(message, write)) === write) {
            const { text } = await this.agent.request(GetClientConfig, { ...wish, write: true });
            void vscode.window.showInformationMessage(unlinked(text));
        }
    }
}
