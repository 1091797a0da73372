// What the tests found to work with which debugger, as a table in docs/debugging.md.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { ROOT } from './place.mjs';

const DOCUMENT = path.join(ROOT, 'docs/debugging.md');
const BEGIN = '<!-- in a window: written by `UPDATE_EXPECT=1` and tests/vscode/actions.test.mjs -->\n';
const END = '<!-- end of in a window -->\n';

/** Rows are what was called, columns the debuggers. */
export class Findings {
    constructor(columns) {
        this.columns = columns;
        this.rows = new Map();
    }

    /** Notes what came of a call: `yes`, or why not. What works in one way works. */
    note(row, column, text) {
        assert.ok(this.columns.includes(column), column);
        const cells = this.rows.get(row) ?? new Map();
        if (cells.get(column) !== 'yes') {
            cells.set(column, text);
        }
        this.rows.set(row, cells);
    }

    /** Fails when a call, or a debugger of it, is missing. */
    expectAll(rows) {
        const isOpen = (row) => this.columns.some((column) => !this.rows.get(row)?.has(column));
        assert.deepEqual(rows.filter(isOpen), [], 'nobody called these with every debugger');
    }

    /** Compares the table with the document's, or with `UPDATE_EXPECT` writes it there. */
    check(rows) {
        const line = (cells) => `| ${cells.join(' | ')} |\n`;
        const body = rows.map((row) => line([row, ...this.columns.map((column) => this.rows.get(row).get(column))]));
        const table = line(['', ...this.columns]) + `|${'---|'.repeat(this.columns.length + 1)}\n` + body.join('');
        const text = fs.readFileSync(DOCUMENT, 'utf8');
        const [before, rest] = text.split(BEGIN);
        const [old, after] = rest.split(END);
        if (process.env.UPDATE_EXPECT) {
            fs.writeFileSync(DOCUMENT, before + BEGIN + table + END + after);
        } else {
            assert.equal(old, table, 'docs/debugging.md; UPDATE_EXPECT=1 writes it');
        }
    }
}
