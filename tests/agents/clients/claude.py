"""Claude Code: Anthropic Messages; hooks in `.claude/settings.json`."""

import os

from . import Client, merge_json

#: what may run without a person's consent; hooks are asked all the same
ALLOWED = "Bash,Read,Write,Edit,Grep,Glob,WebFetch,Agent,Monitor,mcp__notes,mcp__bailiwick"


class Claude(Client):
    name = "claude"
    title = "Claude Code"
    package = "@anthropic-ai/claude-code"
    version = "2.1.327"
    program = "claude"
    agent = "claude-code"
    settings = (".claude/settings.json",)
    servers_file = ".claude.json"
    writes_servers_file = True

    def environment(self, url):
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "unused",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Tools of servers are offered at once instead of behind a search.
            "ENABLE_TOOL_SEARCH": "false",
        }

    def start(self, prompt):
        return self.command("-p", prompt, "--allowedTools", ALLOWED)

    def add_server(self, world, name, command):
        entry = {"type": "stdio", "command": command[0], "args": command[1:]}
        merge_json(os.path.join(world.home, ".claude.json"), {"mcpServers": {name: entry}})

    def server_call(self, server, tool, arguments):
        return {"name": f"mcp__{server}__{tool}", "arguments": arguments}

    def call_shell(self, action):
        return {"name": "Bash", "arguments": {"command": action["shell"], "description": "a step of the script"}}

    def call_read(self, action):
        return {"name": "Read", "arguments": {"file_path": action["read"]}}

    def call_write(self, action):
        return {"name": "Write", "arguments": {"file_path": action["write"], "content": action["text"]}}

    def call_edit(self, action):
        change = {"old_string": action["old"], "new_string": action["new"]}
        return {"name": "Edit", "arguments": {"file_path": action["edit"], **change}}

    def call_search(self, action):
        arguments = {"pattern": action["search"], "path": action["path"], "output_mode": "content"}
        return {"name": "Grep", "arguments": arguments}

    def call_fetch(self, action):
        return {"name": "WebFetch", "arguments": {"url": action["fetch"], "prompt": "What does it say?"}}

    def call_delegate(self, action):
        arguments = {"description": "a part", "prompt": action["prompt"], "subagent_type": "general-purpose"}
        return {"name": "Agent", "arguments": arguments | {"run_in_background": False}}
