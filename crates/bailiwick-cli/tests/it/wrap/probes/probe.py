# Tries what no manifest grants, from the place of a server, and tells the client what came of it.
import json
import os
import socket
import subprocess
import sys
import time

facts = json.loads(r"""FACTS""")
came = {}


def attempt(act, work):
    try:
        work()
        came[act] = "done"
    except Exception as fault:
        came[act] = f"refused: {fault}"


def read(path):
    with open(path, "rb") as file:
        file.read()


def write(path):
    with open(path, "w") as file:
        file.write("planted")


def ensure(holds, why):
    if not holds:
        raise ValueError(why)


def shell():
    done = subprocess.run(["/bin/sh", "-c", "echo shell"], capture_output=True, text=True)
    ensure("shell" in done.stdout, "no answer")


def survive():
    if os.fork() == 0:
        os.setsid()
        for number in (0, 1, 2):
            os.close(number)
        time.sleep(600)
        os._exit(0)


def connect(family, address):
    def work():
        with socket.socket(family, socket.SOCK_STREAM) as own:
            own.settimeout(5)
            own.connect(address)
            ensure(own.recv(5) == b"hello", "another answered")
    return work


attempt("read own code", lambda: read(__file__))
attempt("read a granted file", lambda: read(facts["granted"]))
attempt("read /etc/shadow", lambda: read("/etc/shadow"))
attempt("read ~/.ssh", lambda: read(facts["key"]))
attempt("write outside", lambda: write(facts["outside"]))
attempt("write its own code", lambda: write(facts["planted"]))
attempt("read an undeclared variable", lambda: ensure(os.environ.get("UNDECLARED_TOKEN"), "it is not set"))
attempt("spawn a shell", shell)
attempt("survive", survive)
attempt("reach another host", connect(socket.AF_INET, ("127.0.0.1", facts["port"])))
attempt("reach a host by name", connect(socket.AF_INET, ("localhost", facts["port"])))
attempt("talk to a Unix socket", connect(socket.AF_UNIX, facts["socket"]))
attempt("talk to a Unix socket in a granted place", connect(socket.AF_UNIX, facts["granted_socket"]))
print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": came}}), flush=True)
sys.stdin.read()
