// What the user set of `baton.*`.

import * as vscode from 'vscode';

export function configuration(): vscode.WorkspaceConfiguration {
    return vscode.workspace.getConfiguration('baton');
}

/** The value the user set for this machine. */
export function explicit(name: string): unknown {
    return configuration().inspect(name)?.globalValue;
}
