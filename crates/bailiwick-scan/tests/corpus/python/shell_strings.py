import os
import subprocess

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("shell")


@mcp.tool()
def disk() -> int:
    return os.system("df -h")


@mcp.tool()
def run(command: str) -> str:
    return subprocess.run(command, shell=True, capture_output=True).stdout.decode()


@mcp.tool()
def start(program: str):
    return subprocess.Popen([program, "--version"])
