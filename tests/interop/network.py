"""Impairments and captures of the packets between two hosts: cuts, loss, smaller MTUs.

Packets are dropped at the ingress: at the egress the sender would get an error.
"""

import contextlib
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from support.namespaces import Namespace, TwoHosts
from support.program import wait_until

UDP_PORT = 9899


class Network(TwoHosts):
    """Two hosts with two unshaped paths; `calm` removes all impairments."""

    def __init__(self):
        super().__init__(rate=None)

    def __enter__(self) -> "Network":
        super().__enter__()
        self.a.whole_datagrams("va1")
        self.a.whole_datagrams("va2")
        return self

    def _ends(self, path: int):
        return ((self.a, f"va{path}"), (self.b, f"vb{path}"))

    def lose(self, path: int, verdict: str = "drop") -> None:
        """Drop all packets received over a path, or apply another rule."""
        for host, device in self._ends(path):
            host.filter(f"add table netdev {device}")
            host.filter(f"add chain netdev {device} in "
                        f"{{ type filter hook ingress device {device} priority 0; }}")
            host.filter(f"add rule netdev {device} in {verdict}")

    def dropped(self, path: int) -> int:
        """Number of packets that rules with counters have dropped."""
        shown = [host.run("nft", "list", "table", "netdev", device) for host, device in self._ends(path)]
        return sum(int(number) for text in shown for number in re.findall(r"packets (\d+)", text))

    def shape(self, rate: str) -> None:
        """Limit the rate of both paths, each way."""
        for path in (1, 2):
            for host, device in self._ends(path):
                host.run("tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate,
                         "burst", 20_000, "limit", 200_000)

    def narrow(self, path: int, mtu: int) -> None:
        """Set the MTU of a path, at both ends."""
        for host, device in self._ends(path):
            host.ip("link", "set", device, "mtu", mtu)

    def restore(self, path: int) -> None:
        for host, device in self._ends(path):
            host.filter(f"add table netdev {device}")
            host.filter(f"delete table netdev {device}")

    def calm(self) -> None:
        for path in (1, 2):
            self.restore(path)
            self.narrow(path, 1500)
            for host, device in self._ends(path):
                if " tbf " in host.run("tc", "qdisc", "show", "dev", device):
                    host.run("tc", "qdisc", "del", "dev", device, "root")

    def received(self, path: int) -> int:
        """Bytes received by `a` over a path."""
        return int(self.a.run("cat", f"/sys/class/net/va{path}/statistics/rx_bytes"))

    @contextlib.contextmanager
    def watched(self, file: Path) -> Iterator[None]:
        """Capture the packets on both paths."""
        # By default dumpcap drops packets once 1000 wait to be written.
        queue = ["-N", "1000000", "-C", "1000000000"]
        with file.open("wb") as out:
            sniffer = subprocess.Popen(
                [*self.a.inside, "dumpcap", "-q", "-i", "va1", "-i", "va2", "-B", "64", *queue,
                 "-f", f"udp port {UDP_PORT} or ip proto 132 or ip6 proto 132", "-w", "-"],
                stdout=out, stderr=subprocess.PIPE)
        try:
            wait_until(lambda: file.stat().st_size > 0, 15, "dumpcap does not start", alive=sniffer)
            yield
        finally:
            time.sleep(0.3)
            sniffer.terminate()
            sniffer.communicate(timeout=10)


class Nat:
    """A host `inside` with an uplink for each path, and host `a` of the network as its NAT, which translates
    addresses and ports."""

    def __init__(self, network: Network):
        self.network, self.inside = network, Namespace()

    def __enter__(self) -> "Nat":
        self.inside.__enter__()
        outside = self.network.a
        outside.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        for path in (1, 2):
            outside.run("ip", "link", "add", f"vn{path}", "type", "veth", "peer", "name", f"vc{path}",
                        "netns", self.inside.name)
            for host, device, number in ((outside, f"vn{path}", 1), (self.inside, f"vc{path}", 2)):
                host.ip("addr", "add", f"10.9{path}.0.{number}/24", "dev", device)
                host.ip("link", "set", device, "up")
            self.inside.ip("route", "add", f"10.8{path}.0.0/24", "via", f"10.9{path}.0.1")
        outside.filter("add table ip nat")
        outside.filter("add chain ip nat out { type nat hook postrouting priority 100; }")
        outside.filter("add rule ip nat out oifname { va1, va2 } masquerade random")
        return self

    def __exit__(self, *_) -> None:
        self.network.a.filter("delete table ip nat")
        self.inside.__exit__()
        for path in (1, 2):
            # Its other end is removed with the namespace, but not at once.
            subprocess.run([*self.network.a.inside, "ip", "link", "del", f"vn{path}"],
                           capture_output=True, check=False)
