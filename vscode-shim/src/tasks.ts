// The task that a configuration wants to be run before it. VS Code would run it as well; but when it fails, VS Code asks
// in a dialog whether to debug anyway, and nobody is there who would expect that when it is a client that starts.

import * as vscode from 'vscode';

/** What tasks.json says of a task. */
interface TaskEntry {
    label?: string;
    type?: string;
    command?: unknown;
    isBackground?: boolean;
    dependsOn?: unknown;
}

/** A task to run, with those that VS Code runs before it. */
interface Plan {
    /** Any of them that fails is the end. */
    names: Set<string>;
    /** When these have ended all have: a task without a command of its own has no end that is told. */
    last: Set<string>;
    types: Set<string>;
}

/**
 * Runs a `preLaunchTask`, and waits for its end; one that fails is the error. Tasks that are in no tasks.json, or of which
 * one stays in the background, are given back: they are left to VS Code, which knows how to wait for them.
 */
export async function leftToVscode(label: unknown, folder: vscode.WorkspaceFolder | undefined): Promise<unknown> {
    const entries = vscode.workspace.getConfiguration('tasks', folder?.uri ?? null).get<TaskEntry[]>('tasks');
    const plan = planOf(label, Array.isArray(entries) ? entries : []);
    if (plan === undefined) {
        return label;
    }
    const [type, ...others] = plan.types;
    // VS Code gives those of a shell only with all others.
    const isOfOne = type !== undefined && others.length === 0 && !['process', 'shell'].includes(type);
    const tasks = await vscode.tasks.fetchTasks(isOfOne ? { type } : undefined);
    const task = tasks.find(({ name, scope }) => name === label && isIn(scope, folder));
    if (task === undefined) {
        return label;
    }
    const failure = await run(task, plan, folder);
    if (failure !== undefined && !isDebuggedAnyway(folder)) {
        throw new Error(failure);
    }
    return undefined;
}

/**
 * Starts what has a `preLaunchTask` that VS Code runs, which tells of a failure nobody but the person. It may hold a
 * message of its own open for as long as nobody closes it.
 */
export async function unlessTaskFails<T>(label: unknown, folder: vscode.WorkspaceFolder | undefined, start: () => Thenable<T>): Promise<T> {
    if (typeof label !== 'string' || isDebuggedAnyway(folder)) {
        return start();
    }
    return new Promise((resolve, reject) => {
        const watch = vscode.tasks.onDidEndTaskProcess(({ execution: { task }, exitCode }) => {
            if (exitCode && (label === task.name || label === `${task.source}: ${task.name}`)) {
                watch.dispose();
                reject(new Error(failureOf(task, exitCode)));
            }
        });
        const end = (): void => void watch.dispose();
        start().then(resolve, reject).then(end, end);
    });
}

/** The task and all that it depends on; nothing when one of them is not to be run from here. */
function planOf(label: unknown, entries: TaskEntry[]): Plan | undefined {
    const plan: Plan = { names: new Set(), last: new Set(), types: new Set() };
    const add = (name: unknown, isLast: boolean): boolean => {
        const entry = entries.find((known) => known.label === name);
        if (typeof name !== 'string' || entry === undefined || entry.isBackground === true) {
            return false;
        }
        if (plan.names.has(name)) {
            return true;
        }
        plan.names.add(name);
        const before: unknown[] = entry.dependsOn === undefined ? [] : [entry.dependsOn].flat();
        const { type = entry.command === undefined ? undefined : 'process' } = entry;
        if (type !== undefined) {
            plan.types.add(type);
        }
        if (isLast && type !== undefined) {
            plan.last.add(name);
        }
        return before.every((other) => add(other, isLast && type === undefined));
    };
    return add(label, true) && plan.last.size > 0 ? plan : undefined;
}

function isIn(scope: vscode.Task['scope'], folder: vscode.WorkspaceFolder | undefined): boolean {
    return typeof scope !== 'object' || folder === undefined || scope.uri.toString() === folder.uri.toString();
}

function isDebuggedAnyway(folder: vscode.WorkspaceFolder | undefined): boolean {
    return vscode.workspace.getConfiguration('debug', folder?.uri ?? null).get<string>('onTaskErrors') === 'debugAnyway';
}

function failureOf({ name }: vscode.Task, exitCode: number | undefined): string {
    return `The task "${name}" ${exitCode === undefined ? 'was ended' : `failed with exit code ${exitCode}`}.`;
}

/** Runs a task; why it, or one before it, did not come to its end. One that is running already is waited for. */
async function run(task: vscode.Task, { names, last }: Plan, folder: vscode.WorkspaceFolder | undefined): Promise<string | undefined> {
    const awaited = new Set(last);
    return new Promise((resolve, reject) => {
        const watches: vscode.Disposable[] = [];
        const end = (how: () => void): void => {
            watches.forEach((watch) => void watch.dispose());
            how();
        };
        const ended = (one: vscode.Task, exitCode: number | undefined): void => {
            if (!names.has(one.name) || !isIn(one.scope, folder)) {
                return;
            }
            if (exitCode !== 0) {
                end(() => {
                    resolve(failureOf(one, exitCode));
                });
            } else if (awaited.delete(one.name) && awaited.size === 0) {
                end(() => {
                    resolve(undefined);
                });
            }
        };
        watches.push(
            // The end of its process comes before its own.
            vscode.tasks.onDidEndTaskProcess(({ execution, exitCode }) => {
                ended(execution.task, exitCode);
            }),
            vscode.tasks.onDidEndTask(({ execution }) => {
                if (awaited.has(execution.task.name)) {
                    ended(execution.task, undefined);
                }
            }),
        );
        const isRunning = vscode.tasks.taskExecutions.some(({ task: other }) => other.name === task.name && other.source === task.source);
        if (!isRunning) {
            vscode.tasks.executeTask(task).then(undefined, (error: unknown) => {
                end(() => {
                    reject(error instanceof Error ? error : new Error(String(error)));
                });
            });
        }
    });
}
