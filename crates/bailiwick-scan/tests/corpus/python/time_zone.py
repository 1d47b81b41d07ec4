from datetime import datetime
from zoneinfo import ZoneInfo

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("time")


@mcp.tool()
def now(zone: str) -> str:
    return datetime.now(ZoneInfo(zone)).isoformat()
