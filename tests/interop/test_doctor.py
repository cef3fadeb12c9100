"""`polypath doctor` reports the cause of problems."""

import sys

import pytest

from interop.network import Nat
from interop.peers import UDP_PORT, Case, Pair

pytestmark = pytest.mark.needs("namespaces", "ethtool", "nft")
HERE, THERE = ("10.81.0.1", "10.82.0.1"), ("10.81.0.2", "10.82.0.2")


@pytest.fixture
def network(made):
    network = made.network("polypath")
    yield network
    network.calm()


@pytest.fixture
def receiver(network, processes, tmp_path):
    """`polypath recv` with both addresses."""
    return processes.polypath("recv", "--bind", ",".join(THERE), "-o", tmp_path,
                              inside=network.b.inside).said("waiting on")


@pytest.fixture
def doctor(network, processes):
    """Run doctor on host `a`; return its output and exit code."""
    def run(*words: str, host=None) -> tuple[str, int]:
        inside = (host or network.a).inside
        ended = processes.polypath("doctor", "--timeout", "3", *words, inside=inside).wait()
        return ended.out + ended.err, ended.code
    return run


def test_all_is_well(receiver, doctor):
    said, code = doctor(THERE[0], "--via", THERE[1])
    assert code == 0, said
    for here, there in zip(HERE, THERE, strict=True):
        assert f"{there}: answers" in said and ", encrypted, fingerprint " in said, said
        assert f"path from {here} to {there}: works" in said, said
    assert said.count("packets of 1500 bytes pass") == 2


def test_one_side_encrypts(receiver, network, processes, doctor, tmp_path):
    said, code = doctor(THERE[0], "--plain")
    assert code == 1 and "accepts only encrypted connections" in said, said
    processes.polypath("recv", "--plain", "--bind", THERE[0], "-u", "9900", "-o", tmp_path,
                       inside=network.b.inside).said("in clear")
    said, code = doctor(f"{THERE[0]}:9900")
    assert code == 1 and "does not encrypt: pass --plain" in said, said
    said, code = doctor(f"{THERE[0]}:9900", "--plain")
    assert code == 0 and ", in clear" in said, said


def test_nobody_listens(doctor):
    said, code = doctor(THERE[0])
    assert code == 1 and "ICMP" in said and "nothing listens on that UDP port" in said


def test_a_firewall(receiver, network, doctor):
    network.lose(1)
    said, code = doctor(THERE[0])
    assert code == 1 and f"no answer and no error: a firewall drops UDP port {UDP_PORT}" in said


def test_another_sctp_port(receiver, doctor):
    said, code = doctor(THERE[0], "--port", "7")
    assert code == 1 and "ABORT and no cause: nothing listens on SCTP port 7" in said


def test_the_second_path_is_dead(receiver, network, doctor):
    """The address was not given on the command line, but the peer lists it."""
    network.lose(2)
    said, code = doctor(THERE[0], "--bind", ",".join(HERE))
    assert code == 1 and f"to {THERE[0]}: works" in said, said
    assert f"to {THERE[1]}: not confirmed" in said and "no reply arrived" in said, said


def test_the_second_path_is_refused_by_the_network(receiver, network, doctor):
    """The network sends ICMP errors."""
    network.b.filter("add table ip shut")
    try:
        network.b.filter("add chain ip shut in { type filter hook input priority 0; }")
        network.b.filter("add rule ip shut in iifname vb2 udp dport 9899 reject with icmp port-unreachable")
        said, code = doctor(THERE[0], "--bind", ",".join(HERE))
    finally:
        network.b.filter("delete table ip shut")
    assert code == 1 and f"to {THERE[1]}: not confirmed" in said, said
    assert "the network replied with ICMP errors" in said, said


def test_this_host_lets_nothing_out(receiver, network, doctor):
    """The second path is blocked, then both."""
    network.a.filter("add table ip shut")
    try:
        network.a.filter("add chain ip shut out { type filter hook output priority 0; }")
        network.a.filter("add rule ip shut out oifname va2 drop")
        said, code = doctor(THERE[0], "--bind", ",".join(HERE))
        assert code == 1 and f"to {THERE[1]}: not confirmed" in said, said
        assert "this host cannot send the packets" in said, said
        network.a.filter("add rule ip shut out oifname va1 drop")
        said, code = doctor(THERE[0])
    finally:
        network.a.filter("delete table ip shut")
    assert code == 1 and "this host cannot send the packets" in said, said


# Answers each INIT with an ABORT: out of resource (RFC 9260 3.3.10.4).
WITHOUT_RESOURCES = """
import socket, struct
def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    return ~crc & 0xffffffff
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.81.0.2", 9899))
print("ready", flush=True)
while True:
    init, peer = s.recvfrom(2048)
    ports, tag = init[2:4] + init[:2], init[16:20]
    chunk = struct.pack("!BBHHH", 6, 0, 8, 4, 4)
    crc = crc32c(ports + tag + bytes(4) + chunk)
    s.sendto(ports + tag + struct.pack("<I", crc) + chunk, peer)
"""


def test_the_peer_refuses_and_says_why(network, processes, doctor):
    processes.start(sys.executable, "-c", WITHOUT_RESOURCES, inside=network.b.inside).said("ready")
    said, code = doctor(THERE[0], "--plain")
    assert code == 1 and "an SCTP stack answers with ABORT: " in said and "resource" in said, said


def test_an_mtu_black_hole(receiver, network, doctor):
    network.lose(1, "meta length > 1350 drop")
    said, code = doctor(THERE[0])
    assert code == 1 and "packets of 1280 bytes pass, larger ones vanish: an MTU black hole" in said, said


def test_a_nat_at_the_peers_end_changes_its_port(network, processes, doctor, tmp_path):
    """Without encryption: DTLS only accepts replies from the address that its ClientHello was sent to."""
    processes.polypath("recv", "--plain", "--bind", THERE[0], "-o", tmp_path,
                       inside=network.b.inside).said("waiting on")
    network.lose(1, f"udp sport {UDP_PORT} udp sport set 7777")
    network.b.filter(f"add rule netdev vb1 in udp dport 7777 udp dport set {UDP_PORT}")
    said, code = doctor(THERE[0], "--plain")
    assert code == 0 and "its replies come from UDP port 7777: a NAT" in said, said


@pytest.mark.needs("gcc", "usrsctp.h")
def test_a_peer_that_does_not_know_this_hosts_second_address(made, doctor, tmp_path):
    network = made.network("usrsctp")
    with Pair(Case("usrsctp", False, True), network, tmp_path, made.program("usrsctp")) as pair, \
            Nat(network) as nat:
        pair.start("b", False, 2).until("ready")
        said, code = doctor(THERE[0], "--bind", "0.0.0.0", "--port", "5000", "--plain", host=nat.inside)
    assert code == 1 and "the peer replied with ABORT: it does not know the address" in said, said
