"""A newcomer follows README.md: its commands as written, in a clean root file system, up to a figure.

Two terminals are open, on two hosts (network namespaces) that see nothing but each other. What a newcomer downloads
is fetched before the clock begins: Debian's packages, the repository, crates and Python packages. Everything else is
on the clock. Compilers take most of it. Where other processes take their processors, the clock shows the machine's
load, and the test judges the processor time of the commands instead, and reports that.
"""

import os
import re
import shlex
import subprocess
import time
import tomllib
from pathlib import Path

from conftest import ROOT, Root
from support.program import make_file, sha256, wait_until

README = (ROOT / "README.md").read_text()
LINES = [line.partition(" #")[0].strip() for block in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
         for line in block.splitlines()]
#: Seconds for everything but downloads.
LIMIT = 300
#: Share of the processors that others may use before the clock means nothing.
BUSY = 0.05
#: Seconds of the transfers, which take as long on every machine.
WAITING = 30


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
    recv = next(line for line in LINES if line.startswith("polypath recv"))
    words = shlex.split(send)
    for path, address in enumerate([words[3], "198.51.100.10"], start=1):
        network = address.rpartition(".")[0]
        hosts.a.ip("addr", "add", f"{network}.1/24", "dev", f"va{path}")
        hosts.b.ip("addr", "add", f"{address}/24", "dev", f"vb{path}")
    here, there = (Terminal(root, host.inside, processes) for host in (hosts.a, hosts.b))
    here.run("cd polypath")

    seconds, sent = 0.0, False
    start, before = time.monotonic(), busy()
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
    used, cores = 60 * int(minutes) + float(rest), os.cpu_count()
    others = (busy() - before - used) / (cores * (time.monotonic() - start))
    print(f"{seconds:.0f} s up to a file and a figure, without downloads (at most {LIMIT}); "
          f"{used:.0f} s of processor time; others used {max(0, others):.0%} of {cores} processors")
    assert sent and drawn
    if others < BUSY:
        assert seconds < LIMIT
    else:
        # A quarter more for the times in which a build has work for one processor only, and what waits for a network.
        alone = 1.25 * used / cores + WAITING
        print(f"busy: {alone:.0f} s by its processor time")
        assert alone < LIMIT


def busy() -> float:
    """Seconds for which the processors have worked, all together."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
