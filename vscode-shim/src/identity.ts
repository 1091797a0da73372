// The id of this window, and what the user wants of this window alone: kept in the workspace's storage, claimed by one
// extension host at a time. (A file of ours, because VS Code writes its own storage late, and a reload comes first.)
//
// A reload finds the id of the host that has gone. A second window on the same folder finds the id taken by a host
// that lives, and gets one of its own.

import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';

/** Windows of one workspace whose ids are kept; older ones are forgotten. */
const MAX_KEPT = 16;

interface Kept {
    /** Of the extension host that has the id; null when it has gone. */
    pid: number | null;
    /** The user's wish; without one the setting counts. */
    autoStart?: boolean | undefined;
}

export class Identity implements vscode.Disposable {
    private constructor(
        readonly id: string,
        private readonly file: string | undefined,
        private kept: Kept,
    ) {}

    static claim(context: vscode.ExtensionContext): Identity {
        const home = context.storageUri ?? vscode.Uri.joinPath(context.globalStorageUri, 'empty-windows');
        const folder = path.join(home.fsPath, 'windows');
        try {
            fs.mkdirSync(folder, { recursive: true });
            const known = fs.readdirSync(folder).filter((name) => /^[0-9a-f-]{36}$/.test(name));
            const free = known.filter((id) => !isHeld(path.join(folder, id))).sort(byAge(folder));
            for (const stale of free.splice(MAX_KEPT)) {
                fs.rmSync(path.join(folder, stale), { force: true });
            }
            const id = free[0] ?? randomUUID();
            const file = path.join(folder, id);
            const identity = new Identity(id, file, { ...read(file), pid: process.pid });
            identity.write();
            return identity;
        } catch {
            // Without storage the window works, and is a new one after a reload.
            return new Identity(randomUUID(), undefined, { pid: process.pid });
        }
    }

    get autoStart(): boolean | undefined {
        return this.kept.autoStart;
    }

    set autoStart(wish: boolean | undefined) {
        this.kept.autoStart = wish;
        this.write();
    }

    /** Lets the next extension host of this window have the id. */
    dispose(): void {
        this.kept.pid = null;
        this.write();
    }

    private write(): void {
        if (this.file !== undefined) {
            try {
                fs.writeFileSync(this.file, JSON.stringify(this.kept), { mode: 0o600 });
            } catch {
                // The storage is gone; until the window ends nothing is lost.
            }
        }
    }
}

function read(file: string): Kept {
    try {
        const kept = JSON.parse(fs.readFileSync(file, 'utf8')) as Partial<Kept> | null;
        return {
            pid: typeof kept?.pid === 'number' ? kept.pid : null,
            autoStart: typeof kept?.autoStart === 'boolean' ? kept.autoStart : undefined,
        };
    } catch {
        return { pid: null };
    }
}

function isHeld(file: string): boolean {
    const { pid } = read(file);
    if (pid === null || !Number.isInteger(pid) || pid <= 0 || pid === process.pid) {
        return false;
    }
    try {
        process.kill(pid, 0);
        return true;
    } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'EPERM';
    }
}

/** The one used last comes first. */
function byAge(folder: string): (a: string, b: string) => number {
    const age = (id: string) => fs.statSync(path.join(folder, id)).mtimeMs;
    return (a, b) => age(b) - age(a);
}
