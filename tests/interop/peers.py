"""Peers: programs on different SCTP stacks that accept the same commands.

`polypath` is crates/polypath/examples/peer; usrsctp and the kernel use peer.c, pion uses pion/.
"""

import contextlib
import dataclasses
import os
import subprocess
from pathlib import Path

from support.program import Process, binary, target, wait_until

HERE = Path(__file__).resolve().parent
SCTP_PORT = 5000  # pion supports no other
UDP_PORT = 9899


@dataclasses.dataclass(frozen=True)
class Case:
    """The peer's stack, the encapsulation, and the side that connects."""

    stack: str
    raw: bool
    we_connect: bool

    def __str__(self) -> str:
        below = "ip" if self.raw else "udp"
        return f"{self.stack}-{below}-{'we' if self.we_connect else 'they'}"


class Peer:
    """A running peer. `process` has `say(line)`, `out`, `err` and `popen`."""

    def __init__(self, name: str, process):
        self.name, self.process = name, process

    def lines(self) -> list[str]:
        """The complete lines that the peer has printed."""
        return self.process.out.split("\n")[:-1]

    def _fields(self, line: str) -> dict[str, str]:
        head, _, words = line.partition(" words=")
        found = dict(word.split("=", 1) for word in head.split(" ")[1:] if "=" in word)
        return found | ({"words": words} if words else {})

    def saw(self, start: str) -> list[dict[str, str]]:
        """Fields of the lines printed so far that begin with `start`."""
        return [self._fields(line) for line in self.lines() if f"{line} ".startswith(f"{start} ")]

    def until(self, start: str, timeout: float = 15, count: int = 1) -> dict[str, str]:
        """Wait for the n-th line that begins with `start`, and return its fields."""
        wait_until(lambda: len(self.saw(start)) >= count, timeout,
                   lambda: f"{self.name} has not told {start!r}: {self.lines()[-8:]} {self.process.err}")
        return self.saw(start)[count - 1]

    def tell(self, command: str) -> None:
        try:
            self.process.say(command)
        except BrokenPipeError:
            raise AssertionError(
                f"{self.name} has ended: {self.lines()[-5:]} {self.process.err}") from None

    def send(self, count: int, size: int, streams: int = 1, kind: str = "ordered", more: str = "") -> None:
        """`more`: "lifetime=MS" or "retransmissions=N" for messages that may be abandoned; "prompt"."""
        self.tell(f"send {count} {size} {streams} {kind} {more}".rstrip())

    def limited(self) -> int:
        """Number of messages received that might have been abandoned."""
        count = len(self.saw("limited")) + 1
        self.tell("limited")
        return int(self.until("limited", 10, count)["messages"])

    def totals(self) -> tuple[dict[str, str], dict[str, str]]:
        """Checksums of the messages sent and received."""
        count = len(self.saw("received")) + 1
        self.tell("totals")
        received = self.until("received", 60, count)
        return self.saw("sent")[count - 1], received

    def paths(self) -> dict[str, dict[str, str]]:
        """The peer's paths by remote address, once its earlier `send` commands have been executed."""
        count = len(self.saw("paths")) + 1
        self.tell("paths")
        there = int(self.until("paths", 60, count)["count"])
        return {path["address"]: path for path in self.saw("path")[-there:]} if there else {}

    def vanish(self) -> None:
        """End the peer without a shutdown. The kernel would send ABORT: cut the paths before."""
        if hasattr(self.process, "guest"):
            self.tell("abort")
            self.process.stop()
        else:
            self.process.popen.kill()
            self.process.popen.wait()

    def ended(self, timeout: float = 20) -> dict[str, str]:
        return self.until("end", timeout)


def ours() -> str:
    """The polypath peer."""
    return str(Path(binary()).parent / "examples" / "peer")


def compiled(stack: str) -> str:
    """The built peer for another stack, in the target directory, because /tmp may be mounted without
    execution."""
    folder = target() / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    program, new = folder / f"peer-{stack}", folder / f"peer-{stack}-{os.getpid()}"
    if stack == "pion":
        words = ["go", "build", "-o", new, "."]
        where = HERE / "pion"
    else:
        libraries = ["-lsctp"] if stack == "linux" else ["-lusrsctp"]
        kernel = ["-DKERNEL"] if stack == "linux" else []
        words = ["gcc", "-Wall", "-Wextra", "-Werror", "-O2", *kernel, "-o", new, "peer.c",
                 *libraries, "-lpthread"]
        where = HERE
    done = subprocess.run(list(map(str, words)), cwd=where, capture_output=True, text=True,
                          timeout=1800, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    # Replace it atomically: another worker may be using it.
    new.replace(program)
    return str(program)


class Pair:
    """A polypath peer on host `a` and another peer on host `b`, and the associations between them."""

    def __init__(self, case: Case, network, folder: Path, program: str, guest=None):
        self.case, self.network, self.folder = case, network, folder
        self.program, self.guest = program, guest
        self.ipv6 = False
        self.started: list[Peer] = []

    def __enter__(self) -> "Pair":
        return self

    def __exit__(self, *_) -> None:
        try:
            for peer in reversed(self.started):
                peer.process.stop()
                if peer.process.popen.stdin:
                    with contextlib.suppress(BrokenPipeError):
                        peer.process.popen.stdin.close()
        finally:
            self.network.calm()

    def words(self, side: str, connects: bool, paths: int, options: tuple[str, ...]) -> list[str]:
        """The command line of a peer."""
        own, other = (
            ",".join(self.network.address(which, path + 1, self.ipv6) for path in range(paths))
            for which in (side, "b" if side == "a" else "a"))
        udp = "-" if self.case.raw else str(UDP_PORT)
        return ["connect" if connects else "listen", own, str(SCTP_PORT),
                other if connects else "-", udp, udp, *options]

    def name(self, side: str) -> str:
        """The stack of a side."""
        return "polypath" if side == "a" else self.case.stack

    def start(self, side: str, connects: bool, paths: int = 1, options: tuple[str, ...] = (),
              words: list[str] | None = None, host=None) -> Peer:
        """Start the polypath peer ("a") or the other one ("b")."""
        words = words or self.words(side, connects, paths, options)
        # A peer that has ended its association has the UDP port until it exits; usrsctp starts without it.
        for peer in self.started:
            if peer.name == self.name(side) and isinstance(peer.process, Process) and peer.saw("end"):
                peer.process.wait()
        host = host or (self.network.a if side == "a" else self.network.b)
        program = ours() if side == "a" else self.program
        if side == "b" and self.guest:
            process = self.guest.start([program, *words], None if self.case.raw else UDP_PORT)
        else:
            line = [*host.inside, program, *words]
            process = Process(line, self.folder, len(self.started), stdin=subprocess.PIPE)
        peer = Peer(self.name(side), process)
        self.started.append(peer)
        return peer

    def join(self, paths: int = 1, options: tuple[str, ...] = (),
             our_options: tuple[str, ...] = (),
             their_options: tuple[str, ...] = ()) -> tuple[Peer, Peer]:
        """Start both, the listening one first; return the polypath peer and the other one."""
        first, second = ("b", "a") if self.case.we_connect else ("a", "b")
        peers = {}
        for side, connects in ((first, False), (second, True)):
            own = our_options if side == "a" else their_options
            peers[side] = self.start(side, connects, paths, (*options, *own))
            if not connects:
                peers[side].until("ready")
        for peer in peers.values():
            peer.until("up")
        return peers["a"], peers["b"]


def assert_all_arrived(sender: Peer, receiver: Peer, messages: int, timeout: float = 30) -> None:
    """Check that all messages sent by one side arrived at the other: content, streams, order."""
    def both():
        return sender.totals()[0], receiver.totals()[1]

    wait_until(lambda: (seen := both())[0] == seen[1] and seen[1]["messages"] == str(messages),
               timeout, lambda: f"of {messages} messages {sender.name}, {receiver.name}: {both()}")


def close(closes: Peer, other: Peer) -> None:
    """A graceful shutdown begun by one side."""
    closes.tell("shutdown")
    for peer in (closes, other):
        assert peer.ended()["reason"] in ("graceful", "closed"), peer.lines()
