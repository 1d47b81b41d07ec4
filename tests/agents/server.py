"""A small MCP server over stdio, for clients to call: notes that can be read, written and deleted.

`server.py DIRECTORY`: notes are files in that directory. It speaks just enough of the protocol for the tested clients.
"""

import json
import os
import sys

TOOLS = {
    "read_note": {"path": "string"},
    "write_note": {"path": "string", "text": "string"},
    "delete_note": {"path": "string"},
    "run_command": {"command": "string"},
    "fail": {},
}


def listed():
    for name, arguments in TOOLS.items():
        properties = {key: {"type": kind} for key, kind in arguments.items()}
        schema = {"type": "object", "properties": properties, "required": list(arguments)}
        yield {"name": name, "description": f"{name} of the notes server", "inputSchema": schema}


def call(directory, name, arguments):
    path = os.path.join(directory, os.path.basename(arguments.get("path", "")))
    if name == "read_note":
        with open(path, encoding="utf-8") as file:
            return file.read()
    if name == "write_note":
        with open(path, "w", encoding="utf-8") as file:
            file.write(arguments["text"])
        return "written"
    if name == "delete_note":
        os.unlink(path)
        return "deleted"
    if name == "run_command":
        return os.popen(arguments["command"]).read()
    raise ValueError("it failed as it was asked to")


def answer(directory, message):
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        info = {"name": "notes", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": list(listed())}
    if method == "tools/call":
        try:
            text, failed = call(directory, params["name"], params.get("arguments") or {}), False
        except Exception as error:  # a failed tool is an answer
            text, failed = str(error), True
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    if method == "ping":
        return {}
    return None


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(sys.argv[1], message)
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        reply |= {"error": {"code": -32601, "message": "unknown"}} if result is None else {"result": result}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
