// The panel: a QuickPick with everything the user can do; each entry is a command too.

import * as vscode from 'vscode';

import type { Agent } from './agent';
import { copyClientConfig } from './clients';
import { type Log, reason } from './log';
import { Act, ChangePort, GetStatus, type Verb, type WindowStatus } from './protocol';
import { configuration, type Settings } from './settings';
import { explanation, headline } from './statusBar';

const MIN_PORT = 1024;
const MAX_PORT = 65_535;

type Entry = vscode.QuickPickItem & { command?: string };

export class Panel {
    constructor(
        private readonly agent: Agent,
        private readonly settings: Settings,
        private readonly window: string,
        private readonly log: Log,
    ) {}

    /** Tells the user of what keeps Baton from working: once, and only in the window they look at. */
    watch(): vscode.Disposable {
        let told: string | undefined;
        return this.agent.onChange(async (view) => {
            const problem = view.kind === 'error' ? view.problem : this.agent.standing?.problem;
            if (problem?.message === told || (problem && !vscode.window.state.focused)) {
                return;
            }
            told = problem?.message;
            if (problem == null || problem.code === 'stopped') {
                return;
            }
            const [button, command] =
                problem.code === 'port_taken'
                    ? [vscode.l10n.t('Change the port...'), 'baton.changePort']
                    : [vscode.l10n.t('Show logs'), 'baton.showLogs'];
            if ((await vscode.window.showErrorMessage(`Baton: ${problem.message}`, button)) === button) {
                await vscode.commands.executeCommand(command);
            }
        });
    }

    /** All commands of the extension. */
    register(): vscode.Disposable[] {
        const commands: Record<string, () => Promise<void> | void> = {
            panel: () => this.open(),
            takeOver: () => this.takeOver(this.window),
            start: () => this.act('start'),
            stop: () => this.act('stop'),
            restart: () => this.restart(),
            handOver: () => this.handOver(),
            changePort: () => this.changePort(),
            toggleAutoStart: () => this.toggleAutoStart(),
            copyClientConfig: () => copyClientConfig(this.agent),
            showLogs: () => this.log.show(),
        };
        return Object.entries(commands).map(([name, run]) =>
            vscode.commands.registerCommand(`baton.${name}`, () => this.guarded(run)),
        );
    }

    /** Whatever goes wrong is one sentence and a button, and nothing is thrown into VS Code. */
    private async guarded(run: () => Promise<void> | void): Promise<void> {
        try {
            await run();
        } catch (error) {
            this.log.error(reason(error));
            const logs = vscode.l10n.t('Show logs');
            if ((await vscode.window.showErrorMessage(reason(error), logs)) === logs) {
                this.log.show();
            }
        }
    }

    private async open(): Promise<void> {
        const standing = this.agent.standing;
        const entry = await vscode.window.showQuickPick(this.entries(), {
            title: `Baton: ${headline(this.agent.view).word}`,
            placeHolder: standing ? explanation(standing, this.window) : undefined,
            matchOnDescription: true,
        } as vscode.QuickPickOptions);
        if (entry?.command !== undefined) {
            await vscode.commands.executeCommand(`baton.${entry.command}`);
        }
    }

    private entries(): Entry[] {
        const standing = this.agent.standing;
        const state = standing?.state;
        const autoStart = this.settings.autoStart;
        const entries: Entry[] = [];
        if (state === 'standby') {
            entries.push(entry('debug-start', vscode.l10n.t('Take over'), 'takeOver', standing?.live?.name));
        }
        if (state === 'off') {
            entries.push(entry('debug-start', vscode.l10n.t('Start'), 'start'));
        }
        if (state === 'live' || state === 'standby') {
            entries.push(entry('debug-stop', vscode.l10n.t('Stop'), 'stop'));
        }
        entries.push(entry('debug-restart', vscode.l10n.t('Restart'), 'restart'));
        if (state) {
            entries.push(entry('arrow-swap', vscode.l10n.t('Hand over to another window...'), 'handOver'));
        }
        entries.push(
            { label: '', kind: vscode.QuickPickItemKind.Separator },
            autoStart
                ? entry('check', vscode.l10n.t('Auto-start is on; switch it off'), 'toggleAutoStart')
                : entry('circle-slash', vscode.l10n.t('Auto-start is off; switch it on'), 'toggleAutoStart'),
            entry('plug', vscode.l10n.t('Change the port...'), 'changePort', standing?.url ?? undefined),
            entry('copy', vscode.l10n.t('Copy a client\'s configuration...'), 'copyClientConfig'),
            entry('output', vscode.l10n.t('Show logs'), 'showLogs'),
        );
        return entries;
    }

    private async act(verb: Verb, window?: string): Promise<void> {
        await this.agent.request(Act, { verb, window: window ?? null });
    }

    private async restart(): Promise<void> {
        if (this.agent.standing?.state) {
            await this.act('restart');
        } else {
            await this.agent.restart();
        }
    }

    private async takeOver(window: string): Promise<void> {
        const { windows } = await this.agent.request(GetStatus, {});
        const live = windows.find((other) => other.state === 'live' && other.id !== window);
        if (live !== undefined && live.debug_sessions.length > 0 && !(await this.confirm(live))) {
            return;
        }
        await this.act('take', window);
    }

    private async confirm(live: WindowStatus): Promise<boolean> {
        const yes = vscode.l10n.t('Take over');
        const question = vscode.l10n.t('An AI client is debugging in {0}. Take over all the same?', live.name);
        const detail = vscode.l10n.t('Its session goes on there; new calls come to this window.');
        return (await vscode.window.showWarningMessage(question, { modal: true, detail }, yes)) === yes;
    }

    private async handOver(): Promise<void> {
        const { windows } = await this.agent.request(GetStatus, {});
        const others = windows.filter((other) => other.state !== 'live');
        if (others.length === 0) {
            void vscode.window.showInformationMessage(vscode.l10n.t('There is no other window.'));
            return;
        }
        const items = others.map((other) => ({
            label: other.id === this.window ? vscode.l10n.t('{0} (this window)', other.name) : other.name,
            description: other.folders.join(', '),
            id: other.id,
        }));
        const title = vscode.l10n.t('Which window is to answer AI clients?');
        const window = await vscode.window.showQuickPick(items, { title, matchOnDescription: true });
        if (window !== undefined) {
            await this.takeOver(window.id);
        }
    }

    private async changePort(): Promise<void> {
        const port = this.port();
        const text = await vscode.window.showInputBox({
            title: vscode.l10n.t('Port for all windows of this machine'),
            value: String(port),
            validateInput: (input) => (isPort(input) ? undefined : vscode.l10n.t('A number from 1024 to 65535.')),
        });
        if (text === undefined || Number(text) === port) {
            return;
        }
        const { url } = await this.agent.request(ChangePort, { port: Number(text) });
        await configuration().update('port', Number(text), vscode.ConfigurationTarget.Global);
        const copy = vscode.l10n.t('Copy a client\'s configuration...');
        const message = vscode.l10n.t('Baton answers at {0} now. Your clients need the new URL.', url);
        if ((await vscode.window.showInformationMessage(message, copy)) === copy) {
            await copyClientConfig(this.agent);
        }
    }

    private port(): number {
        const url = this.agent.standing?.url;
        return url ? Number(new URL(url).port) : configuration().get('port', 0);
    }

    private async toggleAutoStart(): Promise<void> {
        const message = (await this.settings.toggleAutoStart())
            ? vscode.l10n.t('This window may start by itself.')
            : vscode.l10n.t('This window does not start by itself any more.');
        vscode.window.setStatusBarMessage(message, 5_000);
    }
}

function entry(icon: string, label: string, command: string, description?: string): Entry {
    return { label: `$(${icon}) ${label}`, command, ...(description === undefined ? {} : { description }) };
}

function isPort(text: string): boolean {
    return /^\d+$/.test(text) && Number(text) >= MIN_PORT && Number(text) <= MAX_PORT;
}
