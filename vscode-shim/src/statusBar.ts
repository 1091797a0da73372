// The item in the status bar: a word for where this window stands; a click opens the panel.

import * as vscode from 'vscode';

import type { Agent, View } from './agent';
import type { Standing } from './protocol';

/** Left of the language and the encoding. */
const PRIORITY = 90;

export class StatusBar implements vscode.Disposable {
    private readonly item: vscode.StatusBarItem;
    private readonly subscription: vscode.Disposable;

    constructor(agent: Agent, window: string) {
        this.item = vscode.window.createStatusBarItem('baton', vscode.StatusBarAlignment.Right, PRIORITY);
        this.item.name = 'Baton';
        this.item.command = 'baton.panel';
        this.show(agent.view, window);
        this.item.show();
        this.subscription = agent.onChange((view) => this.show(view, window));
    }

    private show(view: View, window: string): void {
        const { icon, word } = headline(view);
        this.item.text = `$(${icon}) Baton: ${word}`;
        this.item.tooltip = tooltip(view, window);
        this.item.accessibilityInformation = { label: `Baton: ${word}`, role: 'button' };
        this.item.backgroundColor =
            icon === 'error' ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
    }

    dispose(): void {
        this.subscription.dispose();
        this.item.dispose();
    }
}

export function headline(view: View): { icon: string; word: string } {
    if (view.kind === 'error') {
        return { icon: 'error', word: vscode.l10n.t('error') };
    }
    const standing = view.kind === 'standing' ? view.standing : undefined;
    if (standing?.problem) {
        return { icon: 'error', word: vscode.l10n.t('error') };
    }
    switch (standing?.state) {
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

/** One sentence about who answers. */
export function explanation(standing: Standing, window: string): string {
    if (standing.problem) {
        return standing.problem.message;
    }
    if (standing.live?.id === window) {
        return vscode.l10n.t('This window answers AI clients.');
    }
    if (standing.live) {
        return vscode.l10n.t('{0} answers AI clients.', standing.live.name);
    }
    return vscode.l10n.t('No window answers AI clients.');
}

function tooltip(view: View, window: string): vscode.MarkdownString {
    const text = new vscode.MarkdownString();
    if (view.kind === 'error') {
        text.appendText(view.problem.message);
    } else if (view.kind === 'standing') {
        text.appendText(explanation(view.standing, window));
        if (view.standing.why !== '' && vscode.env.language.startsWith('en')) {
            text.appendMarkdown('\n\n').appendText(`(${view.standing.why})`);
        }
        if (view.standing.url) {
            text.appendMarkdown('\n\n').appendText(view.standing.url);
        }
    } else {
        text.appendText(vscode.l10n.t('Baton is starting.'));
    }
    return text;
}
