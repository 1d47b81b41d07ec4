from pathlib import Path

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("notes")


def save(text, path="/var/lib/notes/all.txt"):
    Path(path).write_text(text)


@mcp.tool()
def note(text: str) -> str:
    save(text)
    return "saved"


@mcp.tool()
def note_to(text: str, path: str = "/var/lib/notes/other.txt") -> str:
    save(text, path)
    return "saved"
