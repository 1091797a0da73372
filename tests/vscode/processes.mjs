// What Linux says of a process.

import fs from 'node:fs';

/** The parent: of an agent, the extension host that started it. */
export function hostOf(pid) {
    return Number(readStat(pid)[1]);
}

/** Whether a process runs; one that has ended and was not waited for does not. */
export function isAlive(pid) {
    return stateOf(pid) !== undefined && stateOf(pid) !== 'Z';
}

export function isStopped(pid) {
    return stateOf(pid) === 'T';
}

/** Processes whose command line or environment names `text`. */
export function naming(text) {
    return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
        return pid !== process.pid && isAlive(pid) && ['cmdline', 'environ'].some((file) => readOf(pid, file).includes(text));
    });
}

/** The command line of a process. */
export function commandOf(pid) {
    return readOf(pid, 'cmdline').replaceAll('\0', ' ').trim();
}

function readOf(pid, file) {
    try {
        return fs.readFileSync(`/proc/${pid}/${file}`, 'utf8');
    } catch {
        // It has ended, or it is somebody else's.
        return '';
    }
}

function stateOf(pid) {
    try {
        return readStat(pid)[0];
    } catch {
        return undefined;
    }
}

/** State, parent, ... of a process: what follows its name. */
function readStat(pid) {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
