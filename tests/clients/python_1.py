"""Obeys the tests with the official Python client of the session era (PyPI `mcp` 1.30); see README.md."""

import asyncio
import json
import os
import ssl
import sys

import httpx
from mcp import ClientSession, types
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


def say(message):
    print(json.dumps(message), flush=True)


async def on_message(message):
    if isinstance(message, types.ServerNotification) and isinstance(
        message.root, types.ToolListChangedNotification
    ):
        say({"event": "list_changed"})


async def obey(session, command, running):
    match command["do"]:
        case "list":
            return [tool.name for tool in (await session.list_tools()).tools]
        case "call":
            running[command["id"]] = session._request_id
            result = await session.call_tool(command["tool"], command.get("arguments") or {})
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)
        case "cancel":
            cancelled = types.CancelledNotification(
                params=types.CancelledNotificationParams(requestId=running[command["of"]], reason="the test asked")
            )
            await session.send_notification(types.ClientNotification(cancelled))
        case other:
            raise ValueError(f"unknown command {other}")


async def answer(session, command, running):
    try:
        say({"id": command["id"], "ok": await obey(session, command, running)})
    except Exception as error:
        say({"id": command["id"], "error": f"{type(error).__name__}: {error}"})


async def drive(streams):
    async with ClientSession(streams[0], streams[1], message_handler=on_message) as session:
        ready = await session.initialize()
        say(
            {
                "ready": {
                    "protocol": str(ready.protocolVersion),
                    "server": ready.serverInfo.name,
                    "instructions": ready.instructions,
                }
            }
        )
        tasks, running, loop = set(), {}, asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            command = json.loads(line)
            if command["do"] == "close":
                say({"id": command["id"], "ok": None})
                break
            task = asyncio.create_task(answer(session, command, running))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


def trusted():
    """The authorities that count: those of a test, if it has any."""
    return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE"))


async def main():
    if "MCP_COMMAND" in os.environ:
        program, *arguments = json.loads(os.environ["MCP_COMMAND"])
        parameters = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
        is_driven = False
        try:
            async with stdio_client(parameters) as streams:
                await drive(streams)
                is_driven = True
        except Exception as error:
            # The library fails at a message that comes while it closes.
            if not is_driven or "BrokenResourceError" not in repr(error):
                raise
        return
    headers = {"Authorization": f"Bearer {os.environ['MCP_TOKEN']}"}
    timeout = httpx.Timeout(60, read=300)
    async with httpx.AsyncClient(headers=headers, timeout=timeout, trust_env=False, verify=trusted()) as http:
        async with streamable_http_client(os.environ["MCP_URL"], http_client=http) as streams:
            await drive(streams)


asyncio.run(main())
