# A shell with job control on a terminal of its own; types and waits for what is shown. argv: the shell's command lines.
import os, pty, re, select, sys, time

def main():
    bailiwick, caps = sys.argv[1], sys.argv[2:]
    pid, screen = pty.fork()
    if pid == 0:
        os.environ.update(PS1="ready> ", TERM="dumb")
        os.execv("/bin/bash", ["bash", "--norc", "--noprofile", "-i"])
    run = " ".join([bailiwick, "run", "--no-journal"] + ["--cap " + cap for cap in caps] + ["--"])
    shown = bytearray()

    def until(pattern):
        end = time.monotonic() + 60
        while True:
            found = re.search(pattern.encode(), shown, re.S)
            if found:
                del shown[: found.end()]
                return found
            ready, _, _ = select.select([screen], [], [], max(0, end - time.monotonic()))
            if not ready:
                sys.exit("`%s` did not appear in: %s" % (pattern, bytes(shown).decode(errors="replace")))
            shown.extend(os.read(screen, 4096))

    # A key that is pressed before the shell has given the terminal away is the shell's: pressed again until it counts.
    def insist(key, pattern):
        for _ in range(60):
            os.write(screen, key.encode())
            end = time.monotonic() + 1
            while time.monotonic() < end and not re.search(pattern.encode(), shown, re.S):
                if select.select([screen], [], [], 0.1)[0]:
                    shown.extend(os.read(screen, 4096))
            if re.search(pattern.encode(), shown, re.S):
                return until(pattern)
        sys.exit("`%s` did not appear in: %s" % (pattern, bytes(shown).decode(errors="replace")))

    def step(typed, pattern):
        os.write(screen, typed.encode())
        return until(pattern)

    until("ready> ")
    # Ctrl-Z gives the shell back; what was started goes on with fg, and its input is its own again.
    step(run + " cat\n", "cat")
    step("before\n", "before.*before")
    insist("\x1a", "Stopped.*ready> ")
    step("echo shell-$((6 * 7))\n", "shell-42.*ready> ")
    step("stty -a | grep -o '.icanon'\n", " icanon.*ready> ")
    step("fg\n", "cat")
    step("after\n", "after.*after")
    step("\x04", "ready> ")
    step("echo code-$?\n", "code-0.*ready> ")
    # bg: runs on without the terminal, writes to it, and comes back with fg.
    step(run + " sh -c 'while ! test -e %s/go; do sleep 0.1; done; echo done-$((7 * 8)); read line; echo got-$line'\n" % os.environ["WHERE"], "line'")
    insist("\x1a", "Stopped.*ready> ")
    step("bg\n", "ready> ")
    step("echo shell-$((9 * 9))\n", "shell-81.*ready> ")
    step("touch $WHERE/go\n", "done-56")
    step("fg\n", "line'")
    step("word\n", "got-word.*ready> ")
    # Started in the background from the first.
    step(run + " sh -c 'echo begun-$((5 * 5)); sleep 0.1' &\n", "begun-25")
    step("wait; echo waited-$?\n", "waited-0.*ready> ")
    # A shell inside has jobs of its own: its Ctrl-Z is not ours.
    step(run + " bash --norc --noprofile -i\n", "bash-")
    step("sleep 1000\n", "1000")
    insist("\x1a", "Stopped.*bash-")
    step("kill %1; fg; echo inner-$((3 * 5))\n", "inner-15.*bash-")
    step("exit 7\n", "ready> ")
    step("echo code-$?\n", "code-7.*ready> ")
    # Through a pipe there is one terminal for all: the command stops with the pipeline.
    step(run + " sh -c 'echo piped; sleep 1000' | cat\n", "piped.*piped")
    insist("\x1a", "Stopped.*ready> ")
    step("fg\n", "cat")
    insist("\x03", "ready> ")
    step("exit\n", "exit")
    os.waitpid(pid, 0)

main()
