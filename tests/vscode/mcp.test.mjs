// VS Code's own MCP client: Baton is offered to it, and what `baton config vscode` prints works in its file.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { until } from './editor.mjs';
import { stage } from './stage.mjs';

let editor, window, answers;

stage(async (start) => {
    editor = await start({ settings: { 'chat.disableAIFeatures': false }, extensions: ['mcp-probe'] });
    window = await editor.open(editor.project('orders'), /live/);
    answers = path.join(window.folder, 'probe.json');
});

/** Starts an MCP server as the user does. */
async function startServer(name) {
    await window.command('MCP: List Servers');
    await window.pick(name, { begins: true });
    await window.pick('Start Server');
}

/** What a tool of this server answers to `vscode.lm.invokeTool`. */
async function callThroughVscode(server) {
    return until(`VS Code calls a tool of ${server}`, async () => {
        fs.rmSync(answers, { force: true });
        await window.command('Probe: Call a Tool of Baton');
        const all = await until('the probe answers', () => fs.existsSync(answers) && JSON.parse(fs.readFileSync(answers, 'utf8')));
        // A text search answers while VS Code's own TypeScript is still starting.
        const isMeant = ({ tool, text }) => tool?.startsWith(`mcp_${server}_`) && text && !text.includes('"text_search"');
        return all.find(isMeant);
    });
}

function expectOutline({ text }) {
    assert.match(text, /\bturns\b/);
}

test('the server that the extension offers: nothing configured, and a tool answers', async () => {
    await startServer('Baton');
    expectOutline(await callThroughVscode('baton'));
    assert.ok(!fs.existsSync(path.join(editor.run, 'user/User/mcp.json')));
});

test('another window is live, and the chat of this one still asks this one', async () => {
    const other = await editor.open(editor.project('library'), /standby/);
    await other.choose('Take over');
    await other.waitForStatus('live');
    await window.page.bringToFront();
    expectOutline(await callThroughVscode('baton'));
    await window.choose('Take over');
    await window.waitForStatus('live');
});

test('the server of the copied configuration, in the file of the user', async () => {
    // Under another name, to be told from the one that the extension offers.
    const { servers } = JSON.parse(editor.baton('config', 'vscode'));
    const file = path.join(editor.run, 'user/User/mcp.json');
    fs.writeFileSync(file, JSON.stringify({ servers: { copied: servers.baton } }));
    await startServer('copied');
    // VS Code calls tools by the name that a server gives itself, and numbers the second one of that name.
    expectOutline(await callThroughVscode('baton2'));
});
