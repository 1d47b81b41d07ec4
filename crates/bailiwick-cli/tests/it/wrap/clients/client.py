"""The Python client of the protocol with a wrapped filesystem server: python client.py MODE NOTES OUTSIDE COMMAND..."""

import asyncio
import json
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main(mode, notes, outside, command, *args):
    server = stdio_client(StdioServerParameters(command=command, args=list(args)))
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        said = {"tools": [tool.name for tool in tools]}
        for name, path in {"granted": notes, "denied": outside}.items():
            result = await client.call_tool("read_text_file", {"path": path})
            said[name] = result.model_dump(by_alias=True, mode="json")
        print(json.dumps(said))


asyncio.run(main(*sys.argv[1:]))
