// Reads commands, calls the client, prints answers: what both TypeScript clients share; see README.md.

import { createInterface } from "node:readline";

/** One JSON line to the test. */
export function say(message) {
  process.stdout.write(JSON.stringify(message) + "\n");
}

/** Obeys commands on standard input until it ends or says close. */
export async function obey({ ready, list, tools, call, close }) {
  say({ ready });
  const running = new Map();
  const handle = async (command) => {
    switch (command.do) {
      case "list":
        return list();
      case "tools":
        return tools();
      case "call": {
        const abort = new AbortController();
        running.set(command.id, abort);
        return call(command.tool, command.arguments ?? {}, abort.signal);
      }
      case "cancel":
        running.get(command.of).abort("the test asked");
        return null;
      default:
        throw new Error(`unknown command ${command.do}`);
    }
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    if (command.do === "close") {
      await close();
      say({ id: command.id, ok: null });
      process.exit(0);
    }
    handle(command).then(
      (ok) => say({ id: command.id, ok }),
      (error) => say({ id: command.id, error: `${error?.name ?? "Error"}: ${error?.message ?? error}` }),
    );
  }
}

/** The environment's server as [url, headers] or a command. */
export function target() {
  if (process.env.MCP_COMMAND) {
    const [command, ...args] = JSON.parse(process.env.MCP_COMMAND);
    return { command, args, env: { ...process.env } };
  }
  return { url: new URL(process.env.MCP_URL), headers: { Authorization: `Bearer ${process.env.MCP_TOKEN}` } };
}

/** Longest a call may take before the client gives up, in milliseconds. */
export const TIMEOUT_MS = 120_000;
