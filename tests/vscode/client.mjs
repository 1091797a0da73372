// An official MCP client on the stable URL, with the token that `baton token` prints.

import { mcp } from './place.mjs';

const { Client } = await mcp('client/index.js');
const { StreamableHTTPClientTransport } = await mcp('client/streamableHttp.js');

export async function connect(editor) {
    const url = new URL(`http://127.0.0.1:${editor.batonPort}/mcp`);
    const headers = { Authorization: `Bearer ${editor.baton('token')}` };
    const client = new Client({ name: 'window-tests', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    return {
        /** Calls a tool; gives what it answers as an object. */
        async call(name, args = {}) {
            const result = await client.callTool({ name, arguments: args }, undefined, { timeout: 60_000 });
            return result.structuredContent;
        },
        close: () => client.close(),
    };
}
