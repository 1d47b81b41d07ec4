"""Codex CLI: OpenAI Responses; hooks in `.codex/hooks.json`, which a person has to trust."""

import json
import os
import subprocess

from . import Client, Unsupported

CONFIG = """\
model = "{model}"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

[projects."{project}"]
trust_level = "trusted"
"""


class Codex(Client):
    name = "codex"
    title = "Codex CLI"
    package = "@openai/codex"
    version = "0.169.0"
    program = "codex"
    agent = "codex"
    settings = (".codex/hooks.json",)
    servers_file = ".codex/config.toml"
    searches_tools = True
    other_names = {"Bash": None, "apply_patch": None}
    model = "gpt-5.5"

    def configure(self, world, url):
        config = CONFIG.format(url=url, model=self.model, project=world.project)
        world.write(os.path.join(world.home, ".codex/config.toml"), config)

    def environment(self, url):
        return {"SCRIPTED_KEY": "unused"}

    def start(self, prompt):
        return self.command("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt)

    def trust_hooks(self, world):
        """Trusts every hook that the client lists, as its settings page does."""
        trusted = "".join(
            f'\n[hooks.state.{json.dumps(hook["key"])}]\ntrusted_hash = {json.dumps(hook["currentHash"])}\n'
            for hook in self.listed_hooks(world)
        )
        path = os.path.join(world.home, ".codex/config.toml")
        with open(path, "a", encoding="utf-8") as file:
            file.write(trusted)

    def listed_hooks(self, world):
        ask = [
            {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "0"}}},
            {"method": "initialized"},
            {"id": 1, "method": "hooks/list", "params": {"cwds": [world.project]}},
        ]
        server = subprocess.Popen(
            self.command("app-server"), cwd=world.project, env=world.environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        try:
            for message in ask:
                server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            for line in server.stdout:
                answer = json.loads(line)
                if answer.get("id") == 1:
                    return [hook for of_cwd in answer["result"]["data"] for hook in of_cwd["hooks"]]
            return []
        finally:
            server.kill()
            server.wait()

    def add_server(self, world, name, command):
        # It begins its first turn without the tools of a server that is not up yet, unless the server is required.
        entry = f"\n[mcp_servers.{name}]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\nrequired = true\n"
        with open(os.path.join(world.home, ".codex/config.toml"), "a", encoding="utf-8") as file:
            file.write(entry)

    def server_call(self, server, tool, arguments):
        # It turns `-` into `_`.
        return {"name": tool, "namespace": f"mcp__{server.replace('-', '_')}", "arguments": arguments}

    def call_shell(self, action):
        return {"name": "exec_command", "arguments": {"cmd": action["shell"]}}

    def call_find_tools(self, action):
        return {"name": "tool_search", "search": action["find_tools"]}

    def call_read(self, action):
        raise Unsupported("it reads files with its shell")

    def call_write(self, action):
        lines = "".join(f"+{line}\n" for line in action["text"].splitlines())
        return self.patch(f"*** Begin Patch\n*** Add File: {action['write']}\n{lines}*** End Patch\n")

    def call_edit(self, action):
        change = f"@@\n-{action['old']}\n+{action['new']}\n"
        return self.patch(f"*** Begin Patch\n*** Update File: {action['edit']}\n{change}*** End Patch\n")

    @staticmethod
    def patch(text):
        return {"name": "apply_patch", "input": text}
