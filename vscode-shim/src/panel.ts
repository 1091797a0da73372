// The panel: a QuickPick with everything the user can do; each entry is a command too.

import * as vscode from 'vscode';

import { type Agent, AgentGone } from './agent';
import type { ClientConfigs } from './clients';
import { reason, remedies, sentence, warn, warnOf } from './problems';
import { Act, GetStatus, OpenPage, SetAutoStart, type Verb, type WindowStatus } from './protocol';
import { configuration } from './configuration';
import { isPort, type Settings } from './settings';
import { explanation, headline } from './statusBar';
import type { WindowActions } from './view';

/** For VS Code to say what it marked in a new list. */
const PATIENCE_MS = 1_000;

type Entry = vscode.QuickPickItem & { command?: string };

export class Panel {
    constructor(
        private readonly agent: Agent,
        private readonly settings: Settings,
        private readonly clients: ClientConfigs,
        private readonly log: vscode.LogOutputChannel,
    ) {}

    /** Tells the user of what keeps Baton from working: once, and only in the window they look at. */
    watch(): vscode.Disposable {
        let told: string | undefined;
        const look = () => {
            const { problem } = this.agent;
            const text = problem && sentence(problem);
            if (text === told || (problem && !vscode.window.state.focused)) {
                return;
            }
            told = text;
            if (problem !== undefined && problem.code !== 'stopped') {
                void warn(problem);
            }
        };
        return vscode.Disposable.from(this.agent.onChange(look), vscode.window.onDidChangeWindowState(look));
    }

    /** All commands of the extension. */
    register(): vscode.Disposable[] {
        const commands: Record<string, () => Promise<void> | void> = {
            panel: () => this.open(),
            takeOver: () => this.takeOver(),
            start: () => this.takeOver(undefined, 'start'),
            stop: () => this.act('stop'),
            restart: () => this.restart(),
            handOver: () => this.handOver(),
            changePort: () => this.changePort(),
            toggleAutoStart: () => this.toggleAutoStart(),
            openPage: () => this.openPage(),
            copyClientConfig: () => this.clients.copy(),
            showLogs: () => this.log.show(),
        };
        return Object.entries(commands).map(([name, run]) =>
            vscode.commands.registerCommand(`baton.${name}`, () => this.guarded(run)),
        );
    }

    /** What the view does to a window; it asks as the panel does. */
    readonly actions: WindowActions = {
        takeOver: ({ id, state }) => this.takeOver(id, state === 'off' ? 'start' : 'take'),
        stop: ({ id }) => this.act('stop', id),
        restart: async (window) => {
            if (window.id === this.agent.standing?.window) {
                await this.restart();
            } else if (window.debug_sessions.length === 0 || (await this.confirmRestart(window.name))) {
                await this.act('restart', window.id);
            }
        },
    };

    /** Whatever goes wrong is one sentence and a button, and nothing is thrown into VS Code. */
    async guarded(run: () => Promise<void> | void): Promise<void> {
        try {
            await run();
        } catch (error) {
            if (isCancelled(error)) {
                return;
            }
            this.log.error(reason(error));
            await warnOf(error);
        }
    }

    private async open(): Promise<void> {
        const panel = vscode.window.createQuickPick<Entry>();
        panel.keepScrollPosition = true;
        let drawn = '';
        let marked: string | undefined;
        /** What is to be marked in a new list: until VS Code says that it is, it speaks of the old one or the first entry. */
        let awaited: { command: string | undefined } | undefined;
        /** Of two new lists at once nobody could tell whose mark VS Code speaks of. */
        let isStale = false;
        let patience: NodeJS.Timeout | undefined;
        // What stands here may change while the user reads it.
        const draw = () => {
            panel.title = `Baton: ${headline(this.agent).word}`;
            panel.placeholder = explanation(this.agent);
            const entries = this.entries();
            const now = JSON.stringify(entries);
            if (now === drawn) {
                return;
            }
            if (awaited !== undefined) {
                isStale = true;
                return;
            }
            panel.items = entries;
            // Enter is to choose what was marked before, or nothing.
            if (drawn !== '') {
                panel.activeItems = entries.filter(({ command }) => command !== undefined && command === marked);
                marked = panel.activeItems[0]?.command;
                awaited = { command: marked };
                patience = setTimeout(settle, PATIENCE_MS);
            }
            drawn = now;
        };
        const settle = () => {
            clearTimeout(patience);
            awaited = undefined;
            if (isStale) {
                isStale = false;
                draw();
            }
        };
        panel.onDidChangeActive(([entry]) => {
            if (awaited === undefined || awaited.command === entry?.command) {
                marked = entry?.command;
                settle();
            }
        });
        draw();
        const changes = this.agent.onChange(draw);
        const entry = await new Promise<Entry | undefined>((resolve) => {
            panel.onDidAccept(() => {
                resolve(panel.selectedItems[0]);
                panel.hide();
            });
            panel.onDidHide(() => resolve(undefined));
            panel.show();
        });
        changes.dispose();
        clearTimeout(patience);
        panel.dispose();
        if (entry?.command !== undefined) {
            await vscode.commands.executeCommand(entry.command);
        }
    }

    private entries(): Entry[] {
        const { standing, problem } = this.agent;
        const state = standing?.state;
        // What helps comes first; what is listed below anyway need not come twice.
        const listed = ['baton.changePort', 'baton.showLogs', 'baton.restart'];
        const cures = problem ? remedies(problem) : [];
        const entries: Entry[] = cures
            .filter(({ command }, at) => at === 0 || !listed.includes(command))
            .map(({ label, command }) => ({ label: `$(lightbulb) ${label}`, command }));
        if (state === 'standby') {
            const from = standing?.live && vscode.l10n.t('from {0}', standing.live.name);
            entries.push(entry('debug-start', vscode.l10n.t('Take over'), 'takeOver', from ?? undefined));
        }
        if (state === 'off') {
            const what = vscode.l10n.t('AI clients are answered by this window');
            entries.push(entry('debug-start', vscode.l10n.t('Start'), 'start', what));
        }
        if (state === 'live' || state === 'standby') {
            const what = state === 'live'
                ? vscode.l10n.t('no window answers until one is started')
                : vscode.l10n.t('this window is off until you start it');
            entries.push(entry('debug-stop', vscode.l10n.t('Stop'), 'stop', what));
        }
        if (cures[0]?.command !== 'baton.restart') {
            const what = vscode.l10n.t('ends what clients debug here');
            entries.push(entry('debug-restart', vscode.l10n.t('Restart'), 'restart', what));
        }
        if (state) {
            entries.push(entry('arrow-swap', vscode.l10n.t('Hand over to another window...'), 'handOver'));
        }
        entries.push(
            { label: '', kind: vscode.QuickPickItemKind.Separator },
            standing?.auto_start
                ? entry('check', vscode.l10n.t('Auto-start is on; turn it off'), 'toggleAutoStart')
                : entry('circle-slash', vscode.l10n.t('Auto-start is off; turn it on'), 'toggleAutoStart'),
            entry('plug', vscode.l10n.t('Change the port...'), 'changePort', standing?.url ?? undefined),
            entry('copy', vscode.l10n.t('Connect an AI client...'), 'copyClientConfig'),
            entry('browser', vscode.l10n.t('Open in the browser'), 'openPage', vscode.l10n.t('all windows, and every call')),
            entry('output', vscode.l10n.t('Show logs'), 'showLogs'),
        );
        return entries;
    }

    private async act(verb: Verb, window?: string): Promise<void> {
        await this.agent.request(Act, { verb, window: window ?? null });
    }

    private async restart(): Promise<void> {
        if (this.agent.standing?.state) {
            const { windows } = await this.agent.request(GetStatus, {});
            const own = windows.find(({ id }) => id === this.agent.standing?.window);
            if (own !== undefined && own.debug_sessions.length > 0 && !(await this.confirmRestart())) {
                return;
            }
            // The agent may have ended, to start again, before its answer was here.
            await this.act('restart').catch((error: unknown) => {
                if (!(error instanceof AgentGone)) {
                    throw error;
                }
            });
        } else {
            await this.agent.restart();
        }
    }

    private async takeOver(window = this.agent.standing?.window ?? undefined, verb: Verb = 'take'): Promise<void> {
        const { windows } = await this.agent.request(GetStatus, {});
        const live = windows.find((other) => other.state === 'live' && other.id !== window);
        if (live !== undefined && live.debug_sessions.length > 0 && !(await this.confirm(live))) {
            return;
        }
        await this.act(verb, window);
    }

    private async confirmRestart(name?: string): Promise<boolean> {
        const yes = vscode.l10n.t('Restart');
        const question = name === undefined
            ? vscode.l10n.t('An AI client is debugging in this window. Restart anyway?')
            : vscode.l10n.t('An AI client is debugging in {0}. Restart anyway?', name);
        const detail = vscode.l10n.t('Its debug session ends.');
        return (await vscode.window.showWarningMessage(question, { modal: true, detail }, yes)) === yes;
    }

    private async confirm(live: WindowStatus): Promise<boolean> {
        const yes = vscode.l10n.t('Take over');
        const question = vscode.l10n.t('An AI client is debugging in {0}. Take over anyway?', live.name);
        const detail = vscode.l10n.t('Its session continues there. New calls go to this window.');
        return (await vscode.window.showWarningMessage(question, { modal: true, detail }, yes)) === yes;
    }

    private async handOver(): Promise<void> {
        const { windows } = await this.agent.request(GetStatus, {});
        const others = windows.filter(({ id, state }) => state !== 'live' && id !== this.agent.standing?.window);
        if (others.length === 0) {
            void vscode.window.showInformationMessage(vscode.l10n.t('There is no other window to hand over to.'));
            return;
        }
        const items = others.map((other) => ({
            label: other.name,
            description: other.folders.join(', '),
            id: other.id,
        }));
        const title = vscode.l10n.t('Which window should answer AI clients?');
        const window = await vscode.window.showQuickPick(items, { title, matchOnDescription: true });
        if (window !== undefined) {
            await this.takeOver(window.id);
        }
    }

    private async changePort(): Promise<void> {
        const url = this.agent.standing?.url;
        const port = url ? Number(new URL(url).port) : configuration().get('port', 0);
        const text = await vscode.window.showInputBox({
            title: vscode.l10n.t('Port for all windows on this machine'),
            value: String(port),
            validateInput: (input) => (isPort(Number(input)) ? undefined : vscode.l10n.t('Enter a number from 1024 to 65535.')),
        });
        if (text === undefined || (Number(text) === port && this.agent.problem === undefined)) {
            return;
        }
        await this.clients.offerNewUrl(await this.settings.changePort(Number(text)));
    }

    /** What is in a browser's arguments everybody on its machine can read: on this one a file leads to the page. */
    private async openPage(): Promise<void> {
        const { url, file } = await this.agent.request(OpenPage, {});
        const isHere = vscode.env.uiKind === vscode.UIKind.Desktop && vscode.env.remoteName === undefined;
        await vscode.env.openExternal(isHere && typeof file === 'string' ? vscode.Uri.file(file) : vscode.Uri.parse(url));
    }

    private async toggleAutoStart(): Promise<void> {
        const auto_start = !this.agent.standing?.auto_start;
        await this.agent.request(SetAutoStart, { auto_start });
        const message = auto_start
            ? vscode.l10n.t('This window now starts automatically.')
            : vscode.l10n.t('This window no longer starts automatically.');
        vscode.window.setStatusBarMessage(message, 5_000);
    }
}

/** What an open list or box ends with when its window is closed. */
function isCancelled(error: unknown): boolean {
    return error instanceof vscode.CancellationError || (error instanceof Error && error.name === 'Canceled');
}

function entry(icon: string, label: string, command: string, description?: string): Entry {
    return { label: `$(${icon}) ${label}`, command: `baton.${command}`, ...(description === undefined ? {} : { description }) };
}
