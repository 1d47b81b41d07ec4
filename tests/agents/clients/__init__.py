"""The agents that can be driven, one file each.

A client says how it is installed, configured and started, and how the model has to name its tools. What a script
calls `shell`, `read` or `write` becomes that client's own tool here, so that one script serves all of them.
"""

import json
import os


class Unsupported(Exception):
    """This client has no such tool; the text says which."""


class Client:
    #: what the command line and `docs/hooks.md` call it
    name = ""
    title = ""
    #: npm package and the version that is tested
    package = ""
    version = ""
    #: the program in `node_modules/.bin`, and whether it is JavaScript that the newer Node has to run
    program = ""
    needs_node = False
    #: the name for `bailiwick install --hooks`
    agent = ""
    #: tools that its hooks know by another name than its model; None where the arguments differ too
    other_names = {}
    #: files that `install` may write, below the home or the project
    settings = ()
    #: the file below the home that has its servers, and whether the client itself writes to it; None if no script wraps them
    servers_file = None
    writes_servers_file = False
    #: whether tools of servers are offered only to a model that searches for them
    searches_tools = False

    def __init__(self, cache):
        self.cache = cache

    @property
    def directory(self):
        """Where it is installed."""
        return os.path.join(self.cache, f"{self.program}-{self.version}")

    def command(self, *arguments):
        program = os.path.join(self.directory, "node_modules", ".bin", self.program)
        return [*(["node"] if self.needs_node else []), program, *arguments]

    # -- to be said by each client

    def configure(self, world, url):
        """Writes what the client needs to talk to the model at `url`."""

    def environment(self, url):
        """Variables to that end."""
        return {}

    def start(self, prompt):
        """The command line of a session without a person."""
        raise NotImplementedError

    def trust_hooks(self, world):
        """What a person would do in the client after `install`, so that it runs the hooks."""

    def add_server(self, world, name, command):
        """Registers an MCP server in the client's settings."""
        raise Unsupported("no MCP server is configured for this client here")

    def server_call(self, server, tool, arguments):
        """How the model calls a tool of an MCP server."""
        raise Unsupported("no MCP server is configured for this client here")

    def call(self, action):
        """How the model asks for one action of a script."""
        kind = next(iter(action))
        if kind == "tool":
            for_this = action["tool"].get(self.name)
            if for_this is None:
                raise Unsupported("it has no such tool")
            return {"arguments": {}, **for_this}
        if kind == "mcp":
            return self.server_call(action["mcp"], action["name"], action.get("arguments", {}))
        make = getattr(self, f"call_{kind}", None)
        if make is None:
            raise Unsupported(f"it has no tool to {kind}")
        return make(action)

    # -- what happened

    @staticmethod
    def is_before(event):
        """Whether an event asks for a verdict on a call."""
        return event.get("hook_event_name", event.get("event")) in ("PreToolUse", "BeforeTool", "preToolUse", "before")

    @staticmethod
    def verdict(answer, code):
        """What an answer of the hook before a call means to this client: allow, ask or deny."""
        if code == 2:
            return "deny"
        try:
            answer = json.loads(answer or "{}")
        except ValueError:
            return f"unreadable: {answer!r}"
        decision = answer.get("hookSpecificOutput", {}).get("permissionDecision") or answer.get("decision")
        return {None: "allow", "block": "deny"}.get(decision, decision)


def read_json(path):
    try:
        with open(path, encoding="utf-8-sig") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def merge_json(path, changes):
    """Merges one level deep into a JSON file, as a client's own `mcp add` would."""
    value = read_json(path)
    for key, change in changes.items():
        value[key] = {**value.get(key, {}), **change} if isinstance(change, dict) else change
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)


def all_clients():
    from . import claude, codex, copilot, gemini, opencode, qwen

    return [claude.Claude, codex.Codex, gemini.Gemini, opencode.OpenCode, copilot.Copilot, qwen.Qwen]
