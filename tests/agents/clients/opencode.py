"""OpenCode: Chat Completions; no hooks, but a plugin that calls `bailiwick hook opencode`."""

import os

from . import Client, merge_json


class OpenCode(Client):
    name = "opencode"
    title = "OpenCode"
    package = "opencode-ai"
    version = "1.18.33"
    program = "opencode"
    agent = "opencode"
    settings = (".config/opencode/plugin/bailiwick.js",)
    servers_file = ".config/opencode/opencode.json"
    project_settings = (".opencode/plugin/bailiwick.js",)

    def configure(self, world, url):
        model = {"name": "scripted", "tool_call": True, "limit": {"context": 100000, "output": 4000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"{url}/v1", "apiKey": "unused"},
            "models": {"scripted": model},
        }
        world.write_json(
            os.path.join(world.home, ".config/opencode/opencode.json"),
            {
                # It adds this line itself where it is missing.
                "$schema": "https://opencode.ai/config.json",
                "autoupdate": False,
                "share": "disabled",
                "model": "scripted/scripted",
                "small_model": "scripted/scripted",
                "provider": {"scripted": provider},
                "permission": {"edit": "allow", "bash": "allow", "webfetch": "allow", "external_directory": "allow"},
            },
        )

    def environment(self, url):
        # Beside a plugin it wants a package of its own from npm, and waits for it: here it is refused at once.
        npm = {"npm_config_registry": f"{url}/npm/", "npm_config_fetch_retries": "0"}
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"} | npm

    def start(self, prompt):
        return self.command("run", prompt)

    def add_server(self, world, name, command):
        entry = {"type": "local", "command": command, "enabled": True}
        merge_json(os.path.join(world.home, ".config/opencode/opencode.json"), {"mcp": {name: entry}})

    def server_call(self, server, tool, arguments):
        return {"name": f"{server}_{tool}", "arguments": arguments}

    def call_shell(self, action):
        return {"name": "bash", "arguments": {"command": action["shell"], "description": "a step of the script"}}

    def call_read(self, action):
        return {"name": "read", "arguments": {"filePath": action["read"]}}

    def call_write(self, action):
        return {"name": "write", "arguments": {"filePath": action["write"], "content": action["text"]}}

    def call_edit(self, action):
        change = {"oldString": action["old"], "newString": action["new"]}
        return {"name": "edit", "arguments": {"filePath": action["edit"], **change}}

    def call_search(self, action):
        return {"name": "grep", "arguments": {"pattern": action["search"], "path": action["path"]}}

    def call_fetch(self, action):
        return {"name": "webfetch", "arguments": {"url": action["fetch"], "format": "text"}}

    def call_delegate(self, action):
        arguments = {"description": "a part", "prompt": action["prompt"], "subagent_type": "general"}
        return {"name": "task", "arguments": arguments}
