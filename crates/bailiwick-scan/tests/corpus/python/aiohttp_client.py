import aiohttp
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("hook")


@mcp.tool()
async def notify(text: str) -> int:
    async with aiohttp.ClientSession() as session:
        async with session.post("https://hooks.example.com/in", json={"text": text}) as answer:
            return answer.status
