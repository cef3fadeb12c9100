"""A real path becomes narrower: a router reduces the MTU of its link to the receiver to 1280 bytes."""

import pytest

from support import program
from support.namespaces import Namespace
from support.program import make_file, sha256, wait_until

SIZE = 2_500_000


@pytest.fixture
def routed():
    """Sender, router, receiver: 10.71.0.1 - 10.71.0.2 10.72.0.2 - 10.72.0.1, and fd00:71::1 and so on."""
    with Namespace() as a, Namespace() as r, Namespace() as b:
        for number, host, rate in ((1, a, None), (2, b, "8mbit")):
            a_r = f"vr{number}"
            r.run("ip", "link", "add", a_r, "type", "veth", "peer", "name", "ve", "netns", host.name)
            for space, device, last in ((host, "ve", 1), (r, a_r, 2)):
                space.ip("addr", "add", f"10.7{number}.0.{last}/24", "dev", device)
                space.ip("addr", "add", f"fd00:7{number}::{last}/64", "dev", device, "nodad")
                space.ip("link", "set", device, "up")
                space.whole_datagrams(device)
            if rate:
                r.run("tc", "qdisc", "replace", "dev", a_r, "root", "tbf", "rate", rate, "burst", 4000,
                      "limit", 60_000)
        for host in (a, b):
            side = 1 if host is a else 2
            host.ip("route", "add", "default", "via", f"10.7{side}.0.2")
            host.ip("-6", "route", "add", "default", "via", f"fd00:7{side}::2")
        r.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        yield a, r, b


@pytest.mark.needs("namespaces", "tc", "ethtool", "nft")
@pytest.mark.parametrize("silent", [True, False], ids=["black-hole", "told"])
def test_a_transfer_survives_a_path_that_becomes_narrower(tmp_path, processes, routed, silent):
    """The router either sends no ICMP errors, or reports the MTU of its link."""
    a, r, b = routed
    sent = make_file(tmp_path / "file", SIZE)
    to, of = "10.72.0.1", "10.71.0.1"
    if silent:
        r.filter("add table ip quiet")
        r.filter("add chain ip quiet out { type filter hook output priority 0; }")
        r.filter("add rule ip quiet out icmp type destination-unreachable drop")
    options = [*program.BRISK, *program.tuning(path_mtu_discovery="true", path_max_retrans=9)]
    receiver = processes.polypath("recv", "--bind", to, "-o", tmp_path / "out", "--json", *options,
                                  inside=b.inside).said("waiting on")
    sender = processes.polypath("send", tmp_path / "file", to, "--bind", of, "--json", *options,
                                inside=a.inside)
    wait_until(lambda: a.sent("ve") > 500_000, 20, lambda: f"no data: {sender.err}")
    r.ip("link", "set", "vr2", "mtu", 1280)
    b.ip("link", "set", "ve", "mtu", 1280)
    summary = sender.wait(60).json
    path = summary["paths"][0]
    receiver.wait().json
    assert sha256(tmp_path / "out") == sent
    # Packets had 1500 bytes before. Chunks sized for these arrive as IP fragments, made by the router if the
    # sender's kernel was not informed.
    names, numbers = [line.split() for line in r.run("cat", "/proc/net/snmp").splitlines()
                      if line.startswith("Ip: ")]
    counters = dict(zip(names, numbers, strict=True))
    assert int(counters["FragFails"]) > 0, counters
    assert int(counters["FragCreates"]) > 0 or not silent, counters
    assert summary["blackout_s"] < 20
    # Without ICMP errors, the transfer may end while sizes above 1200 bytes are still being probed. The size
    # of SCTP packets is a multiple of four, and that of DTLS records is not. The message shows a record.
    assert (1200 if silent else 1280) - 3 <= path["mtu"] <= 1280, path


@pytest.mark.needs("namespaces", "tc", "ethtool", "nft")
def test_what_was_cut_for_larger_packets_goes_as_ipv6_fragments(tmp_path, processes, routed):
    """Routers do not fragment IPv6: the sender's host fragments to the minimum MTU of IPv6 links."""
    a, r, b = routed
    sent = make_file(tmp_path / "file", SIZE)
    options = [*program.BRISK, *program.tuning(path_mtu_discovery="true", path_max_retrans=9)]
    receiver = processes.polypath("recv", "--bind", "fd00:72::1", "-o", tmp_path / "out", "--json",
                                  *options, inside=b.inside).said("waiting on")
    sender = processes.polypath("send", tmp_path / "file", "fd00:72::1", "--bind", "fd00:71::1", "--json",
                                *options, inside=a.inside)
    wait_until(lambda: a.sent("ve") > 500_000, 20, lambda: f"no data: {sender.err}")
    r.ip("link", "set", "vr2", "mtu", 1280)
    b.ip("link", "set", "ve", "mtu", 1280)
    path = sender.wait(60).json["paths"][0]
    receiver.wait().json
    assert sha256(tmp_path / "out") == sent
    counters = dict(line.split() for line in a.run("cat", "/proc/net/snmp6").splitlines())
    assert int(counters["Ip6FragCreates"]) > 0, counters
    # The size of SCTP packets is a multiple of four bytes, and that of DTLS records is not.
    assert 1280 - 3 <= path["mtu"] <= 1280, path
