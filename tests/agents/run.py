"""Runs scripts (`cases/*.json`) through real agents, and says what did not come out as it should.

For every session: the settings are snapshotted, `bailiwick install` is run, the agent works off the script, then the
settings must still be what `install` wrote, and `install --undo` must bring back the snapshot byte for byte.
A script with `wrap` has its servers put behind `bailiwick wrap` instead of hooks (`install --servers`).
See README.md for what a script may say.
"""

import argparse
import json
import os
import subprocess
import sys
import time

from clients import Unsupported, all_clients
from model import Model, Script
from world import World

HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT = "Begin."
PATIENCE = 600
#: what the guard knows of agents' tools
TOOLS = os.path.join(HERE, "..", "..", "crates", "bailiwick-guardrails", "src", "tools.txt")


class Failed(Exception):
    """An expectation that does not hold."""


def load_cases(wanted):
    cases = []
    for name in sorted(os.listdir(os.path.join(HERE, "cases"))):
        with open(os.path.join(HERE, "cases", name), encoding="utf-8") as file:
            for case in json.load(file):
                cases.append(case | {"file": name})
    names = [case["name"] for case in cases]
    assert len(names) == len(set(names)), "two scripts have one name"
    return [case for case in cases if not wanted or case["name"] in wanted]


def lines(text):
    return text if isinstance(text, str) else "\n".join(text) + "\n"


def prepare(world, case):
    """The project, the client's settings and the hooks, as a person would have made them."""
    client = world.client
    client.configure(world, world.url)
    for path, text in case.get("files", {}).items():
        world.write(world.filled(path), world.filled(lines(text)))
    for path, text in case.get("scripts", {}).items():
        world.write(path, world.filled(lines(text)), 0o755)
    if "rails" in case:
        world.write(".agents/guardrails.toml", lines(case["rails"]))
    for command in case.get("setup", []):
        subprocess.run(["sh", "-ec", command], cwd=world.project, env=world.environment(), check=True, capture_output=True)
    for name, command in case.get("servers", {}).items():
        client.add_server(world, name, [world.filled(word.replace("{here}", HERE)) for word in command])
    if case.get("trust"):
        world.run("trust", "--yes", ".")


def settings_paths(world, case):
    if case.get("wrap"):
        if world.client.servers_file is None:
            raise Unsupported("its servers are not wrapped here")
        return [os.path.join(world.home, world.client.servers_file)]
    if case.get("install") == "project":
        names = getattr(world.client, "project_settings", world.client.settings)
        return [os.path.join(world.project, name) for name in names]
    return [os.path.join(world.home, name) for name in world.client.settings]


def install(world, case, *more):
    if case.get("wrap"):
        return world.run("install", "--servers", "--client", world.client.agent, *more)
    scope = ["--project", "."] if case.get("install") == "project" else []
    return world.run("install", "--hooks", world.client.agent, *scope, *more)


def conversations(world, case):
    named = {"main": case["turns"], **case.get("agents", {})}
    return {name: [turn_for(world, turn) for turn in turns] for name, turns in named.items()}


def turn_for(world, turn):
    try:
        calls = [world.client.call(filled(world, action)) for action in turn.get("calls", [])]
    except Unsupported:
        if not turn.get("if_possible"):
            raise
        calls = [world.client.call({"shell": "true"})]
    return {"say": turn.get("say", "Working."), "calls": calls}


def filled(world, value):
    """An action with the places of this world in its texts."""
    if isinstance(value, str):
        return world.filled(value)
    if isinstance(value, list):
        return [filled(world, item) for item in value]
    if isinstance(value, dict):
        return {key: filled(world, item) for key, item in value.items()}
    return value


def start(world, case):
    process = subprocess.Popen(
        world.client.start(PROMPT), cwd=os.path.join(world.project, case.get("in", "")), env=world.environment(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=case.get("patience", PATIENCE))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, _ = process.communicate()
        raise Failed(f"the session did not end within {PATIENCE} s\n{output[-2000:]}") from None
    return output


def expect_turns(world, case, script):
    for name, turns in {"main": case["turns"], **case.get("agents", {})}.items():
        for number, turn in enumerate(turns):
            expect_turn(world, turn, script.told(number, name), f"{name} {number}")


def for_client(value, client):
    """An expectation that may differ by client: `{"*": ..., "codex": ...}`."""
    if isinstance(value, dict):
        return value[client.name] if client.name in value else value.get("*")
    return value


def expect_turn(world, turn, told, place):
    wanted = for_client(turn.get("told"), world.client)
    unwanted = for_client(turn.get("not_told"), world.client)
    for text in as_list(wanted):
        if told is None or world.filled(text) not in told:
            raise Failed(f"after turn {place} the model was not told `{text}`, but:\n{(told or 'nothing')[:3000]}")
    for text in as_list(unwanted):
        if told is not None and world.filled(text) in told:
            raise Failed(f"after turn {place} the model was told `{text}`:\n{told[:3000]}")


def as_list(value):
    return [] if value is None else [value] if isinstance(value, str) else value


def expect_verdicts(world, case):
    wanted = for_client(case.get("verdicts"), world.client)
    if wanted is None:
        return
    found = [
        world.client.verdict(call["answer"], call["code"])
        for call in world.hook_calls()
        if world.client.is_before(call["event"])
    ]
    if found != wanted:
        raise Failed(f"verdicts before calls are {found}, not {wanted}")


def expect_files(world, case):
    for path, wanted in case.get("left", {}).items():
        wanted = for_client(wanted, world.client)
        found = world.read(world.filled(path))
        if wanted is None and found is not None:
            raise Failed(f"`{path}` is there: {found[:300]!r}")
        if wanted is True and found is None or wanted is False and found is not None:
            raise Failed(f"`{path}` is {'not ' if wanted else ''}there")
        if isinstance(wanted, str) and (found is None or wanted not in found.decode()):
            raise Failed(f"`{path}` does not hold `{wanted}`, but {found!r}")


def expect_tools(client, offered):
    """What `tools.txt` says of a client's tools is what it offers its model, where its hooks use the same names."""
    with open(TOOLS, encoding="utf-8") as file:
        section = file.read().partition(f"[{client.title}]\n")[2].partition("\n[")[0]
    listed = [line.split() for line in section.splitlines() if line]
    if not listed:
        raise Failed(f"tools.txt lists no tool of {client.title}")
    for name, *arguments in listed:
        found = client.other_names.get(name, name)
        if found is not None and offered.get(found) != sorted(arguments):
            raise Failed(f"tools.txt says `{name}` has {arguments}, but it is offered with {offered.get(found)}")


def expect_offered(world, case, offered):
    """Tools of servers that the model must have been offered at once, and such that it must not."""
    if world.client.searches_tools:
        return  # what it found is what it was told
    for server, wanted in case.get("offered", {}).items():
        for tool, is_there in wanted.items():
            call = world.client.server_call(server, tool, {})
            name = call["name"]
            if (name in offered) != is_there:
                raise Failed(f"the model was {'not ' if is_there else ''}offered `{name}`: {sorted(offered)}")


def expect_records(world, case):
    """What the journal must have."""
    if "recorded" in case:
        journal = world.run("log", "export").stdout
        for text in case["recorded"]:
            if world.filled(text) not in journal:
                raise Failed(f"the journal does not have `{text}`:\n{journal[-2000:]}")


def install_all(world, case, paths):
    """Installs, as a person would; what the settings are then. Prefixes are first undone once, byte for byte."""
    before = {path: world.read(path) for path in paths}
    install(world, case)
    if case.get("wrap"):
        for path in paths:
            if b'"wrap"' not in world.read(path):
                raise Failed(f"no server is wrapped in `{path}`:\n{world.read(path)}")
        install(world, case, "--undo")
        expect_same(world, before)
        install(world, case)
    else:
        world.client.trust_hooks(world)
    installed = {path: world.read(path) for path in paths}
    if not case.get("wrap"):
        world.record()
    return installed


def expect_same(world, before):
    for path, text in before.items():
        if world.read(path) != text:
            raise Failed(f"`install --undo` left in `{path}`:\n{world.read(path)}\ninstead of\n{text}")


def expect_undone(world, case, installed, before):
    """The client left the settings alone, and `--undo` restores them; in a file that the client writes, the entries."""
    touched = [path for path, text in installed.items() if world.read(path) != text]
    own = bool(case.get("wrap")) and world.client.writes_servers_file
    if touched and not own:
        raise Failed(f"`{touched[0]}` is not what `install` wrote:\n{world.read(touched[0])}")
    install(world, case, "--undo")
    expect_same(world, {path: text for path, text in before.items() if path not in touched})
    for path in touched:
        now, then = (json.loads(text)["mcpServers"] for text in (world.read(path), before[path]))
        if now != then:
            raise Failed(f"`install --undo` left in `{path}`:\n{now}\ninstead of\n{then}")


def session(client, case, program, cache, keep):
    """One script through one client; why it failed, or None."""
    model = Model(Script({})).start()
    world = World(cache, program, client, f"http://127.0.0.1:{model.port}")
    output, told, failure = "", "", None
    try:
        paths = settings_paths(world, case)
        world.settings = paths[0]
        model.script = Script(conversations(world, case))
        if case.get("wrap"):
            world.bring_packages()
        prepare(world, case)
        before = {path: world.read(path) for path in paths}
        installed = install_all(world, case, paths)
        for command in case.get("late", []):
            subprocess.run(["sh", "-ec", command], cwd=world.project, check=True)
        if case.get("program_is_gone"):
            os.unlink(world.bailiwick)
        output = start(world, case)
        told = model.script.everything_told()
        expect_turns(world, case, model.script)
        expect_tools(client, model.script.offered)
        expect_offered(world, case, model.script.offered)
        expect_verdicts(world, case)
        expect_files(world, case)
        expect_records(world, case)
        for text in case.get("never_told", []):
            if text in told:
                raise Failed(f"the model was told `{text}`")
        if not case.get("settings_change"):
            expect_undone(world, case, installed, before)
    except (Failed, RuntimeError, subprocess.SubprocessError, OSError) as error:
        failure = f"{error}\n-- hook calls\n{shown_calls(world)}\n-- the client said\n{output[-1500:]}\n-- requests\n{model.log[-12:]}"
    finally:
        model.shutdown()
        model.server_close()
        if keep:
            print(f"   kept: {world.directory}")
        else:
            world.remove()
    return failure


def shown_calls(world):
    shown = []
    for call in world.hook_calls():
        event = json.dumps(call["event"])
        shown.append(f"{event[:600]}\n  -> {call['code']} {call['answer'].strip()[:400]} {call['error'].strip()[:300]}")
    return "\n".join(shown) or "none"


def run_client(client, cases, options):
    failed = skipped = 0
    for case in cases:
        why = case.get("not_for", {}).get(client.name)
        since = time.monotonic()
        try:
            failure = None if why else session(client, case, options.program, options.cache, options.keep)
        except Unsupported as error:
            why = str(error)
        took = time.monotonic() - since
        if why:
            skipped += 1
            print(f"  -   {client.name:9}{case['name']}: {why}", flush=True)
        elif failure:
            failed += 1
            print(f"FAIL  {client.name:9}{case['name']}\n{failure}\n", flush=True)
        else:
            print(f"ok    {client.name:9}{case['name']} ({took:.1f} s)", flush=True)
    ran = len(cases) - skipped
    print(f"{client.title} {client.version}: {ran - failed} of {ran} scripts hold, {skipped} cannot be run by it", flush=True)
    return failed


def check_documents(clients):
    """`docs/hooks.md` names the versions that are tested, and no others."""
    with open(os.path.join(HERE, "..", "..", "docs", "hooks.md"), encoding="utf-8") as file:
        text = file.read()
    for client in clients:
        if f"| {client.title} | {client.version} |" not in text:
            sys.exit(f"docs/hooks.md does not say that {client.title} {client.version} is tested")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*")
    parser.add_argument("--packages", action="store_true", help="print what has to be installed, and where")
    parser.add_argument("--program", help="the bailiwick to test")
    parser.add_argument("--cache", default="", help="where clients are installed")
    parser.add_argument("--case", action="append", default=[], help="only this script; may be repeated")
    parser.add_argument("--keep", action="store_true", help="keep each session's directory")
    options = parser.parse_args()
    known = {kind.name: kind for kind in all_clients()}
    if unknown := [name for name in options.clients if name not in known]:
        sys.exit(f"there is no client {', '.join(unknown)}: {', '.join(known)}")
    if options.packages:
        for name in options.clients or known:
            print(f"{known[name].program}-{known[name].version} {known[name].package}@{known[name].version}")
        return
    check_documents(known.values())
    os.makedirs(os.path.join(options.cache, "worlds"), exist_ok=True)
    cases = load_cases(options.case)
    failed = sum(run_client(known[name](options.cache), cases, options) for name in options.clients or known)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
