// Real VS Code: code-server, whose windows are pages of a headless Chromium, one extension host each.

import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { BIN, CHROMIUM, CODE_SERVER, EXTENSION, FIXTURES, NODE, PYTHON, freePort, playwright } from './place.mjs';

const READY_MS = 60_000;
const CHROMIUM_ARGS = [
    '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync',
];
const USER_SETTINGS = {
    'workbench.startupEditor': 'none',
    'security.workspace.trust.enabled': false,
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
    /** options: settings, machine (settings), locale, vsix (the package to install, with the programs in it) */
    static async start(options = {}) {
        const run = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-windows-'));
        const editor = new Editor(run, await freePort(), await freePort());
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
    }

    /** A copy of a fixture project, so that nothing a test does stays. */
    project(fixture, name = fixture) {
        const own = path.join(import.meta.dirname, 'projects', fixture);
        const from = fs.existsSync(own) ? own : path.join(FIXTURES, fixture);
        const folder = path.join(this.run, 'projects', name);
        fs.cpSync(from, folder, { recursive: true });
        return folder;
    }

    /** Opens a window, and waits for its status item (unless `ready` is null). */
    async open(folder, ready = /^Baton: (live|standby|off|error)/) {
        const page = await this.browser.newPage();
        const window = new Window(page, folder, this);
        this.windows.push(window);
        await page.goto(`${this.base}/?${folder === '' ? 'ew=true' : `folder=${encodeURIComponent(folder)}`}`);
        await page.locator('.monaco-workbench').waitFor({ timeout: READY_MS });
        if (ready !== null) {
            await window.waitForStatus(ready, READY_MS);
        }
        return window;
    }

    /** `baton ...` on this state folder. */
    baton(...args) {
        const done = spawnSync(path.join(BIN, 'baton'), args, { env: this.environment(), encoding: 'utf8' });
        if (done.error) {
            throw done.error;
        }
        return done.stdout.trim();
    }

    status() {
        return JSON.parse(this.baton('status', '--json'));
    }

    environment() {
        const entries = Object.entries(process.env).filter(([name]) => !/^(VSCODE_|ELECTRON_|BATON_)/.test(name));
        return { ...Object.fromEntries(entries), BATON_HOME: this.home, BATON_PORT: String(this.batonPort), BATON_LOG: process.env.BATON_LOG ?? 'info' };
    }

    async stop() {
        for (const window of this.windows) {
            await window.page.close({ runBeforeUnload: false }).catch(() => {});
        }
        await this.browser?.close().catch(() => {});
        if (this.server) {
            this.server.kill('SIGTERM');
            await new Promise((resolve) => this.server.once('exit', resolve));
        }
        this.baton('down');
        if (!process.env.KEEP) {
            fs.rmSync(this.run, { recursive: true, force: true, maxRetries: 5 });
        }
    }

    writeProfile({ settings = {}, machine = {} }) {
        const write = (file, content) => {
            const full = path.join(this.run, file);
            fs.mkdirSync(path.dirname(full), { recursive: true });
            fs.writeFileSync(full, content);
        };
        write('config.yaml', `bind-addr: 127.0.0.1:${this.port}\nauth: none\ncert: false\n`);
        write('user/User/settings.json', JSON.stringify({ ...USER_SETTINGS, ...settings }));
        write('user/Machine/settings.json', JSON.stringify(machine));
        fs.mkdirSync(path.join(this.run, 'ext'), { recursive: true });
    }

    installExtensions({ vsix }) {
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
        fs.cpSync(path.join(import.meta.dirname, 'mini-debugpy'), path.join(this.run, 'ext/fixture.mini-debugpy-0.0.1'), {
            recursive: true,
        });
    }

    serverArgs() {
        const at = (name) => path.join(this.run, name);
        return [
            path.join(CODE_SERVER, 'out/node/entry.js'),
            ...['--config', at('config.yaml'), '--user-data-dir', at('user'), '--extensions-dir', at('ext')],
        ];
    }

    async startServer({ vsix }) {
        const env = { ...this.environment(), EXTENSIONS_GALLERY: '{"serviceUrl":""}' };
        if (!vsix) {
            env.BATON_BIN_DIR = BIN;
        }
        const log = fs.openSync(path.join(this.run, 'server.log'), 'w');
        const flags = [
            '--disable-telemetry', '--disable-update-check', '--disable-workspace-trust',
            '--disable-getting-started-override', '--reconnection-grace-time', '5',
        ];
        this.server = spawn(NODE, [...this.serverArgs(), ...flags], { env, stdio: ['ignore', log, log] });
        await until('code-server answers', async () => (await fetch(`${this.base}/healthz`)).ok);
    }

    async startBrowser({ locale = 'en-US' }) {
        const profile = path.join(this.run, 'chromium');
        this.browser = await playwright.chromium.launchPersistentContext(profile, {
            executablePath: CHROMIUM,
            headless: true,
            chromiumSandbox: false,
            viewport: { width: 1280, height: 800 },
            locale,
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

    get statusItem() {
        return this.page.locator('.statusbar-item[id$="baton.baton.baton"], .statusbar-item', { hasText: 'Baton:' }).first();
    }

    /** The text of the status bar item, without its icon. */
    async status() {
        return (await this.statusItem.innerText()).trim();
    }

    /** Waits for a text of the status bar item. */
    async waitForStatus(text, timeout = 10_000) {
        const pattern = text instanceof RegExp ? text : new RegExp(`^Baton: ${text}$`);
        await until(
            `the status bar of ${path.basename(this.folder)} says ${pattern}`,
            async () => pattern.test(await this.status()),
            timeout,
            () => this.status().catch(() => 'nothing'),
        );
    }

    /** Opens the panel by a click, and chooses an entry. */
    async choose(entry) {
        // A page in the background is drawn seldom, and a click waits for that.
        await this.page.bringToFront();
        await this.statusItem.click();
        await this.pick(entry);
    }

    /** Chooses a row of the open QuickPick: by a text in it, or by how its label begins. */
    async pick(text, { begins = false } = {}) {
        const rows = this.page.locator('.quick-input-widget .monaco-list-row');
        const row = begins ? this.page.locator(`.quick-input-widget .monaco-list-row[aria-label^="${text}"]`) : rows.filter({ hasText: text }).first();
        await row.waitFor({ timeout: 10_000 });
        await row.click();
    }

    /** Runs a command through the palette. */
    async command(title) {
        await this.page.bringToFront();
        await this.page.locator('.monaco-workbench').focus();
        await this.page.keyboard.press('F1');
        await this.page.locator('.quick-input-widget input').fill(`>${title}`);
        await this.pick(title);
    }

    /** By default a page believes that it is focused; from now on it knows better. */
    async followFocus() {
        const session = await this.page.context().newCDPSession(this.page);
        await session.send('Emulation.setFocusEmulationEnabled', { enabled: false });
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
