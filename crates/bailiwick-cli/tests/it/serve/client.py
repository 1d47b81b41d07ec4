"""Lists and calls every tool of a server, in the era named: python client.py MODE COMMAND..."""

import asyncio
import json
import os
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

DIRECTORY, URL = os.environ["DIRECTORY"], os.environ["URL"]
FILE = f"{DIRECTORY}/file"
# In the order in which the tools are listed: the file is written before it is read by those that are called later.
KNOWN = {
    "shell": {"program": "echo", "args": ["hi"]},
    "fs_read": {"path": FILE},
    "fs_write": {"path": FILE, "content": "one\ntwo\n"},
    "fs_edit": {"path": FILE, "edits": [{"old": "two", "new": "three"}]},
    "fs_list": {"path": DIRECTORY},
    "fs_search": {"path": DIRECTORY, "pattern": "thr.e"},
    "web_fetch": {"url": URL},
}


async def main(mode, command, *args):
    heard = []

    async def progress(done, total, message):
        heard.append(done)

    server = stdio_client(StdioServerParameters(command=command, args=list(args)))
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        calls = {}
        for tool in tools:
            result = await client.call_tool(tool.name, KNOWN[tool.name], progress_callback=progress)
            calls[tool.name] = result.model_dump(by_alias=True, mode="json")
        denied = await client.call_tool("shell", {"program": "rm"})
        print(
            json.dumps(
                {
                    "version": client.protocol_version,
                    "server": client.server_info and client.server_info.name,
                    "instructions": client.instructions,
                    "tools": [tool.model_dump(by_alias=True, mode="json") for tool in tools],
                    "calls": calls,
                    "denied": denied.model_dump(by_alias=True, mode="json"),
                }
            )
        )


asyncio.run(main(*sys.argv[1:]))
