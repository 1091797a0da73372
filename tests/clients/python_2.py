"""Obeys the tests with the official Python client of both eras (PyPI `mcp` 2.3); see README.md."""

import asyncio
import json
import os
import ssl
import sys

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

FIRST_STATELESS = "2026-07-28"


def say(message):
    print(json.dumps(message), flush=True)


async def on_message(message):
    if isinstance(message, types.ToolListChangedNotification):
        say({"event": "list_changed"})


async def listen(client):
    """Hears list_changed where that needs a subscription, and subscribes anew when the stream was lost."""
    while True:
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    say({"event": "list_changed"})
        except asyncio.CancelledError:
            raise
        except Exception as error:
            say({"event": "listen_lost", "why": str(error)})
        await asyncio.sleep(0.2)


async def obey(client, command, running):
    match command["do"]:
        case "list":
            return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
        case "call":
            result = await client.call_tool(command["tool"], command.get("arguments") or {})
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)
        case "cancel":
            running[command["of"]].cancel()
        case other:
            raise ValueError(f"unknown command {other}")


async def answer(client, command, running):
    try:
        say({"id": command["id"], "ok": await obey(client, command, running)})
    except asyncio.CancelledError:
        say({"id": command["id"], "error": "cancelled"})
    except Exception as error:
        say({"id": command["id"], "error": f"{type(error).__name__}: {error}"})


async def drive(server, mode):
    async with Client(server, mode=mode, message_handler=on_message) as client:
        say(
            {
                "ready": {
                    "protocol": client.protocol_version,
                    "server": client.server_info.name if client.server_info else None,
                    "instructions": client.instructions,
                }
            }
        )
        running, loop = {}, asyncio.get_running_loop()
        listener = asyncio.create_task(listen(client)) if client.protocol_version >= FIRST_STATELESS else None
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            command = json.loads(line)
            if command["do"] == "close":
                break
            running[command["id"]] = asyncio.create_task(answer(client, command, running))
        if listener:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)
    say({"id": command["id"], "ok": None})


def trusted():
    """The authorities that count: those of a test, if it has any."""
    return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE"))


async def main():
    mode = sys.argv[sys.argv.index("--mode") + 1] if "--mode" in sys.argv else "auto"
    if "MCP_COMMAND" in os.environ:
        program, *arguments = json.loads(os.environ["MCP_COMMAND"])
        await drive(StdioServerParameters(command=program, args=arguments, env=dict(os.environ)), mode)
        return
    headers = {"Authorization": f"Bearer {os.environ['MCP_TOKEN']}"}
    timeout = httpx2.Timeout(60, read=300)
    async with httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False, verify=trusted()) as http:
        await drive(streamable_http_client(os.environ["MCP_URL"], http_client=http), mode)


asyncio.run(main())
