"""A newcomer follows README.md: its commands as written, in a clean root file system, up to a figure.

Two terminals are open, on two hosts (network namespaces) that see nothing but each other. What a newcomer downloads
is fetched before the clock begins: Debian's packages, the repository, crates and Python packages. Everything else is
on the clock. Compilers take most of it, so the machine should be idle.
"""

import os
import re
import shlex
import subprocess
import time
import tomllib

from conftest import ROOT, Root
from support.program import make_file, sha256, wait_until

README = (ROOT / "README.md").read_text()
LINES = [line.partition(" #")[0].strip() for block in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
         for line in block.splitlines()]
#: Seconds for everything but downloads.
LIMIT = 300


class Terminal:
    """A shell of the newcomer that stays open."""

    def __init__(self, root: Root, inside: list[str], processes):
        self.shell = processes.start(*root.words("exec bash 2>&1", inside=inside), stdin=subprocess.PIPE)
        self.count = 0

    def begin(self, line: str) -> str:
        """Start a command; return the word that appears on the terminal when it has ended."""
        self.count += 1
        print(f"$ {line}", flush=True)
        self.shell.say(f"{line}; echo ended-{self.count}: $?")
        return f"ended-{self.count}: "

    def end(self, word: str, timeout: float = 600) -> str:
        """Wait for this command's end; return all that the terminal shows."""
        wait_until(lambda: re.search(rf"^{word}\d+$", self.shell.out, re.MULTILINE), timeout,
                   lambda: f"no end: {self.shell.out[-4000:]}", alive=self.shell.popen)
        assert f"\n{word}0\n" in f"\n{self.shell.out}", self.shell.out[-4000:]
        return self.shell.out

    def run(self, line: str) -> float:
        """Run a command to its end; return its seconds."""
        began = time.monotonic()
        self.end(self.begin(line))
        seconds = time.monotonic() - began
        print(f"  {seconds:.1f} s", flush=True)
        return seconds


def downloads(root: Root) -> None:
    """Everything that the README's commands fetch from the network, and the clone."""
    (packages,) = re.findall(r"`apt-get install ([^`]+)`", README)
    root.install(*packages.split())
    root.show_toolchain()
    clone = LINES[0]
    assert clone.startswith("git clone https://")
    root.run(f"{clone} && cargo fetch --locked", network=True)
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    root.run(f"python3 -m venv /tmp/fetch && /tmp/fetch/bin/pip download -q -d ~/.downloads {shlex.join(wanted)} && "
             "rm -r /tmp/fetch", network=True)


def transfer(here: Terminal, there: Terminal, root: Root, recv: str, send: str) -> None:
    """The README's file, sent with the code phrase that the receiver shows."""
    home = root.folder / "home" / "newcomer"
    words = shlex.split(send)
    sent = make_file(home / "polypath" / words[2], 10_000_000)
    received = there.begin(recv)
    there.shell.said("code phrase ", 60)
    (phrase,) = re.findall(r"code phrase (\S+)", there.shell.out)
    here.run(send.replace(words[words.index("--code") + 1], phrase))
    there.end(received)
    assert sha256(home / words[2]) == sent


def test_a_newcomer(repository, processes, hosts):
    root = repository
    began = time.monotonic()
    downloads(root)
    print(f"\ndownloads: {time.monotonic() - began:.0f} s")
    send = next(line for line in LINES if line.startswith("polypath send "))
    recv = next(line for line in LINES if line.startswith("polypath recv "))
    words = shlex.split(send)
    for path, address in enumerate([words[3], *words[words.index("--via") + 1].split(",")], start=1):
        network = address.rpartition(".")[0]
        hosts.a.ip("addr", "add", f"{network}.1/24", "dev", f"va{path}")
        hosts.b.ip("addr", "add", f"{address}/24", "dev", f"vb{path}")
    here, there = (Terminal(root, host.inside, processes) for host in (hosts.a, hosts.b))
    here.run("cd polypath")

    seconds, sent = 0.0, False
    for line in LINES[1:]:
        if line == recv:
            continue
        if "--full" in line:
            assert "an hour" in README.partition(line)[2].splitlines()[0]
            continue
        drawn = bool(list(root.folder.glob("home/newcomer/polypath/reproduced/**/*.svg")))
        began = time.monotonic()
        if line == send:
            transfer(here, there, root, recv, send)
            sent = True
        else:
            here.run(line)
        if not (sent and drawn):
            seconds += time.monotonic() - began
    shown = here.end(here.begin("times"))
    minutes, rest = re.findall(r"^(\d+)m([\d.]+)s \d+m[\d.]+s$", shown, re.MULTILINE)[-1]
    print(f"{seconds:.0f} s up to a file and a figure, without downloads (at most {LIMIT}); "
          f"{60 * int(minutes) + float(rest):.0f} s of processor time; load {os.getloadavg()[0]:.1f}")
    assert sent and drawn
    assert seconds < LIMIT
