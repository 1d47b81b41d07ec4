"""One session's surroundings: a home, a project in it, `bailiwick` and a record of every hook call.

`bin/bailiwick` is the real program while hooks are installed; then a recorder of the same name takes its place, so
that the settings are exactly those that `install` wrote, and every event and answer can be looked at.
"""

import json
import os
import shutil
import subprocess
import tempfile

RECORDER = """\
#!/bin/sh
# Passes one hook call on, and keeps what was asked and answered.
kept=$(mktemp -d {events}/$(date +%s%N).XXXXXX)
cat > "$kept/event"
printf '%s\\n' "$@" > "$kept/arguments"
{program} "$@" < "$kept/event" > "$kept/answer" 2> "$kept/error"
code=$?
echo $code > "$kept/code"
cat "$kept/answer"
cat "$kept/error" >&2
exit $code
"""

#: what a session sees of the environment it is started from
PATH = "/usr/local/bin:/usr/bin:/bin"


class World:
    def __init__(self, cache, program, client, url):
        self.directory = tempfile.mkdtemp(dir=os.path.join(cache, "worlds"))
        self.home = os.path.join(self.directory, "home")
        self.project = os.path.join(self.home, "project")
        self.events = os.path.join(self.directory, "events")
        self.bin = os.path.join(self.directory, "bin")
        self.bailiwick = os.path.join(self.bin, "bailiwick")
        self.settings = os.path.join(self.home, client.settings[0])
        self.client, self.url, self.program, self.cache = client, url, program, cache
        self.directories = {}
        for directory in (self.project, self.events, self.bin):
            os.makedirs(directory)
        for companion in ("", "-admin", "-serve"):
            there, here = program + companion, self.bailiwick + companion
            os.link(there, here) if same_device(there, self.bin) else shutil.copy(there, here)
        self.path = f"{self.bin}:{os.path.join(cache, 'node', 'node_modules', '.bin')}:{PATH}"

    def environment(self):
        plain = {"HOME": self.home, "PATH": self.path, "TERM": "xterm-256color", "LANG": "C.UTF-8", "SHELL": "/bin/bash"}
        variables = plain | self.client.environment(self.url) | self.directories
        if self.directories:
            # Where npm's settings are among the variables, it is not certain what `npx` would run.
            variables = {name: value for name, value in variables.items() if not name.startswith("npm_config_")}
        return variables

    def bring_packages(self):
        """Packages that were fetched before the network was taken away, in directories that are not the usual ones."""
        fetched = os.path.join(self.cache, "fetched")
        for variable, usual in (("XDG_CACHE_HOME", ".cache"), ("XDG_STATE_HOME", ".local/state")):
            own = os.path.join(self.directory, "xdg", usual)
            shutil.copytree(os.path.join(fetched, usual, "bailiwick/store"), os.path.join(own, "bailiwick/store"), symlinks=True)
            self.directories[variable] = own

    # -- files

    def write(self, path, text, mode=0o644):
        path = os.path.join(self.project, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(path, mode)

    def write_json(self, path, value):
        self.write(path, json.dumps(value, indent=2) + "\n")

    def read(self, path):
        """The bytes of a file; None if it is not there."""
        try:
            with open(os.path.join(self.project, path), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def filled(self, text):
        """A script's text with the places of this world in it."""
        settings = self.settings or ""
        places = {"settings": settings, "settings_directory": os.path.dirname(settings), "settings_name": os.path.basename(settings)}
        places |= {"project": self.project, "home": self.home, "url": self.url, "program": self.program}
        for name, place in places.items():
            text = text.replace("{%s}" % name, place)
        return text

    # -- acts

    def run(self, *arguments, cwd=None, check=True):
        """`bailiwick` as a person runs it."""
        done = subprocess.run(
            [self.program if self.recording else self.bailiwick, *arguments], cwd=cwd or self.project,
            env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )
        if check and done.returncode:
            raise RuntimeError(f"bailiwick {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    recording = False

    def record(self):
        """From here on, hook calls are recorded."""
        real = os.path.join(self.bin, "real-program")
        os.rename(self.bailiwick, real)
        self.write(self.bailiwick, RECORDER.format(events=self.events, program=real), 0o755)
        self.recording = True

    def hook_calls(self):
        """What the hooks were asked and how they answered, in order."""
        calls = []
        for name in sorted(os.listdir(self.events)):
            directory = os.path.join(self.events, name)
            def text(part):
                content = self.read(os.path.join(directory, part))
                return (content or b"").decode(errors="replace")
            arguments = text("arguments").split()
            if arguments[:1] == ["hook"]:
                calls.append({
                    "event": json.loads(text("event") or "{}"), "answer": text("answer"),
                    "error": text("error"), "code": int(text("code") or -1),
                })
        return calls

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)


def same_device(one, other):
    return os.stat(one).st_dev == os.stat(other).st_dev
