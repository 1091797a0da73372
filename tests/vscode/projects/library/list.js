/** Makes a list of names. */
export function listed(names) {
    return names.join(', ');
}

export const shown = listed(['a', 'b']);
