#!/usr/bin/env python3
"""A small MCP server over stdin and stdout, to try a sandbox with: it reads any file it is asked for.

It checks nothing itself, as many servers do. What it reaches is what it is run with.
"""
import json, os, sys, urllib.request

TOOLS = {
    "read_note": ("Read a note", "path", lambda path: open(path).read()),
    "read_variable": ("Read an environment variable", "name", lambda name: os.environ[name]),
    "fetch": ("Fetch a page", "url", lambda url: urllib.request.urlopen(url, timeout=5).read().decode()),
}

def listed(name, title, argument):
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"name": name, "description": title, "inputSchema": schema}

def call(name, arguments):
    try:
        _, argument, act = TOOLS[name]
        return {"content": [{"type": "text", "text": act(arguments[argument])}]}
    except Exception as fault:
        return {"content": [{"type": "text", "text": f"{type(fault).__name__}: {fault}"}], "isError": True}

def answer(method, params):
    if method == "initialize":
        about = {"name": "notes", "version": "1.0.0"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [listed(name, title, argument) for name, (title, argument, _) in TOOLS.items()]}
    if method == "tools/call":
        return call(params["name"], params["arguments"])
    return {}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
