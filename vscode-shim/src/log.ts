// The output channel: what the extension does, and what the agent writes to its standard error.

import * as vscode from 'vscode';

export type Log = vscode.LogOutputChannel;

export function openLog(): Log {
    return vscode.window.createOutputChannel('Baton', { log: true });
}

/** The agent's own log lines name their level; colours are of no use here. */
export function logAgentLine(log: Log, line: string): void {
    // eslint-disable-next-line no-control-regex
    const text = line.replace(/\u001b\[[0-9;]*m/g, '').trimEnd();
    if (text === '') {
        return;
    }
    if (/\bERROR\b/.test(text)) {
        log.error(text);
    } else if (/\bWARN\b/.test(text)) {
        log.warn(text);
    } else {
        log.info(text);
    }
}
