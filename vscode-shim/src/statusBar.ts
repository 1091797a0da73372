// The item in the status bar: a word for where this window stands; a click opens the panel.

import * as vscode from 'vscode';

import type { Agent } from './agent';
import { sentence } from './problems';

const COPY = 'baton.copyClientConfig';
/** Left of the language and the encoding. */
const PRIORITY = 90;

export function showStatus(agent: Agent): vscode.Disposable {
    const item = vscode.window.createStatusBarItem('baton', vscode.StatusBarAlignment.Right, PRIORITY);
    item.name = 'Baton';
    item.command = 'baton.panel';
    const show = () => {
        const { icon, word } = headline(agent);
        const shown = vscode.workspace.isTrusted ? word : vscode.l10n.t('{0}, restricted', word);
        item.text = `$(${icon}) Baton: ${shown}`;
        item.tooltip = tooltip(agent);
        // Commands that would do nothing are not offered.
        void vscode.commands.executeCommand('setContext', 'baton.state', agent.problem ? undefined : agent.standing?.state);
        item.accessibilityInformation = { label: `Baton: ${shown}`, role: 'button' };
        item.backgroundColor = icon === 'error' ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
    };
    show();
    item.show();
    return vscode.Disposable.from(item, agent.onChange(show), vscode.workspace.onDidGrantWorkspaceTrust(show));
}

export function headline({ standing, problem }: Agent): { icon: string; word: string } {
    if (problem !== undefined && problem.code !== 'stopped') {
        return { icon: 'error', word: vscode.l10n.t('error') };
    }
    switch (problem ? 'off' : standing?.state) {
        case 'live':
            return { icon: 'radio-tower', word: vscode.l10n.t('live') };
        case 'standby':
            return { icon: 'circle-outline', word: vscode.l10n.t('standby') };
        case 'off':
            return { icon: 'circle-slash', word: vscode.l10n.t('off') };
        default:
            return { icon: 'loading~spin', word: vscode.l10n.t('starting') };
    }
}

/** One sentence: what is wrong, or who answers. */
export function explanation({ standing, problem }: Agent): string {
    if (problem !== undefined) {
        return sentence(problem);
    }
    if (!standing?.state) {
        return vscode.l10n.t('Baton is starting.');
    }
    if (standing.state === 'live') {
        return vscode.l10n.t('This window answers AI clients.');
    }
    if (standing.live) {
        return vscode.l10n.t('{0} answers AI clients.', standing.live.name);
    }
    return standing.state === 'off'
        ? vscode.l10n.t('No window answers AI clients. To answer here, start this window.')
        : vscode.l10n.t('No window answers AI clients. To answer here, take over.');
}

function restricted(): string {
    return vscode.l10n.t('Restricted Mode: no debugging and no language servers until you trust this folder.');
}

function tooltip(agent: Agent): vscode.MarkdownString {
    const text = new vscode.MarkdownString().appendText(explanation(agent));
    const { why, url } = agent.standing ?? {};
    if (why && agent.problem === undefined && vscode.env.language.startsWith('en')) {
        text.appendMarkdown('\n\n').appendText(`(${why})`);
    }
    if (!vscode.workspace.isTrusted) {
        text.appendMarkdown('\n\n').appendText(restricted());
    }
    if (url) {
        // As code, so that it is no link: where it leads to, a browser sees nothing.
        text.isTrusted = { enabledCommands: [COPY] };
        text.appendMarkdown(`\n\n\`${url}\`\n\n[${vscode.l10n.t('Connect an AI client...')}](command:${COPY})`);
    }
    return text;
}
