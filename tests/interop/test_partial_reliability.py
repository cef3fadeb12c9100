"""Messages that either side abandons (RFC 3758, RFC 7496)."""

import time

import pytest

from interop.conftest import cases
from interop.peers import assert_all_arrived, close
from interop.table import STACKS
from support import capture

DATA, FORWARD_TSN = "0", "192"


@cases(*STACKS, once=True)
@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_messages_are_given_up(pair, result, tmp_path, who):
    """Messages are abandoned by lifetime while the path is cut, and by number of retransmissions while it
    loses a third of the packets. Later messages on the same streams arrive, in order."""
    network = pair.network
    pcap = tmp_path / "given-up.pcapng"
    with network.watched(pcap):
        peers = dict(zip(("ours", "theirs"), pair.join(1, ("brisk",), ("pr",)), strict=True))
        speaks, hears = peers[who], peers["theirs" if who == "ours" else "ours"]
        speaks.send(20, 1000, 4)
        assert_all_arrived(speaks, hears, 20)
        network.lose(1)
        speaks.send(12, 3000, 4, "mixed", "lifetime=100")
        # pion abandons messages at the second retransmission, and its first timeout may exceed two seconds.
        time.sleep(4 if pair.case.stack == "pion" else 1.5)
        network.restore(1)
        speaks.send(20, 1000, 4)
        assert_all_arrived(speaks, hears, 40, 40)
        # Other stacks still send messages that have never been sent when their lifetime expires.
        gone = hears.limited()
        assert gone == 0 if who == "ours" else gone < 12
        network.lose(1, "meta length > 500 numgen random mod 3 == 0 counter drop")
        for _ in range(4):
            speaks.send(30, 1000, 4, "mixed", "retransmissions=0")
            time.sleep(0.1)
        network.restore(1)
        speaks.send(20, 1000, 4)
        assert_all_arrived(speaks, hears, 60, 40)
        assert gone < hears.limited() < gone + 120
        close(*((peers["ours"], peers["theirs"]) if pair.case.we_connect
                else (peers["theirs"], peers["ours"])))
    source = network.address("a" if who == "ours" else "b", 1)
    seen = capture.assert_sound(pcap, only=f"ip.src == {source}", at_least=20)
    assert FORWARD_TSN in seen, set(seen)
    result(f"partial-{who}")
