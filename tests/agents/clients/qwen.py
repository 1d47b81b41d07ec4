"""Qwen Code: Chat Completions; hooks in `.qwen/settings.json`, written as Claude Code's are."""

import os

from . import Client, merge_json


#: without it, the client adds it to a settings file when it starts
VERSION = {"$version": 4}


class Qwen(Client):
    name = "qwen"
    title = "Qwen Code"
    package = "@qwen-code/qwen-code"
    version = "0.24.4"
    program = "qwen"
    needs_node = True
    agent = "qwen"
    settings = (".qwen/settings.json",)

    def configure(self, world, url):
        world.write_json(
            os.path.join(world.home, ".qwen/settings.json"),
            {
                "security": {"auth": {"selectedType": "openai"}},
                "general": {"enableAutoUpdate": False},
                **VERSION,
                # It would hold conversations of its own with the model.
                "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
            },
        )
        world.write_json(".qwen/settings.json", VERSION)

    def environment(self, url):
        return {"OPENAI_API_KEY": "unused", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "scripted"}

    def start(self, prompt):
        return self.command("--yolo", "-p", prompt)

    def add_server(self, world, name, command):
        entry = {"command": command[0], "args": command[1:], "trust": True}
        merge_json(os.path.join(world.home, ".qwen/settings.json"), {"mcpServers": {name: entry}})

    def server_call(self, server, tool, arguments):
        return {"name": f"mcp__{server}__{tool}", "arguments": arguments}

    def call_shell(self, action):
        arguments = {"command": action["shell"], "description": "a step", "is_background": False}
        return {"name": "run_shell_command", "arguments": arguments}

    def call_read(self, action):
        return {"name": "read_file", "arguments": {"file_path": action["read"]}}

    def call_write(self, action):
        return {"name": "write_file", "arguments": {"file_path": action["write"], "content": action["text"]}}

    def call_edit(self, action):
        change = {"old_string": action["old"], "new_string": action["new"]}
        return {"name": "edit", "arguments": {"file_path": action["edit"], **change}}

    def call_fetch(self, action):
        # It is offered after a search only, and called through another tool.
        arguments = {"url": action["fetch"], "prompt": "What does it say?"}
        return {"name": "tool_call", "arguments": {"name": "web_fetch", "arguments": arguments}}

    def call_delegate(self, action):
        arguments = {"description": "a part", "prompt": action["prompt"], "subagent_type": "general-purpose"}
        return {"name": "agent", "arguments": arguments}

    def call_search(self, action):
        return {"name": "grep_search", "arguments": {"pattern": action["search"], "path": action["path"]}}
