// Offers this window to VS Code's own MCP client, where there is one. Nothing is written to any file.

import * as vscode from 'vscode';

import type { Agent } from './agent';
import { GetEndpoint } from './protocol';

/** The part of VS Code's API that is younger than the oldest version this extension runs in. */
interface McpApi {
    registerMcpServerDefinitionProvider?(id: string, provider: unknown): vscode.Disposable;
}
type HttpDefinition = new (
    label: string,
    uri: vscode.Uri,
    headers?: Record<string, string>,
    version?: string,
) => { headers: Record<string, string> };

/** Where this window answers, whichever window is live: VS Code's own chat asks about the project that it is in. */
function ownUrl(agent: Agent, url: string | null | undefined): string | undefined {
    const window = agent.standing?.window;
    return url && window ? `${url}/windows/${encodeURIComponent(window)}` : undefined;
}

export function offerMcpServer(agent: Agent, version: string): vscode.Disposable[] {
    const lm = (vscode as unknown as { lm?: McpApi }).lm;
    const Definition = (vscode as unknown as { McpHttpServerDefinition?: HttpDefinition }).McpHttpServerDefinition;
    if (lm?.registerMcpServerDefinitionProvider === undefined || Definition === undefined) {
        return [];
    }
    const changes = new vscode.EventEmitter<void>();
    let url: string | undefined;
    const subscription = agent.onChange(() => {
        const now = ownUrl(agent, agent.standing?.url);
        if (now !== url) {
            url = now;
            changes.fire();
        }
    });
    const provider = {
        onDidChangeMcpServerDefinitions: changes.event,
        provideMcpServerDefinitions: () => (url ? [new Definition('Baton', vscode.Uri.parse(url), {}, version)] : []),
        // The token is fetched when the user starts the server, not before.
        resolveMcpServerDefinition: async () => {
            const endpoint = await agent.request(GetEndpoint, {});
            const headers = { Authorization: `Bearer ${endpoint.token}` };
            return new Definition('Baton', vscode.Uri.parse(ownUrl(agent, endpoint.url) ?? endpoint.url), headers, version);
        },
    };
    return [changes, subscription, lm.registerMcpServerDefinitionProvider('baton', provider)];
}
