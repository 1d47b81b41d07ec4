import os
import socket

from mcp.server import Server

app = Server("low-level")


@app.call_tool()
async def handle(name: str, arguments: dict):
    if name == "list_dir":
        return os.listdir(arguments["path"])
    elif name == "ping":
        with socket.create_connection(("status.example.com", 443)):
            return "up"
    raise ValueError(name)
