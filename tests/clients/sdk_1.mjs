// Obeys the tests with the official TypeScript client of the session era (npm `@modelcontextprotocol/sdk` 1.32).

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { obey, say, target, TIMEOUT_MS } from "./obey.mjs";

const require = createRequire(process.env.NODE_PACKAGES + "/");
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { ToolListChangedNotificationSchema } = await load("types.js");

const server = target();
const transport = server.url
  ? new StreamableHTTPClientTransport(server.url, { requestInit: { headers: server.headers } })
  : new StdioClientTransport(server);
const client = new Client({ name: "tests-sdk-1", version: "1" });
client.setNotificationHandler(ToolListChangedNotificationSchema, () => say({ event: "list_changed" }));
client.onerror = (error) => console.error(String(error));
await client.connect(transport);
await obey({
  ready: {
    protocol: transport.protocolVersion ?? null,
    server: client.getServerVersion()?.name,
    instructions: client.getInstructions(),
  },
  list: async () => (await client.listTools()).tools.map((tool) => tool.name),
  tools: async () => (await client.listTools()).tools,
  call: (name, args, signal) =>
    client.callTool({ name, arguments: args }, undefined, { signal, timeout: TIMEOUT_MS }),
  close: async () => {
    await transport.terminateSession?.();
    await client.close();
  },
});
