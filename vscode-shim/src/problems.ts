// What keeps Baton from working, as the user reads it, and the buttons that help. The agent says it in English, with a
// stable code.

import * as vscode from 'vscode';

import type { Problem } from './protocol';

export function sentence({ code, message, args = [] }: Problem): string {
    const [first = '', second = ''] = args;
    switch (code) {
        case 'agent_cannot_start':
            return vscode.l10n.t('Baton\'s agent cannot be started: {0}', first);
        case 'agent_ended':
            return vscode.l10n.t('Baton\'s agent ended unexpectedly ({0}); it is being started again.', first);
        case 'agent_silent':
            return vscode.l10n.t('Baton\'s agent was started and says nothing.');
        case 'other_version':
            return vscode.l10n.t('Baton\'s agent is version {0}, and this extension needs {1}.', first || '?', second);
        case 'port_taken':
            return vscode.l10n.t('Port {0} is held by {1}: end that program, or choose another port.', first, second);
        case 'port_refused':
            return vscode.l10n.t('Port {0} is in use; choose another one.', first);
        case 'bad_port':
            return vscode.l10n.t('{0} is not a port that Baton can use; choose one from 1024 to 65535.', first);
        case 'stopped':
            return vscode.l10n.t('Baton was stopped with `baton down`.');
        case 'state_folder':
            return vscode.l10n.t('Baton\'s state folder cannot be used: {0}', first);
        case 'coordinator_hangs':
            return vscode.l10n.t('Baton\'s coordinator (process {0}) does not answer.', first);
        case 'coordinator_dies':
            return vscode.l10n.t('Baton\'s coordinator ended several times; Baton waits before it tries again.');
        case 'coordinator_unreachable':
            return vscode.l10n.t('Baton\'s coordinator cannot be reached: {0}', message);
        case 'program_missing':
            return vscode.l10n.t('Baton\'s program {0} cannot be run.', first);
        case 'refused':
            return vscode.l10n.t('Baton\'s coordinator does not take this window: {0}', message);
        case 'untrusted':
            return vscode.l10n.t('An AI client wants to debug here, but you do not trust this workspace yet.');
        default:
            return message;
    }
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
    const asked = vscode.window.showErrorMessage(`Baton: ${sentence(problem)}`, ...labels);
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
