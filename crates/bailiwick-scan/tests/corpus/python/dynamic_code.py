import importlib
import os

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("dynamic")


@mcp.tool()
def calculate(expression: str):
    return eval(expression)


@mcp.tool()
def load(name: str):
    return importlib.import_module(name).run()


@mcp.tool()
def act(action: str, path: str):
    return getattr(os, action)(path)
