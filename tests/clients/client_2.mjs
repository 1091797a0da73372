// Obeys the tests with the official TypeScript client of both eras (npm `@modelcontextprotocol/client` 2.4).

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { obey, say, target, TIMEOUT_MS } from "./obey.mjs";

const require = createRequire(process.env.NODE_PACKAGES + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");

const modeAt = process.argv.indexOf("--mode");
const mode = modeAt < 0 ? "auto" : process.argv[modeAt + 1];
const server = target();
const transport = server.url
  ? new StreamableHTTPClientTransport(server.url, { requestInit: { headers: server.headers } })
  : new (await load("@modelcontextprotocol/client/stdio")).StdioClientTransport(server);
const onChanged = (error) => say(error ? { event: "list_failed", why: String(error) } : { event: "list_changed" });
const client = new Client(
  { name: "tests-client-2", version: "1" },
  {
    versionNegotiation: { mode },
    listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged } },
  },
);
client.onerror = (error) => console.error(String(error));
await client.connect(transport);
await obey({
  ready: {
    protocol: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null,
    server: client.getServerVersion?.()?.name,
    instructions: client.getInstructions?.(),
  },
  list: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: (name, args, signal) => client.callTool({ name, arguments: args }, { signal, timeout: TIMEOUT_MS }),
  close: async () => {
    await transport.terminateSession?.();
    await client.close();
  },
});
