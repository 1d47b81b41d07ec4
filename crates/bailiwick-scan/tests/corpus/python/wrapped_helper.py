import requests
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("github")
API = "https://api.github.com"


def _call(url):
    return requests.get(url, timeout=5).json()


def _issue(number):
    return _call(f"{API}/repos/a/b/issues/{number}")


@mcp.tool()
def issue(number: int):
    return _issue(number)


@mcp.tool()
def status():
    return _call("https://www.githubstatus.com/api")
