// Real VS Code: code-server, whose windows are pages of a headless Chromium, one extension host each.

import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { BIN, CHROMIUM, CODE_SERVER, EXTENSION, FIXTURES, NODE, PYTHON, freePort, playwright } from './place.mjs';

/** For what starts: a busy machine takes its time. */
const READY_MS = 90_000;
/** For what follows a click or a call at once, and for a machine that is busy. */
const ANSWER_MS = 30_000;
/** For the command line. */
const COMMAND_MS = 30_000;
const CHROMIUM_ARGS = [
    '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync',
];
const USER_SETTINGS = {
    'workbench.startupEditor': 'none',
    'telemetry.telemetryLevel': 'off',
    'extensions.autoUpdate': false,
    'extensions.autoCheckUpdates': false,
    'update.mode': 'none',
    'workbench.enableExperiments': false,
    'workbench.secondarySideBar.defaultVisibility': 'hidden',
    'chat.disableAIFeatures': true,
    'workbench.reduceMotion': 'on',
    'window.confirmBeforeClose': 'never',
    'debug.openDebug': 'neverOpen',
    'remote.autoForwardPorts': false,
    'git.enabled': false,
    'npm.autoDetect': 'off',
    'miniDebugpy.python': PYTHON,
};

/** One server, one browser, one state folder of Baton. */
export class Editor {
    /**
     * options: settings, machine (settings), vsix (the package to install, with the programs in it),
     * bin (the folder with the programs), env, chinese, trust (whether folders have to be trusted), extensions (folders).
     * What is started is put into `started` first, so that it can be ended whatever happens.
     */
    static async start(options = {}, started = []) {
        const run = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-windows-'));
        const editor = new this(run, await freePort(), await freePort());
        started.push(editor);
        editor.writeProfile(options);
        editor.installExtensions(options);
        await editor.startServer(options);
        await editor.startBrowser(options);
        return editor;
    }

    constructor(run, port, batonPort) {
        this.run = run;
        this.base = `http://127.0.0.1:${port}`;
        this.port = port;
        this.batonPort = batonPort;
        this.home = path.join(run, 'baton');
        this.windows = [];
        this.seen = new Map();
        this.pageErrors = [];
        this.env = {};
    }

    /** A copy of a fixture project, so that nothing a test does stays. */
    project(fixture, name = fixture) {
        const own = path.join(import.meta.dirname, 'projects', fixture);
        const from = fs.existsSync(own) ? own : path.join(FIXTURES, fixture);
        const folder = path.join(this.run, 'projects', name);
        fs.cpSync(from, folder, { recursive: true });
        return folder;
    }

    /**
     * Opens a window on a folder, a `.code-workspace` file, or nothing (''), and waits for its status item (unless
     * `ready` is null).
     */
    async open(folder, ready = /^Baton: (live|standby|off|error)/) {
        const page = await this.browser.newPage();
        page.on('console', (message) => {
            if (message.type() === 'error' && message.text().includes('[baton.baton]')) {
                this.pageErrors.push(message.text());
            }
        });
        const window = new Window(page, folder, this);
        this.windows.push(window);
        await window.show(folder);
        if (ready !== null) {
            await window.waitForStatus(ready, READY_MS);
        }
        return window;
    }

    /** `baton ...` on this state folder. */
    baton(...args) {
        const options = { env: this.environment(), encoding: 'utf8', timeout: COMMAND_MS };
        const done = spawnSync(path.join(BIN, 'baton'), args, options);
        if (done.error) {
            throw done.error;
        }
        return done.stdout.trim();
    }

    status() {
        return JSON.parse(this.baton('status', '--json'));
    }

    /** Settings of the coordinator. */
    settings() {
        return JSON.parse(this.baton('settings'));
    }

    /** The window as the coordinator knows it. */
    known(window) {
        return this.status().windows.find(({ folders }) => folders.includes(window.folder));
    }

    /** Settings of the machine, as a user edits them by hand; the windows take them up. */
    writeMachineSettings(settings) {
        fs.writeFileSync(path.join(this.run, 'user/Machine/settings.json'), JSON.stringify(settings));
    }

    /** Ends the coordinator the hard way. */
    killCoordinator() {
        const { pid } = this.status();
        process.kill(pid, 'SIGKILL');
        return pid;
    }

    environment() {
        const entries = Object.entries(process.env).filter(([name]) => !/^(VSCODE_|ELECTRON_|BATON_)/.test(name));
        return { ...Object.fromEntries(entries), ...this.env, BATON_HOME: this.home, BATON_PORT: String(this.batonPort), BATON_LOG: process.env.BATON_LOG ?? 'info' };
    }

    /** Ends everything, and removes what was written. */
    async stop() {
        await this.end();
        this.remove();
    }

    async end() {
        for (const window of this.windows) {
            await window.page.close({ runBeforeUnload: false }).catch(() => {});
        }
        await this.browser?.close().catch(() => {});
        if (this.server) {
            const ended = new Promise((resolve) => this.server.once('exit', resolve));
            if (this.server.exitCode === null && this.server.signalCode === null) {
                this.server.kill('SIGTERM');
                await ended;
            }
        }
        this.baton('down');
    }

    /** Removes everything that was written, unless KEEP is set. */
    remove() {
        if (!process.env.KEEP) {
            fs.rmSync(this.run, { recursive: true, force: true, maxRetries: 5 });
        }
    }

    /** Closes lists and boxes that a test left open. */
    async closeLists() {
        for (const { page } of this.windows.filter((window) => !window.page.isClosed())) {
            if (await page.locator('.quick-input-widget').isVisible().catch(() => false)) {
                await page.keyboard.press('Escape').catch(() => {});
            }
        }
    }

    /** What Baton threw into an extension host's log, or VS Code's page says of it, since the last look. */
    complaints() {
        const found = this.pageErrors.splice(0);
        for (const file of this.logFiles('remoteexthost.log')) {
            const text = fs.readFileSync(file, 'utf8');
            const fresh = text.slice(this.seen.get(file) ?? 0);
            this.seen.set(file, text.length);
            const entries = fresh.split(/^(?=\d{4}-\d\d-\d\d )/m);
            found.push(...entries.filter((entry) => /\[(error|warning)\]/.test(entry) && entry.includes('baton.baton')));
        }
        return found;
    }

    /** All logs of VS Code with this name. */
    logFiles(name) {
        const logs = path.join(this.run, 'user/logs');
        const files = fs.existsSync(logs) ? fs.readdirSync(logs, { recursive: true }) : [];
        return files.filter((file) => path.basename(file) === name).map((file) => path.join(logs, file));
    }

    /** What stands in every status bar and at the end of every log; pictures and whole logs go to `folder`. */
    async describe(folder, index, nLines) {
        const lines = [];
        for (const [at, window] of this.windows.entries()) {
            const name = path.basename(window.folder) || 'no folder';
            const text = window.page.isClosed() ? 'closed' : await window.status(2_000).catch(() => 'no status item');
            lines.push(`window ${name}: ${text}`);
            if (!window.page.isClosed()) {
                const picture = path.join(folder, `${index}-${at}-${name}.png`);
                await window.page.screenshot({ path: picture, timeout: 10_000 }).catch((why) => lines.push(`no picture: ${why}`));
            }
        }
        lines.push(this.baton('status'));
        const own = path.join(this.home, 'logs');
        const logs = fs.existsSync(own) ? fs.readdirSync(own).map((name) => path.join(own, name)) : [];
        for (const file of [...logs, ...this.logFiles('Baton.log'), ...this.logFiles('remoteexthost.log')]) {
            const name = path.relative(this.run, file).replaceAll(path.sep, '-');
            fs.copyFileSync(file, path.join(folder, `${index}-${name}`));
            if (logs.includes(file)) {
                const all = fs.readFileSync(file, 'utf8').trimEnd().split('\n').filter((line) => !line.includes('rmcp::'));
                lines.push(`--- end of ${name}`, ...all.slice(-nLines));
            }
        }
        return lines.join('\n');
    }

    writeProfile({ settings = {}, machine = {}, trust = false }) {
        const write = (file, content) => {
            const full = path.join(this.run, file);
            fs.mkdirSync(path.dirname(full), { recursive: true });
            fs.writeFileSync(full, content);
        };
        write('config.yaml', `bind-addr: 127.0.0.1:${this.port}\nauth: none\ncert: false\n`);
        const user = { ...USER_SETTINGS, 'security.workspace.trust.enabled': trust, ...settings };
        write('user/User/settings.json', JSON.stringify(user));
        write('user/Machine/settings.json', JSON.stringify(machine));
        fs.mkdirSync(path.join(this.run, 'ext'), { recursive: true });
    }

    installExtensions({ vsix, chinese = false, extensions = [] }) {
        if (vsix) {
            const done = spawnSync(NODE, [...this.serverArgs(), '--install-extension', vsix], { encoding: 'utf8' });
            if (done.status !== 0) {
                throw new Error(`the .vsix cannot be installed: ${done.stdout}${done.stderr}`);
            }
        } else {
            const to = path.join(this.run, 'ext/baton.baton-0.1.0');
            for (const part of ['package.json', 'package.nls.json', 'package.nls.zh-cn.json', 'dist', 'l10n', 'images']) {
                fs.cpSync(path.join(EXTENSION, part), path.join(to, part), { recursive: true });
            }
        }
        const at = (name) => path.join(this.run, `ext/fixture.${name}-0.0.1`);
        for (const name of ['mini-debugpy', ...(chinese ? ['language-zh'] : []), ...extensions]) {
            fs.cpSync(path.join(import.meta.dirname, name), at(name), { recursive: true });
        }
        if (chinese) {
            // What VS Code writes when a language pack is installed by hand.
            const pack = {
                hash: 'fixture',
                extensions: [{ extensionIdentifier: { id: 'fixture.language-zh' }, version: '0.0.1' }],
                translations: { vscode: path.join(at('language-zh'), 'vscode.json') },
                label: '中文(简体)',
            };
            fs.writeFileSync(path.join(this.run, 'user/languagepacks.json'), JSON.stringify({ 'zh-cn': pack }));
        }
    }

    serverArgs() {
        const at = (name) => path.join(this.run, name);
        return [
            path.join(CODE_SERVER, 'out/node/entry.js'),
            ...['--config', at('config.yaml'), '--user-data-dir', at('user'), '--extensions-dir', at('ext')],
        ];
    }

    async startServer({ vsix, bin = BIN, env: more = {}, trust = false, chinese = false, detached = false }) {
        this.env = more;
        const env = { ...this.environment(), EXTENSIONS_GALLERY: '{"serviceUrl":""}' };
        if (!vsix) {
            env.BATON_BIN_DIR = bin;
        }
        const log = fs.openSync(path.join(this.run, 'server.log'), 'w');
        const flags = [
            '--disable-telemetry', '--disable-update-check', '--disable-getting-started-override',
            '--reconnection-grace-time', '5',
            ...(trust ? [] : ['--disable-workspace-trust']),
            ...(chinese ? ['--locale', 'zh-cn'] : []),
        ];
        this.server = spawn(NODE, [...this.serverArgs(), ...flags], { env, detached, stdio: ['ignore', log, log] });
        await until('code-server answers', async () => (await fetch(`${this.base}/healthz`)).ok);
    }

    async startBrowser({ chinese = false }) {
        const profile = path.join(this.run, 'chromium');
        this.browser = await playwright().chromium.launchPersistentContext(profile, {
            executablePath: CHROMIUM,
            headless: true,
            chromiumSandbox: false,
            viewport: { width: 1280, height: 800 },
            locale: chinese ? 'zh-CN' : 'en-US',
            args: CHROMIUM_ARGS,
        });
        await this.browser.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: this.base });
    }
}

/** One VS Code window. */
export class Window {
    constructor(page, folder, editor) {
        this.page = page;
        this.folder = folder;
        this.editor = editor;
    }

    /** Shows a folder, a `.code-workspace` file, or nothing (''), in the place of what was there. */
    async show(folder) {
        const kind = folder.endsWith('.code-workspace') ? 'workspace' : 'folder';
        const what = folder === '' ? 'ew=true' : `${kind}=${encodeURIComponent(folder)}`;
        await this.page.goto(`${this.editor.base}/?${what}`);
        await this.page.locator('.monaco-workbench').waitFor({ timeout: READY_MS });
    }

    get statusItem() {
        return this.page.locator('.statusbar-item[id$="baton.baton.baton"], .statusbar-item', { hasText: 'Baton:' }).first();
    }

    /** The text of the status bar item, without its icon. */
    async status(timeout = ANSWER_MS) {
        return (await this.statusItem.innerText({ timeout })).trim();
    }

    /** Waits for a text of the status bar item. */
    async waitForStatus(text, timeout = ANSWER_MS) {
        const pattern = text instanceof RegExp ? text : new RegExp(`^Baton[:：] ?${text}$`);
        await until(
            `the status bar of ${path.basename(this.folder)} says ${pattern}`,
            async () => pattern.test(await this.status()),
            timeout,
            () => this.status(1_000).catch(() => 'nothing'),
        );
    }

    /** Opens the panel by a click, and chooses the first of these entries that is there. */
    async choose(...entries) {
        // A page in the background is drawn seldom, and a click waits for that.
        await this.page.bringToFront();
        await this.statusItem.click();
        await this.pick(new RegExp(entries.join('|')));
        await this.panelGone();
    }

    /** What is typed from now on does not go into the panel. */
    async panelGone() {
        await this.page.locator('.quick-input-title', { hasText: /^Baton: / }).waitFor({ state: 'hidden', timeout: ANSWER_MS });
    }

    /** Chooses a row of the open QuickPick: by a text in it, or by how its label begins. */
    async pick(text, { begins = false } = {}) {
        const rows = this.page.locator('.quick-input-widget .monaco-list-row');
        const row = begins ? this.page.locator(`.quick-input-widget .monaco-list-row[aria-label^="${text}"]`) : rows.filter({ hasText: text }).first();
        await row.waitFor({ timeout: ANSWER_MS });
        await row.click();
    }

    /** What the palette offers for a text, once this is among it. */
    async offered(text, awaited) {
        await this.openPalette(text);
        const rows = this.page.locator('.quick-input-widget .monaco-list-row');
        await rows.filter({ hasText: awaited }).first().waitFor({ timeout: ANSWER_MS });
        const offered = await rows.allTextContents();
        await this.page.keyboard.press('Escape');
        return offered;
    }

    /** Runs a command through the palette. */
    async command(title) {
        await this.openPalette(title);
        await this.pick(title);
    }

    /** Opens the palette and types into it. What takes the focus in that moment, a stop that is shown, closes it again. */
    async openPalette(text) {
        await until('the palette is open', async () => {
            await this.page.bringToFront();
            await this.page.locator('.monaco-workbench').focus();
            await this.page.keyboard.press('F1');
            await this.page.locator('.quick-input-widget input').fill(`>${text}`, { timeout: 3_000 });
            return true;
        }, ANSWER_MS);
    }

    /** By default a page believes that it is focused; from now on it knows better. */
    async followFocus() {
        const session = await this.page.context().newCDPSession(this.page);
        await session.send('Emulation.setFocusEmulationEnabled', { enabled: false });
    }

    /** VS Code's bar with continue, step and stop; there while something is debugged. */
    toolbar() {
        return this.page.locator('.debug-toolbar:visible');
    }

    /** Presses a button of that bar: continue, step-over, stop, ... */
    async press(button) {
        await this.page.bringToFront();
        await this.toolbar().locator(`.codicon-debug-${button}`).first().click();
    }

    /** Opens a file of the project. */
    async openFile(name) {
        await this.page.bringToFront();
        const input = this.page.locator('.quick-input-widget input');
        // A key that comes while VS Code rearranges itself is lost, as it is to a person.
        await until('the list of files is open', async () => {
            if (!(await input.isVisible())) await this.page.keyboard.press('Control+P');
            return input.isVisible();
        });
        await input.fill(name);
        await this.pick(name);
        await this.page.locator('.tab', { hasText: name }).first().waitFor();
        // The tab may have been there before; until its text is, a click on a line is one on another file.
        await this.page.locator(`[data-uri$="/${name}"]:visible`).first().waitFor();
    }

    clipboard() {
        return this.page.evaluate(() => navigator.clipboard.readText());
    }

    async close() {
        await this.page.close({ runBeforeUnload: false });
    }

    async screenshot(file) {
        await this.page.bringToFront();
        await this.page.screenshot({ path: file });
    }
}

/** Polls until `check` is true: what is awaited here is a page or another process, which have no message for us. */
export async function until(what, check, timeout = READY_MS, found = () => 'nothing') {
    const end = Date.now() + timeout;
    for (;;) {
        const ok = await Promise.resolve()
            .then(check)
            .catch(() => false);
        if (ok) {
            return ok;
        }
        if (Date.now() > end) {
            throw new Error(`not within ${timeout} ms: ${what}; found: ${await found()}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}
