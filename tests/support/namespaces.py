"""Hosts on one machine: network namespaces joined by veth pairs whose rate tbf shapes."""

import functools
import itertools
import json
import os
import shutil
import subprocess

from support.program import wait_until

_numbers = itertools.count()


def _run(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr.strip()}"
    return done.stdout


@functools.cache
def problem() -> str | None:
    """Why no namespace can be made here."""
    if os.geteuid() != 0:
        return "not root"
    try:
        # What a host that may not load modules of its kernel may lack, and one without IPv6.
        with Namespace() as probe:
            probe.ip("link", "add", "one", "type", "veth", "peer", "name", "other")
            probe.ip("addr", "add", "fd00::1/64", "dev", "one")
            if shutil.which("tc"):
                _run("tc", "-n", probe.name, "qdisc", "add", "dev", "one", "root", "tbf", "rate", "1mbit",
                     "burst", 3000, "limit", 3000)
    except FileNotFoundError:
        return "no ip"
    except AssertionError as error:
        return f"no namespaces: {error}"
    return None


class Namespace:
    """A network namespace with a loopback of its own."""

    def __init__(self):
        self.name = f"pp{os.getpid()}-{next(_numbers)}"

    def __enter__(self) -> "Namespace":
        _run("ip", "netns", "add", self.name)
        self.ip("link", "set", "lo", "up")
        return self

    def __exit__(self, *_) -> None:
        subprocess.run(["ip", "netns", "del", self.name], check=False)

    @property
    def inside(self) -> list[str]:
        """The words that run a program in here."""
        return ["ip", "netns", "exec", self.name]

    def ip(self, *words: object) -> str:
        """`ip` in here."""
        return _run("ip", "-n", self.name, *words)

    def run(self, *words: object) -> str:
        """A program in here, to its end."""
        return _run(*self.inside, *words)

    def filter(self, rules: str) -> None:
        """Rules of nftables in here."""
        _run(*self.inside, "nft", rules)

    def whole_datagrams(self, device: str) -> None:
        """Switches segmentation offload off: a capture shows what would be on a wire."""
        self.run("ethtool", "-K", device, "tx-udp-segmentation", "off", "tso", "off", "gso", "off",
                 "gro", "off")

    def sent(self, device: str) -> int:
        """Bytes that have left through a device."""
        shown = json.loads(self.ip("-s", "-j", "link", "show", device))
        return shown[0]["stats64"]["tx"]["bytes"]


class TwoHosts:
    """Namespaces `a` and `b`; path n, counted from 1, is va<n> - vb<n>, 10.8<n>.0.1 - 10.8<n>.0.2.

    Each direction is shaped to a rate, and its queue holds so many bytes; without a rate it is as
    fast as the machine.
    """

    def __init__(self, rate: str | None = "10mbit", queue: int = 60_000):
        self.rate, self.queue = rate, queue
        self.a, self.b = Namespace(), Namespace()

    def __enter__(self) -> "TwoHosts":
        self.a.__enter__()
        try:
            self.b.__enter__()
            for path in (1, 2):
                self._join(path)
            self.settled()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.a.__exit__()
        self.b.__exit__()

    def _join(self, path: int) -> None:
        _run("ip", "link", "add", f"va{path}", "netns", self.a.name,
             "type", "veth", "peer", "name", f"vb{path}", "netns", self.b.name)
        for side, host, number in (("a", self.a, 1), ("b", self.b, 2)):
            device = f"v{side}{path}"
            # Without duplicate address detection, IPv6 works at once.
            host.ip("addr", "add", f"10.8{path}.0.{number}/24", "dev", device)
            host.ip("addr", "add", f"fd00:8{path}::{number}/64", "dev", device, "nodad")
            host.ip("link", "set", device, "up")
            host.whole_datagrams(device)
            if self.rate:
                self.shape(side, path)

    def settled(self) -> None:
        """Waits until every path is up: the kernel tells itself of that a while later, and refuses to send
        to IPv6 networks till then."""
        def up() -> bool:
            shown = [json.loads(host.ip("-j", "link", "show", "type", "veth")) for host in (self.a, self.b)]
            return all(link["operstate"] == "UP" for links in shown for link in links)
        wait_until(up, 10, "the paths stay down")

    def shape(self, side: str, path: int) -> None:
        """A host sends at the rate over a path."""
        self._queue(side, path, "tbf", "rate", self.rate, "burst", 3000, "limit", self.queue)

    def swallow(self, side: str, path: int) -> None:
        """What a host sends over a path vanishes, also what is queued, and the host does not notice."""
        self._queue(side, path, "blackhole")

    def _queue(self, side: str, path: int, *words: object) -> None:
        host = {"a": self.a, "b": self.b}[side]
        _run("tc", "-n", host.name, "qdisc", "replace", "dev", f"v{side}{path}", "root", *words)

    def address(self, side: str, path: int, ipv6: bool = False) -> str:
        """The address of a host on a path."""
        number = {"a": 1, "b": 2}[side]
        return f"fd00:8{path}::{number}" if ipv6 else f"10.8{path}.0.{number}"
