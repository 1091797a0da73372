// An AI client asks for this window: the user decides.

import * as vscode from 'vscode';
import type { MessageConnection } from 'vscode-jsonrpc/node';

import { AskHandover } from './protocol';

export function serveHandover(connection: MessageConnection): void {
    connection.onRequest(AskHandover, async ({ client }) => {
        const yes = vscode.l10n.t('Allow');
        const no = vscode.l10n.t('Refuse');
        const question = vscode.l10n.t('{0} asks to work in this window.', client);
        return { agreed: (await vscode.window.showInformationMessage(question, yes, no)) === yes };
    });
}
