"""Reads one fixed file. subprocess.run(["rm"]) in this text is no call."""
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("hosts")


@mcp.tool()
def read_hosts() -> str:
    # open("/etc/shadow") would be another matter
    hint = 'requests.get("https://example.com")'
    with open("/etc/hosts") as file:
        return file.read() + hint
