"""Extensions that another stack has, too: partial reliability, user message interleaving."""

import pytest

from interop.conftest import cases
from interop.peers import assert_all_arrived, close
from interop.table import STACKS
from support import capture


@cases(*STACKS, quick=False)
@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_messages_are_given_up(pair, who):
    """A fifth of the packets of one side is lost, and what was in them is not sent again; what is
    reliable arrives, in order."""
    peers = dict(zip(("ours", "theirs"), pair.join(options=("brisk", "partial")), strict=True))
    sender, receiver = peers[who], peers["theirs" if who == "ours" else "ours"]
    pair.network.lose(1, "numgen random mod 100 < 20 counter drop")
    for _ in range(5):
        sender.send(20, 1000, 4, "partial")
        sender.send(4, 3000, 4)
    assert_all_arrived(sender, receiver, 20, 60)
    pair.network.mend(1)
    sender.send(8, 2000, 4)
    assert_all_arrived(sender, receiver, 28, 30)
    received, given_up = receiver.partial()[0], sender.partial()[1]
    # What is given up may have arrived: its acknowledgement may have been lost.
    assert 0 < received < 100, received
    if sender.name in ("polypath", "usrsctp"):
        # The others do not tell.
        assert given_up >= 100 - received, (given_up, received)
    close(sender, receiver)


@cases("usrsctp", quick=False)
def test_messages_are_interleaved(pair, tmp_path):
    pcap = tmp_path / "interleaved.pcapng"
    with pair.network.watched(pcap):
        ours, theirs = pair.join(options=("brisk", "interleave"))
        for peer in (ours, theirs):
            for size in (1, 1448, 1449, 50_000):
                peer.send(12, size, 4, "mixed")
        assert_all_arrived(ours, theirs, 48)
        assert_all_arrived(theirs, ours, 48)
        close(ours, theirs)
    kinds = set(map(int, capture.assert_sound(pcap, at_least=40)))
    assert 64 in kinds and 0 not in kinds, kinds
