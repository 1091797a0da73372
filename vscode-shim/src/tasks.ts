// The task that a configuration wants to be run before it. VS Code would run it as well; but when it fails, VS Code asks
// in a dialog whether to debug anyway, and nobody is there who would expect that when it is a client that starts.

import * as vscode from 'vscode';

/** What tasks.json says of a task. */
interface TaskEntry {
    label?: string;
    type?: string;
    isBackground?: boolean;
    dependsOn?: unknown;
}

/** What came of the task: whether it has run, and why the program is not to be started. */
export interface TaskRun {
    hasRun: boolean;
    failure?: string;
}

/**
 * Runs a configuration's `preLaunchTask`, and waits for its end. Tasks that are in no tasks.json, stay in the
 * background or depend on others are left to VS Code, which knows how to wait for them.
 */
export async function runTaskOf(configuration: vscode.DebugConfiguration, folder: vscode.WorkspaceFolder | undefined): Promise<TaskRun> {
    const label: unknown = configuration['preLaunchTask'];
    const entries = vscode.workspace.getConfiguration('tasks', folder?.uri ?? null).get<TaskEntry[]>('tasks');
    const entry = Array.isArray(entries) ? entries.find((known) => known.label === label) : undefined;
    if (typeof label !== 'string' || entry === undefined || entry.isBackground === true || entry.dependsOn !== undefined) {
        return { hasRun: false };
    }
    // VS Code gives those of a shell only with all others.
    const { type = 'process' } = entry;
    const tasks = await vscode.tasks.fetchTasks(['process', 'shell'].includes(type) ? undefined : { type });
    const task = tasks.find((known) => known.name === label && isIn(known, folder));
    if (task === undefined) {
        return { hasRun: false };
    }
    const exitCode = await run(task);
    const onErrors = vscode.workspace.getConfiguration('debug', folder?.uri ?? null).get<string>('onTaskErrors');
    if (exitCode === 0 || onErrors === 'debugAnyway') {
        return { hasRun: true };
    }
    const how = exitCode === undefined ? 'was ended' : `failed with exit code ${exitCode}`;
    return { hasRun: true, failure: `The task "${label}" ${how}.` };
}

function isIn({ scope }: vscode.Task, folder: vscode.WorkspaceFolder | undefined): boolean {
    const isFolder = typeof scope === 'object';
    return !isFolder || folder === undefined || scope.uri.toString() === folder.uri.toString();
}

/** The exit code of a task; nothing when it was ended from outside. One that is running already is waited for. */
async function run(task: vscode.Task): Promise<number | undefined> {
    const isIt = (other: vscode.Task): boolean => other.name === task.name && other.source === task.source;
    return new Promise((resolve, reject) => {
        const watches = [
            // The end of its process comes before its own.
            vscode.tasks.onDidEndTaskProcess(({ execution, exitCode }) => isIt(execution.task) && end(exitCode)),
            vscode.tasks.onDidEndTask(({ execution }) => isIt(execution.task) && end(undefined)),
        ];
        const end = (exitCode: number | undefined): void => {
            watches.forEach((watch) => void watch.dispose());
            resolve(exitCode);
        };
        if (!vscode.tasks.taskExecutions.some(({ task: running }) => isIt(running))) {
            vscode.tasks.executeTask(task).then(undefined, (error: unknown) => {
                watches.forEach((watch) => void watch.dispose());
                reject(error instanceof Error ? error : new Error(String(error)));
            });
        }
    });
}
