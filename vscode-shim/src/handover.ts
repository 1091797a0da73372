// An AI client asks for this window: the user decides.

import * as vscode from 'vscode';
import type { MessageConnection } from 'vscode-jsonrpc/node';

import { plainName } from './plain';
import { AskHandover } from './protocol';

/** The client waits for 30 s; after that the agent takes no answer any more. */
const OPEN_MS = 29_000;

export function serveHandover(connection: MessageConnection): void {
    connection.onRequest(AskHandover, async (asked) => {
        const client = plainName(asked.client);
        const yes = vscode.l10n.t('Allow');
        const no = vscode.l10n.t('Deny');
        const question = vscode.l10n.t('{0} wants to work in this window.', client);
        const askedAt = performance.now();
        // It cannot be taken away; the same question put again takes its place.
        const answer = await vscode.window.showInformationMessage(question, yes, no);
        const isOpen = performance.now() - askedAt < OPEN_MS;
        if (answer === yes && !isOpen) {
            const text = vscode.l10n.t('{0} is no longer waiting for an answer. Let it ask again, or take over here yourself.', client);
            void vscode.window.showInformationMessage(text);
        }
        return { agreed: answer === yes && isOpen };
    });
}
