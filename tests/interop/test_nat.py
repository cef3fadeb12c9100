"""Association setup from behind a NAT, which changes addresses and ports. The INIT lists no addresses,
because the peer sees translated ones."""

import time

import pytest

from interop.conftest import cases
from interop.network import Nat
from interop.peers import SCTP_PORT, UDP_PORT, Case, Pair, assert_all_arrived, close, ours
from interop.table import STACKS
from interop.test_paths import assert_both_confirmed
from support.program import wait_until

CONNECTS = [case for case in cases(*STACKS).args[1]
            if not case.values[0].raw and case.values[0].we_connect]


@pytest.fixture
def nat(pair):
    with Nat(pair.network) as made:
        yield made


def through(pair, nat, paths: int):
    """Connect polypath from behind the NAT to a peer with `paths` addresses."""
    theirs = pair.start("b", False, paths, ("brisk",))
    theirs.until("ready")
    words = ["connect", "0.0.0.0", str(SCTP_PORT), pair.network.address("b", 1), str(UDP_PORT),
             str(UDP_PORT), "brisk"]
    inside = pair.start("a", True, words=words, host=nat.inside)
    inside.until("up")
    theirs.until("up")
    return inside, theirs


def assert_talk(inside, theirs, count: int) -> None:
    inside.send(20, 5000, 2)
    theirs.send(20, 5000, 2)
    assert_all_arrived(inside, theirs, count)
    assert_all_arrived(theirs, inside, count)


@pytest.mark.parametrize("case", CONNECTS)
def test_through_a_nat(pair, nat, result):
    """One path; each side sees the other at the translated address."""
    inside, theirs = through(pair, nat, 1)
    assert_talk(inside, theirs, 20)
    close(inside, theirs)
    result("nat")


@pytest.mark.parametrize("case", [param for param in CONNECTS if param.values[0].stack != "pion"])
def test_a_second_path_through_a_nat(pair, nat, result):
    """The peer lists a second address. The HEARTBEAT comes from an address that the peer was not informed of,
    so it may respond or not; the association survives on the first path."""
    inside, theirs = through(pair, nat, 2)
    assert_talk(inside, theirs, 20)
    time.sleep(2)
    state = inside.paths()[pair.network.address("b", 2)]["state"]
    known = len(theirs.paths())
    assert_talk(inside, theirs, 40)
    close(inside, theirs)
    result("nat-path", "works" if state == "active" and known == 2 else "declined")


class TestBetweenOurselves:
    """Both sides are polypath: the second path is learned, confirmed, and used."""

    @pytest.fixture
    def case(self):
        return Case("polypath", False, True)

    @pytest.fixture
    def pair(self, made, tmp_path, case):
        with Pair(case, made.network("polypath"), tmp_path, ours()) as both:
            yield both

    @pytest.mark.needs("namespaces", "ethtool", "nft")
    def test_a_second_path_through_a_nat(self, pair, nat):
        inside, server = through(pair, nat, 2)
        assert_both_confirmed(inside, server)
        ports = {path["port"] for path in server.paths().values()}
        assert str(UDP_PORT) not in ports, "the NAT changes the ports"
        assert_talk(inside, server, 20)
        pair.network.lose(1)
        assert_talk(inside, server, 40)
        wait_until(lambda: server.paths()[pair.network.address("a", 1)]["state"] == "inactive", 10,
                   lambda: f"{server.paths()}")
        pair.network.restore(1)
        assert_both_confirmed(inside, server)
        close(inside, server)
