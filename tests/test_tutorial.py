"""Executes docs/tutorial-two-uplinks.md, command by command, and compares the output."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.program import BUSY, ROOT, binary

PAGE = (ROOT / "docs" / "tutorial-two-uplinks.md").read_text()
# A line of a shell: its host, the number of the terminal if it is not the first one, and the command.
PROMPT = re.compile(r"^(?P<shell>(?P<host>\w+)(?: \d)?)\$ (?P<command>.*)$")
PHRASE = "lusab-babad-gutih"
PHRASES = re.compile(r"\b[a-z]{5}-[a-z]{5}-[a-z]{5}\b")
# Seconds for each command.
PATIENCE = 20


class Step:
    """A command and what it prints."""

    def __init__(self, found: re.Match):
        self.shell, self.host, self.command = found["shell"], found["host"], found["command"]
        self.printed: list[str] = []
        # Whether the page shows that it is ended with Ctrl-C.
        self.interrupted = False

    def pattern(self) -> re.Pattern:
        """Matches the output: `...` matches anything within a line, and any lines if it is one of its own."""
        text = "".join("(?:.*\n)?" if line == "..." else f"{re.escape(line)}\n" for line in self.printed)
        text = text.replace(re.escape("..."), "[^\n]*").replace(re.escape(PHRASE), PHRASES.pattern)
        return re.compile(f"^{text}", re.DOTALL)


def steps() -> list[Step]:
    found: list[Step] = []
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if prompt := PROMPT.match(line):
                found.append(Step(prompt))
            elif line == "^C":
                found[-1].interrupted = True
            else:
                found[-1].printed.append(line)
    return found


class Terminals:
    """Shells on the hosts of the page. Each runs one command at a time."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.running: dict[str, tuple[Step, subprocess.Popen, Path]] = {}
        self.phrase = PHRASE
        # A namespace of mounts and of networks for all of them, so that the names of the page are free.
        self.lab = subprocess.Popen(
            ["unshare", "--mount", "--net", "sh", "-c",
             "mkdir -p /run/netns && mount -t tmpfs none /run/netns && echo ready && exec sleep 1000"],
            stdout=subprocess.PIPE, text=True)
        assert self.lab.stdout.readline() == "ready\n"

    def run(self, step: Step) -> None:
        """Start a command once the last one of its terminal has ended, and wait until it has printed what the
        page shows: to the end if it shows nothing, or `...` at last."""
        self.ended(step.shell)
        home = self.folder / step.host
        home.mkdir(exist_ok=True)
        inside = [] if step.host == "root" else ["ip", "netns", "exec", step.host]
        command = step.command.replace(PHRASE, self.phrase)
        path = self.folder / f"output-{len(list(self.folder.iterdir()))}"
        settings = {**os.environ, "XDG_CONFIG_HOME": f"{home}-settings",
                    "PATH": f"{Path(binary()).parent}:{os.environ['PATH']}"}
        with path.open("wb") as output:
            process = subprocess.Popen(
                ["nsenter", "-t", str(self.lab.pid), "--mount", "--net", "--wd=" + str(home), *inside, "bash", "-c",
                 command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=settings, cwd=home,
                start_new_session=True)
        self.running[step.shell] = (step, process, path)
        end = time.monotonic() + BUSY * PATIENCE
        while not (step.printed[-1:] not in ([], ["..."]) and step.pattern().search(path.read_text())):
            code = process.poll()
            if code is not None:
                assert code == 0 or step.printed, f"{step.command}: exit {code}: {path.read_text()}"
                assert step.pattern().search(path.read_text()), f"{step.command} printed:\n{path.read_text()}"
                break
            assert time.monotonic() < end, f"{step.command} still runs, and printed:\n{path.read_text()}"
            time.sleep(0.02)
        if PHRASE in "".join(step.printed):
            self.phrase = PHRASES.search(path.read_text())[0]

    def ended(self, shell: str) -> None:
        """Wait for the end of a terminal's command, or interrupt it if the page does."""
        if shell in self.running:
            step, process, path = self.running.pop(shell)
            if step.interrupted:
                os.killpg(process.pid, signal.SIGINT)
            try:
                code = process.wait(BUSY * PATIENCE)
            except subprocess.TimeoutExpired:
                self.running[shell] = (step, process, path)
                raise AssertionError(f"{step.command} has not ended: {path.read_text()}") from None
            assert code == 0 or step.interrupted, f"{step.command}: exit {code}: {path.read_text()}"

    def close(self) -> None:
        for _, process, _ in self.running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.lab.kill()
        self.lab.wait()
        self.lab.stdout.close()


@pytest.mark.needs("namespaces", "tc", "unshare", "nsenter")
def test_every_command(tmp_path):
    terminals = Terminals(tmp_path)
    try:
        for step in steps():
            terminals.run(step)
        for shell in list(terminals.running):
            terminals.ended(shell)
    finally:
        terminals.close()
