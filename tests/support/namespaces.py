"""Hosts on one machine: network namespaces joined by veth pairs whose rate tbf shapes."""

import contextlib
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
    """Reason why no namespace can be created, if any."""
    if os.geteuid() != 0:
        return "not root"
    try:
        # Check features that may be missing: kernel modules and IPv6.
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
        """Command prefix that runs a program in the namespace."""
        return ["ip", "netns", "exec", self.name]

    def ip(self, *words: object) -> str:
        """Run `ip` in the namespace."""
        return _run("ip", "-n", self.name, *words)

    def run(self, *words: object) -> str:
        """Run a program in the namespace to its end."""
        return _run(*self.inside, *words)

    def filter(self, rules: str) -> None:
        """Apply nftables rules in the namespace."""
        _run(*self.inside, "nft", rules)

    def whole_datagrams(self, device: str) -> None:
        """Switch segmentation offload off, so that a capture shows packets as on a wire."""
        self.run("ethtool", "-K", device, "tx-udp-segmentation", "off", "tso", "off", "gso", "off",
                 "gro", "off")

    def sent(self, device: str) -> int:
        """Bytes sent through a device."""
        shown = json.loads(self.ip("-s", "-j", "link", "show", device))
        return shown[0]["stats64"]["tx"]["bytes"]


class TwoHosts:
    """Namespaces `a` and `b`; path n, counted from 1, is va<n> - vb<n>, 10.8<n>.0.1 - 10.8<n>.0.2.

    Each direction is shaped to `rate` with a queue of `queue` bytes; without a rate it is not shaped.
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
        """Wait until every path is up: the kernel updates the state with a delay, and until then refuses to
        send to IPv6 networks."""
        def up() -> bool:
            shown = [json.loads(host.ip("-j", "link", "show", "type", "veth")) for host in (self.a, self.b)]
            return all(link["operstate"] == "UP" for links in shown for link in links)
        wait_until(up, 10, "the paths stay down")

    def shape(self, side: str, path: int) -> None:
        """Shape a host's sending rate over a path."""
        self._queue(side, path, "tbf", "rate", self.rate, "burst", 3000, "limit", self.queue)

    def swallow(self, side: str, path: int) -> None:
        """Silently drop all packets that a host sends over a path, including queued ones."""
        self._queue(side, path, "blackhole")

    def _queue(self, side: str, path: int, *words: object) -> None:
        host = {"a": self.a, "b": self.b}[side]
        _run("tc", "-n", host.name, "qdisc", "replace", "dev", f"v{side}{path}", "root", *words)

    def address(self, side: str, path: int, ipv6: bool = False) -> str:
        """The address of a host on a path."""
        number = {"a": 1, "b": 2}[side]
        return f"fd00:8{path}::{number}" if ipv6 else f"10.8{path}.0.{number}"


@contextlib.contextmanager
def coalescing():
    """Namespaces `a` (10.81.0.2) and `b` (10.82.0.2). b's interface coalesces datagrams that arrive within 1 ms,
    also those of different sockets: between them is a router, for a veth pair alone keeps the senders apart."""
    with Namespace() as a, Namespace() as router, Namespace() as b:
        for number, host in ((1, a), (2, b)):
            _run("ip", "link", "add", "v", "netns", host.name, "type", "veth", "peer", "name", f"r{number}",
                 "netns", router.name)
            for side, device, last in ((host, "v", 2), (router, f"r{number}", 1)):
                side.ip("addr", "add", f"10.8{number}.0.{last}/24", "dev", device)
                side.ip("link", "set", device, "up")
                side.whole_datagrams(device)
            host.ip("route", "add", "default", "via", f"10.8{number}.0.1")
        router.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        b.run("ethtool", "-K", "v", "gro", "on")
        b.run("sh", "-c", "echo 1000000 > /sys/class/net/v/gro_flush_timeout")
        yield a, b
