// The two programs of Baton: they come inside the extension and are run from a versioned folder outside of it, because
// the coordinator lives on when the extension is updated or removed.

import { createHash } from 'node:crypto';
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';

const PROGRAMS = ['baton', 'baton-agent'];
/** A folder that no window has started anything from for so long is not needed by a program that still runs. */
const KEPT_MS = 14 * 24 * 60 * 60 * 1_000;

/** The folder with both programs, ready to run; `anew` when what is there does not work. */
export async function installBinaries(context: vscode.ExtensionContext, anew: boolean): Promise<string> {
    const named = process.env['BATON_BIN_DIR'];
    if (named) {
        return named;
    }
    const from = context.asAbsolutePath('bin');
    const stats = await Promise.all(PROGRAMS.map((name) => fs.stat(path.join(from, name))));
    const print = createHash('sha256').update(stats.map((stat) => `${stat.size} ${stat.mtimeMs}`).join());
    const manifest = context.extension.packageJSON as { version: string };
    const version = `${manifest.version}-${print.digest('hex').slice(0, 8)}`;
    const to = path.join(context.globalStorageUri.fsPath, 'bin', version);
    if (anew) {
        await fs.rm(to, { recursive: true, force: true });
    }
    if (!(await isInstalled(to))) {
        await copy(from, to);
        await removeOld(path.dirname(to)).catch(() => undefined);
    }
    const now = new Date();
    await fs.utimes(to, now, now).catch(() => undefined);
    return to;
}

/** Several windows may do this at once: each copies to a place of its own, and the first rename wins. */
async function copy(from: string, to: string): Promise<void> {
    const temporary = `${to}.${process.pid}`;
    await fs.mkdir(temporary, { recursive: true });
    for (const name of PROGRAMS) {
        await fs.copyFile(path.join(from, name), path.join(temporary, name));
        await fs.chmod(path.join(temporary, name), 0o755);
    }
    try {
        await fs.rename(temporary, to);
    } catch {
        // Another window was first, or a program is missing in what lies there.
        if (!(await isInstalled(to))) {
            await fs.rm(to, { recursive: true, force: true });
            await fs.rename(temporary, to);
        }
    } finally {
        await fs.rm(temporary, { recursive: true, force: true });
    }
}

async function isInstalled(folder: string): Promise<boolean> {
    const programs = PROGRAMS.map((name) => fs.access(path.join(folder, name)));
    return Promise.all(programs).then(
        () => true,
        () => false,
    );
}

/** Programs of earlier versions, and copies that were never finished. */
async function removeOld(folder: string): Promise<void> {
    for (const name of await fs.readdir(folder)) {
        const { mtimeMs } = await fs.stat(path.join(folder, name));
        if (Date.now() - mtimeMs > KEPT_MS) {
            await fs.rm(path.join(folder, name), { recursive: true, force: true });
        }
    }
}
