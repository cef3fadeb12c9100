"""Echo programs between two hosts. Their server prints "listening" and ends with its first association; their
client counts the messages whose answers it has compared."""

import dataclasses
from collections.abc import Callable

from programs.table import tell
from support.preload import cut, run
from support.program import wait_until

PORT = 7000
COUNT = 300
# The number after which the path is cut.
CUT_AT = 50
# Linux gives a path up in seconds instead of a minute.
BRISK = "net.sctp.rto_initial=300 net.sctp.rto_min=200 net.sctp.rto_max=1000 net.sctp.path_max_retrans=1"


@dataclasses.dataclass
class Echo:
    """A program's name in the table, its command lines, and what it exchanges."""

    name: str
    server: Callable[[list[str]], list[object]]
    client: Callable[[str, list[str]], list[object]]
    exchange: str

    def between(self, hosts, processes, *, is_cut: bool, reports: bool = True) -> None:
        """Polypath at both ends; the exchange goes into the table if `reports`."""
        own, other = addresses(hosts)
        server = processes.start(*run(), *self.server(other), inside=hosts.b.inside)
        server.said("listening", 30)
        client = processes.start(*run(), *self.client(other[0], own), inside=hosts.a.inside)
        if is_cut:
            client.said(f"exchanged {CUT_AT}\n", 30)
            cut(hosts)
        assert client.wait().code == 0, client.out + client.err
        assert server.wait().code == 0, server.out + server.err
        self.completed(client.out, other, hosts, is_cut)
        if reports:
            tell(self.name, self.exchange, cut=is_cut)

    def with_linux(self, linux, processes, *, is_cut: bool, connects: bool = True) -> None:
        """The same program at the peer, on Linux's SCTP; polypath connects, or listens."""
        network, guest = linux
        own, other = addresses(network)
        server, client = (other, own) if connects else (own, other)
        lines = self.server(server), self.client(server[0], client)
        made = []
        for line, in_guest in zip(lines, (connects, not connects), strict=True):
            made.append(guest.start([str(word) for word in line], 9899) if in_guest else
                        processes.start(*run(), *line, inside=network.a.inside))
            reached(made[-1], f"exchanged {CUT_AT}\n" if len(made) == 2 else "listening")
        if is_cut:
            network.lose(1)
        theirs, ours = made if connects else reversed(made)
        assert ours.wait().code == 0, ours.out + ours.err + theirs.out
        wait_until(theirs.over, 60, lambda: f"the guest's program does not end: {theirs.out}")
        self.completed(made[1].out, server, network, is_cut)
        exchange = f"{self.exchange}, polypath {'connects' if connects else 'listens'}"
        tell(self.name, exchange, peer="Linux", cut=is_cut)

    def completed(self, client: str, server: list[str], hosts, is_cut: bool) -> None:
        """The client has exchanged everything, with a peer of two addresses; after a cut over the second path."""
        assert f"exchanged {COUNT}\n" in client, client
        assert f"remote {' '.join(server)}\n" in client, client
        assert not is_cut or hosts.a.sent("va2") > 100_000


def reached(process, words: str) -> None:
    """Wait for these words of a program here or in the guest."""
    wait_until(lambda: words in process.out, 60, lambda: f"{process.out} {process.err}")


def addresses(hosts) -> tuple[list[str], list[str]]:
    """Those of both hosts."""
    return tuple([hosts.address(side, path) for path in (1, 2)] for side in ("a", "b"))
