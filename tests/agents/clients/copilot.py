"""GitHub Copilot CLI with a model of its user's own: Chat Completions; hooks in `.copilot/hooks`."""

import os

from . import Client, merge_json


class Copilot(Client):
    name = "copilot"
    title = "Copilot CLI"
    package = "@github/copilot"
    version = "1.0.102"
    program = "copilot"
    agent = "copilot"
    settings = (".copilot/hooks/bailiwick.json",)
    other_names = {"Bash": "bash", "Read": "view", "Glob": "glob", "Grep": "grep", "Write": "create", "Edit": "edit"}

    def environment(self, url):
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_API_KEY": "unused",
            "COPILOT_MODEL": "scripted",
            "COPILOT_OFFLINE": "true",
        }

    def start(self, prompt):
        return self.command("-p", prompt, "--allow-all")

    def add_server(self, world, name, command):
        entry = {"type": "local", "command": command[0], "args": command[1:], "tools": ["*"]}
        merge_json(os.path.join(world.home, ".copilot/mcp-config.json"), {"mcpServers": {name: entry}})

    def server_call(self, server, tool, arguments):
        return {"name": f"{server}-{tool}", "arguments": arguments}

    def call_shell(self, action):
        return {"name": "bash", "arguments": {"command": action["shell"], "description": "a step", "mode": "sync"}}

    def call_read(self, action):
        return {"name": "view", "arguments": {"path": action["read"]}}

    def call_write(self, action):
        return {"name": "create", "arguments": {"path": action["write"], "file_text": action["text"]}}

    def call_edit(self, action):
        change = {"old_str": action["old"], "new_str": action["new"]}
        return {"name": "edit", "arguments": {"path": action["edit"], **change}}

    def call_delegate(self, action):
        arguments = {"description": "a part", "prompt": action["prompt"], "agent_type": "general-purpose"}
        return {"name": "task", "arguments": arguments | {"name": "part", "mode": "sync"}}

    def call_search(self, action):
        return {"name": "grep", "arguments": {"pattern": action["search"], "path": action["path"]}}
