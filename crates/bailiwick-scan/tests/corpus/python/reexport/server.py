from mcp.server.fastmcp import FastMCP

from reexport import download

mcp = FastMCP("mirror")


@mcp.tool()
def mirror() -> bytes:
    return download("http://mirror.example.org:8080/list")
