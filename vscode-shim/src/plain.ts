// Text of others in messages of ours. VS Code reads links in a message, and a link can be a command.

/** Longer names of clients say nothing more. */
const MAX_NAME_LEN = 64;

/** The same text to the eye, without a link in it. */
export function unlinked(text: string): string {
    return text.replaceAll('](', '] (');
}

/** A client's name, on one line. */
export function plainName(name: string): string {
    const line = unlinked(name.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim());
    return line.length > MAX_NAME_LEN ? `${line.slice(0, MAX_NAME_LEN)}…` : line;
}
