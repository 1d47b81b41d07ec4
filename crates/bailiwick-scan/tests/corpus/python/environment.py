import os
from os import environ, getenv

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("env")


@mcp.tool()
def settings() -> dict:
    return {
        "key": getenv("API_KEY"),
        "region": environ.get("REGION", "eu"),
        "home": os.environ["HOME"],
    }


@mcp.tool()
def show(variable: str) -> str:
    return os.getenv(variable, "")
