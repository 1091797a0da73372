// What keeps Baton from working, as the user reads it, and the buttons that help.

import * as vscode from 'vscode';

import { unlinked } from './plain';
import type { Problem } from './protocol';

/** The agent's sentences are English, and keys of their translations. */
export function sentence({ message, args = [] }: Problem): string {
    return vscode.l10n.t(message, ...args);
}

export interface Remedy {
    label: string;
    command: string;
}

/** What the user can do about it, the best first. */
export function remedies({ code }: Problem): Remedy[] {
    switch (code) {
        case 'port_taken':
        case 'port_refused':
        case 'bad_port':
            return [{ label: vscode.l10n.t('Change the port...'), command: 'baton.changePort' }];
        case 'untrusted':
            return [{ label: vscode.l10n.t('Manage trust...'), command: 'workbench.trust.manage' }];
        case 'stopped':
            return [{ label: vscode.l10n.t('Start'), command: 'baton.restart' }];
        case 'refused':
            return [{ label: vscode.l10n.t('Reload window'), command: 'workbench.action.reloadWindow' }, showLogs()];
        default:
            return [{ label: vscode.l10n.t('Try again'), command: 'baton.restart' }, showLogs()];
    }
}

/** One sentence, and buttons. */
export async function warn(problem: Problem, buttons = remedies(problem)): Promise<void> {
    const labels = buttons.map(({ label }) => label);
    // A message that goes with its window is no error.
    const asked = vscode.window.showErrorMessage(unlinked(`Baton: ${sentence(problem)}`), ...labels);
    const chosen = await Promise.resolve(asked).catch(() => undefined);
    const command = buttons.find(({ label }) => label === chosen)?.command;
    if (command !== undefined) {
        await vscode.commands.executeCommand(command);
    }
}

/** Says why an action came to nothing. */
export async function warnOf(error: unknown): Promise<void> {
    const problem = problemOf(error);
    await warn(problem, problem.code === '' ? [showLogs()] : remedies(problem));
}

/** What a thrown thing says; the agent's errors carry a problem. */
export function reason(error: unknown): string {
    return sentence(problemOf(error));
}

function problemOf(error: unknown): Problem {
    const problem = (error as { data?: Problem | null } | undefined)?.data;
    return problem?.code ? problem : { code: '', message: error instanceof Error ? error.message : String(error) };
}

function showLogs(): Remedy {
    return { label: vscode.l10n.t('Show logs'), command: 'baton.showLogs' };
}
