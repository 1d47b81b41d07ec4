from pathlib import Path

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("pathlib")
BASE = Path("/srv/notes")


@mcp.tool()
def index() -> str:
    return (BASE / "index.md").read_text()


@mcp.tool()
def forget(name: str) -> None:
    (BASE / "index.md").unlink()
    (BASE / name).touch()
