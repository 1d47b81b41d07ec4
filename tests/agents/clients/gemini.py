"""Gemini CLI: the Gemini protocol; hooks in `.gemini/settings.json`, which run in a trusted directory."""

import os

from . import Client, merge_json


class Gemini(Client):
    name = "gemini"
    title = "Gemini CLI"
    package = "@google/gemini-cli"
    version = "0.61.0"
    program = "gemini"
    needs_node = True
    agent = "gemini"
    settings = (".gemini/settings.json",)
    servers_file = ".gemini/settings.json"

    def configure(self, world, url):
        world.write_json(
            os.path.join(world.home, ".gemini/settings.json"),
            {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": False}},
        )
        world.write_json(
            os.path.join(world.home, ".gemini/trustedFolders.json"), {world.project: "TRUST_FOLDER"}
        )

    def environment(self, url):
        return {"GEMINI_API_KEY": "unused", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_TELEMETRY_ENABLED": "false"}

    def start(self, prompt):
        return self.command("-m", "gemini-2.5-pro", "--yolo", "-p", prompt)

    def add_server(self, world, name, command):
        entry = {"command": command[0], "args": command[1:], "trust": True}
        merge_json(os.path.join(world.home, ".gemini/settings.json"), {"mcpServers": {name: entry}})

    def server_call(self, server, tool, arguments):
        return {"name": f"mcp_{server}_{tool}", "arguments": arguments}

    def call_shell(self, action):
        return {"name": "run_shell_command", "arguments": {"command": action["shell"], "description": "a step"}}

    def call_read(self, action):
        return {"name": "read_file", "arguments": {"file_path": action["read"]}}

    def call_write(self, action):
        return {"name": "write_file", "arguments": {"file_path": action["write"], "content": action["text"]}}

    def call_edit(self, action):
        change = {"old_string": action["old"], "new_string": action["new"], "instruction": "a step"}
        return {"name": "replace", "arguments": {"file_path": action["edit"], **change}}

    def call_search(self, action):
        return {"name": "grep_search", "arguments": {"pattern": action["search"], "dir_path": action["path"]}}

    def call_fetch(self, action):
        return {"name": "web_fetch", "arguments": {"prompt": f"What does {action['fetch']} say?"}}
