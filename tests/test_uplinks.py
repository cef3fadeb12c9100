"""Paths that neither side has named: the hosts' networks are found, and all of them carry data."""

import json

import pytest

from support.namespaces import Namespace, TwoHosts
from support.program import Processes, make_file, wait_until

SIZE = 12_000_000


def transfer(folder, sender, receiver, to: str, *words: str) -> list[dict]:
    """Send a file without options that name paths; the sender's paths at the end."""
    sha256 = make_file(folder / "file", SIZE)
    (folder / "there").mkdir()
    with Processes(folder) as processes:
        waits = processes.polypath("recv", "--json", "-o", folder / "there", *words,
                                   inside=receiver.inside).said("waiting on")
        sends = processes.polypath("send", "--json", folder / "file", to, inside=sender.inside)
        done = sends.wait().json
        assert waits.wait().json["sha256"] == done["sha256"] == sha256
    return done["paths"]


def carriers(paths: list[dict]) -> set[tuple[str, str]]:
    """The pairs of addresses that have carried at least a fifth of the file."""
    return {ends(path) for path in paths if path["bytes"] >= SIZE / 5}


def ends(path: dict) -> tuple[str, str]:
    return path["local"], path["remote"].partition(":")[0]


@pytest.mark.needs("namespaces", "ethtool")
def test_two_networks_between_two_hosts(tmp_path):
    """Two hosts with two networks in common, as servers with two interfaces. The sender is given one address.
    A bridge of containers, which both hosts have, is not announced."""
    with TwoHosts(rate="20mbit") as hosts:
        for host in (hosts.a, hosts.b):
            bridge(host)
        paths = transfer(tmp_path, hosts.a, hosts.b, "10.81.0.2")
    assert carriers(paths) == {("10.81.0.1", "10.81.0.2"), ("10.82.0.1", "10.82.0.2")}, paths
    assert len(paths) == 2, paths


def bridge(host: Namespace) -> None:
    """A bridge with an interface behind it, as Docker makes it."""
    host.ip("link", "add", "docker0", "type", "bridge")
    host.ip("link", "add", "port", "type", "veth", "peer", "name", "container")
    host.ip("link", "set", "port", "master", "docker0")
    host.ip("addr", "add", "172.17.0.1/16", "dev", "docker0")
    for device in ("port", "container", "docker0"):
        host.ip("link", "set", device, "up")
    wait_until(lambda: "UP" in host.ip("-br", "link", "show", "docker0").split()[1], 10, "no bridge")


class Uplinks:
    """Host `home` has two uplinks with private addresses behind one NAT each, and a default route over each,
    the second with a higher metric; host `server` has one address for both, 203.0.113.5."""

    def __init__(self, rate: str):
        self.rate = rate
        self.home, self.server = Namespace(), Namespace()
        self.routers = [Namespace(), Namespace()]

    def __enter__(self) -> "Uplinks":
        self.all = [self.home, self.server, *self.routers]
        entered = []
        try:
            for host in self.all:
                entered.append(host.__enter__())
            self.server.ip("addr", "add", "203.0.113.5/32", "dev", "lo")
            for number, router in enumerate(self.routers, 1):
                self._uplink(number, router)
        except BaseException:
            for host in entered:
                host.__exit__()
            raise
        return self

    def _uplink(self, number: int, router: Namespace) -> None:
        for host, device, other, inside, outside in (
            (self.home, f"up{number}", "inner", f"192.168.{number}.20/24", f"192.168.{number}.1/24"),
            (self.server, f"isp{number}", "outer", f"198.51.{number}.2/24", f"198.51.{number}.1/24"),
        ):
            host.ip("link", "add", device, "type", "veth", "peer", "name", other, "netns", router.name)
            for end, name, address in ((host, device, inside), (router, other, outside)):
                end.ip("addr", "add", address, "dev", name)
                end.ip("link", "set", name, "up")
                end.whole_datagrams(name)
                end.run("tc", "qdisc", "add", "dev", name, "root", "tbf", "rate", self.rate, "burst", 3000,
                        "limit", 60_000)
        self.home.ip("route", "add", "default", "via", f"192.168.{number}.1", "metric", 100 * number)
        router.ip("route", "add", "203.0.113.5/32", "via", f"198.51.{number}.2")
        router.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        router.filter("add table ip nat")
        router.filter("add chain ip nat out { type nat hook postrouting priority 100; }")
        router.filter("add rule ip nat out oifname outer masquerade")
        for host in (self.home, self.server):
            host.run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")

    def __exit__(self, *_) -> None:
        for host in self.all:
            host.__exit__()


@pytest.mark.needs("namespaces", "ethtool", "nft")
def test_two_uplinks_to_a_server_with_one_address(tmp_path):
    """The second uplink is used although the host's routes prefer the first for every destination, without
    policy routing."""
    with Uplinks(rate="20mbit") as net:
        chosen = json.loads(net.home.ip("-j", "route", "get", "203.0.113.5", "from", "192.168.2.20"))
        assert chosen[0]["dev"] == "up1", "the routes prefer the first uplink for both addresses"
        before = net.home.sent("up2")
        paths = transfer(tmp_path, net.home, net.server, "203.0.113.5", "--bind", "203.0.113.5")
        by_second = net.home.sent("up2") - before
    assert carriers(paths) == {(f"192.168.{n}.20", "203.0.113.5") for n in (1, 2)}, paths
    assert by_second > SIZE / 5, "bytes over the second uplink"


@pytest.mark.needs("namespaces", "ethtool")
def test_a_peer_on_the_same_host_needs_no_other_path(tmp_path):
    with TwoHosts(rate=None) as hosts:
        paths = transfer(tmp_path, hosts.a, hosts.a, "127.0.0.1")
    assert [ends(path) for path in paths] == [("127.0.0.1", "127.0.0.1")]
