"""A Linux kernel with SCTP as a process: user-mode Linux, with the host's files as its root.

The guest is attached to host `b` of a network through a bridge on each path, and takes over its addresses.
Commands are sent over a serial line: a shell reads them, or a program while the shell runs it. So a command waits
until the program before it is over, which might read it as it ends.
"""

import itertools
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from interop import xstate
from support.program import wait_until

#: Maximum number of starts of a guest that exits at once.
BOOTS = 3
INIT = Path(__file__).resolve().parent / "guest-init.sh"


class Guest:
    """A guest that has booted."""

    def __init__(self, network, folder: Path):
        self.folder = folder
        self.out_path, self.err_path = folder / "guest.out", folder / "guest.err"
        self.numbers = itertools.count(1)
        self.udp_port = 0
        self.program: Program | None = None
        host = network.b
        devices = []
        for path in (1, 2):
            host.ip("addr", "flush", "dev", f"vb{path}")
            host.run("ip", "tuntap", "add", f"tap{path}", "mode", "tap")
            host.ip("link", "add", f"br{path}", "type", "bridge", "forward_delay", 0)
            for device in (f"vb{path}", f"tap{path}"):
                host.ip("link", "set", device, "master", f"br{path}")
            for device in (f"tap{path}", f"br{path}"):
                host.ip("link", "set", device, "up")
            devices.append(f"vec{path - 1}:transport=tap,ifname=tap{path},depth=128,gro=1")
        # The kernel's command line cannot quote spaces in names, and the folder may be mounted without
        # execution.
        init = shutil.copy(INIT, folder / "init.sh")
        words = [*host.inside, sys.executable, xstate.__file__, "linux.uml", "mem=192M",
                 f"umid={host.name}", f"uml_dir={folder}/",
                 "rootfstype=hostfs", "root=/dev/root", "rootflags=/", "ro", "init=/bin/sh",
                 "con=null", "ssl=null", "ssl0=fd:0,fd:1", "quiet",
                 xstate.ENVIRONMENT, *devices, "--", init]
        for attempt in range(1, BOOTS + 1):
            self.boot(words)
            # Occasionally user-mode Linux aborts before it has printed anything.
            if self.popen.poll() is None or self.text or attempt == BOOTS:
                break
        wait_until(lambda: "booted" in self.text, 30, self.complaint, alive=self.popen)
        assert "failed" not in self.text, self.text

    def boot(self, words: list[str]) -> None:
        """Start the kernel; return when it prints something, or has exited."""
        with self.out_path.open("wb") as out, self.err_path.open("wb") as err:
            self.popen = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=out, stderr=err)
        wait_until(lambda: self.text or self.popen.poll() is not None, 30, self.complaint)

    def complaint(self) -> str:
        return f"no guest (exit code {self.popen.poll()}): {self.text}{self.err_path.read_text(errors='replace')}"

    @property
    def text(self) -> str:
        return self.out_path.read_text(errors="replace").replace("\r", "")

    def say(self, line: str) -> None:
        self.popen.stdin.write(line.encode() + b"\n")
        self.popen.stdin.flush()

    def wait_for_shell(self) -> None:
        """Wait until the last program is over."""
        if self.program is not None:
            wait_until(self.program.over, 15, lambda: f"the guest's last program does not end: {self.program.out}",
                       alive=self.popen)

    def run(self, command: str) -> str:
        """Run a command to its end and return its output."""
        self.wait_for_shell()
        mark = f"done-{next(self.numbers)}"
        start = len(self.text)
        self.say(f"{command}; echo {mark} $?")
        wait_until(lambda: f"{mark} " in self.text[start:], 20,
                   lambda: f"{command}: {self.text[start:]}", alive=self.popen)
        text, _, code = self.text[start:].partition(f"{mark} ")
        assert code.split()[0] == "0", f"{command}: {text}"
        return text

    def start(self, words: list[str], udp_port: int | None) -> "Program":
        port = udp_port or 0
        if port != self.udp_port:
            # Setting it to the same value would close the kernel's UDP socket and open another.
            self.run(f"sysctl -qw net.sctp.udp_port={port} net.sctp.encap_port={port}")
            self.udp_port = port
        self.wait_for_shell()
        self.program = Program(self, shlex.join(words))
        return self.program

    def stop(self) -> None:
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(5)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        self.popen.stdin.close()


class Program:
    """A program in the guest; one runs at a time."""

    def __init__(self, guest: Guest, command: str):
        self.guest, self.mark = guest, f"over-{next(guest.numbers)}"
        self.begin = len(guest.text)
        self.popen = type("Nothing", (), {"stdin": None})
        guest.say(f"{command}; echo {self.mark}")

    @property
    def out(self) -> str:
        return self.guest.text[self.begin:].partition(self.mark)[0]

    @property
    def err(self) -> str:
        """For complaints: the state of the guest."""
        return f"(guest: exit code {self.guest.popen.poll()}, last output {self.guest.text[-500:]!r})"

    def say(self, line: str) -> None:
        self.guest.say(line)

    def over(self) -> bool:
        return self.mark in self.guest.text[self.begin:]

    def stop(self) -> None:
        """End the program, whatever it is doing."""
        if not self.over():
            self.guest.say("leave")
            wait_until(self.over, 10, lambda: f"the guest's program does not end: {self.out}")
