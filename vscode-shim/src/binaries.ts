// The two programs of Baton: they come inside the extension and are run from a versioned folder outside of it, because
// the coordinator lives on when the extension is updated or removed.

import { createHash } from 'node:crypto';
import * as fs from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';

const PROGRAMS = ['baton', 'baton-agent'];

/** The folder with both programs, ready to run; `anew` when what is there does not work. */
export async function installBinaries(context: vscode.ExtensionContext, anew: boolean): Promise<string> {
    const named = process.env['BATON_BIN_DIR'];
    if (named) {
        return named;
    }
    const from = context.asAbsolutePath('bin');
    const stats = await Promise.all(PROGRAMS.map((name) => fs.stat(path.join(from, name))));
    const print = createHash('sha256').update(stats.map((stat) => `${stat.size} ${stat.mtimeMs}`).join());
    const version = `${context.extension.packageJSON.version}-${print.digest('hex').slice(0, 8)}`;
    const to = path.join(context.globalStorageUri.fsPath, 'bin', version);
    if (anew) {
        await fs.rm(to, { recursive: true, force: true });
    }
    if (!(await isInstalled(to))) {
        await copy(from, to);
    }
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
    } catch (error) {
        await fs.rm(temporary, { recursive: true, force: true });
        if (!(await isInstalled(to))) {
            throw error;
        }
    }
}

async function isInstalled(folder: string): Promise<boolean> {
    return fs.access(path.join(folder, 'baton-agent')).then(
        () => true,
        () => false,
    );
}
