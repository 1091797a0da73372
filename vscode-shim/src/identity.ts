// The id of this window: kept in the workspace's storage, claimed by one extension host at a time.
//
// A reload finds the id of the host that has gone. A second window on the same folder finds the id taken by a host
// that lives, and gets one of its own.

import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';

/** Windows of one workspace whose ids are kept; older ones are forgotten. */
const MAX_KEPT = 16;

export class Identity implements vscode.Disposable {
    private constructor(
        readonly id: string,
        private readonly claim: string | undefined,
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
            const claim = path.join(folder, id);
            fs.writeFileSync(claim, String(process.pid), { mode: 0o600 });
            return new Identity(id, claim);
        } catch {
            // Without storage the window works, and is a new one after a reload.
            return new Identity(randomUUID(), undefined);
        }
    }

    /** Lets the next extension host of this window have the id. */
    dispose(): void {
        if (this.claim !== undefined) {
            try {
                fs.writeFileSync(this.claim, '');
            } catch {
                // The storage is gone, and the claim with it.
            }
        }
    }
}

function isHeld(claim: string): boolean {
    const pid = Number(fs.readFileSync(claim, 'utf8'));
    if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) {
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
