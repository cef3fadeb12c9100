"""Two paths to other stacks: heartbeats, cuts, loss, unequal MTUs, restarts."""

import time

import pytest

from interop.conftest import cases
from interop.peers import assert_all_arrived, close
from interop.table import STACKS
from support.program import wait_until


def states(peer) -> set[str]:
    return {path["state"] for path in peer.paths().values()}


def assert_both_confirmed(*peers) -> None:
    for peer in peers:
        wait_until(lambda peer=peer: len(peer.paths()) == 2 and states(peer) == {"active"}, 10,
                   lambda peer=peer: f"{peer.name}: {peer.paths()}")


@cases(quick=False)
def test_a_path_is_cut_and_restoreed(pair, result):
    """Data flows both ways when the path in use is cut, continues over the other one, and returns to the
    first one when that is restored."""
    ours, theirs = pair.join(paths=2, options=("brisk",))
    assert_both_confirmed(ours, theirs)
    wait_until(lambda: all(int(path["acked"]) > 1 for path in ours.paths().values()), 10,
               lambda: f"heartbeats are not answered: {ours.paths()}")
    result("heartbeats")
    network = pair.network
    network.shape("100mbit")
    first = {"ours": network.address("b", 1), "theirs": network.address("a", 1)}
    before = [network.received(path) for path in (1, 2)]
    for peer in (ours, theirs):
        peer.send(1500, 10_000, 4)
    wait_until(lambda: network.received(1) > before[0] + 1_000_000, 10, "no data")
    network.lose(1)
    wait_until(lambda: ours.paths()[first["ours"]]["state"] == "inactive", 15,
               lambda: f"{ours.paths()}")
    assert_all_arrived(ours, theirs, 1500, 40)
    assert_all_arrived(theirs, ours, 1500, 40)
    assert network.received(2) > before[1] + 1_000_000, "all had arrived before the cut"
    network.restore(1)
    assert_both_confirmed(ours, theirs)
    ours.send(1, 10)
    wait_until(lambda: theirs.totals()[1]["messages"] == "1501", 5, "nothing after it was restored")
    close(ours, theirs)
    result("failover")


@cases(*STACKS, quick=False)
def test_five_percent_loss(pair, result):
    """Each way, on the only path."""
    ours, theirs = pair.join(options=("brisk",))
    pair.network.lose(1, "numgen random mod 100 < 5 counter drop")
    # pion's timeouts take up to a minute.
    count = 30 if pair.case.stack == "pion" else 100
    for peer in (ours, theirs):
        peer.send(count, 10_000, 4, "mixed")
        peer.send(count, 100, 4)
    assert_all_arrived(ours, theirs, 2 * count, 60)
    assert_all_arrived(theirs, ours, 2 * count, 60)
    assert pair.network.dropped(1) > count / 10
    pair.network.restore(1)
    close(ours, theirs)
    result("loss")


@cases(quick=False)
def test_unequal_mtus(pair, result):
    """The second path has an MTU of 1280 bytes, the first one of 1500, and is cut."""
    network = pair.network
    network.narrow(2, 1280)
    if pair.guest:
        pair.guest.run("ip link set vec1 mtu 1280")
    # usrsctp needs the option, as polypath does.
    told = ("mtu=1280",) if pair.case.stack == "usrsctp" else ()
    ours, theirs = pair.join(paths=2, options=("brisk", *told), our_options=("mtu=1280",))
    assert_both_confirmed(ours, theirs)
    for number in (1, 2):
        for peer in (ours, theirs):
            peer.send(50, 10_000, 4)
        assert_all_arrived(ours, theirs, 50 * number)
        assert_all_arrived(theirs, ours, 50 * number)
        network.lose(1)
    close(ours, theirs)
    if pair.guest:
        pair.guest.run("ip link set vec1 mtu 1500")
    result("mtu")


@cases()
@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_a_restart(pair, result, who):
    """One side disappears without a shutdown and connects again from its address and port: the association
    continues at the other side (RFC 9260 5.2)."""
    network = pair.network
    peers = dict(zip(("ours", "theirs"), pair.join(), strict=True))
    goes, stays = peers[who], peers["theirs" if who == "ours" else "ours"]
    goes.send(10, 1000)
    assert_all_arrived(goes, stays, 10)
    # A delayed SACK after the restart would be answered with ABORT.
    time.sleep(0.5)
    network.lose(1)
    goes.vanish()
    network.restore(1)
    back = pair.start("a" if who == "ours" else "b", True)
    back.until("up")
    stays.until("restart", 10)
    stays.send(10, 2000, 3)
    back.send(10, 3000, 3)
    assert_all_arrived(stays, back, 10)
    wait_until(lambda: stays.totals()[1]["messages"] == "20", 5, lambda: f"{stays.totals()}")
    close(back, stays)
    result(f"restart-{who}")
