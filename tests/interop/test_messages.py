"""Setup, messages, bulk transfers and shutdown with other stacks."""

import pytest

from interop.conftest import cases
from interop.peers import assert_all_arrived, close
from interop.table import STACKS

# Around the size that fits a packet, and more than half a window.
SIZES = (1, 2, 3, 4, 5, 1000, 1424, 1425, 1452, 1453, 1500, 4096, 65_536, 262_144, 1_000_000)


@cases(*STACKS)
def test_messages_of_all_sizes_both_ways(pair, result):
    ours, theirs = pair.join()
    count = 0
    for kind, streams in (("ordered", 1), ("mixed", 64), ("unordered", 3)):
        for size in SIZES:
            many = 40 if size < 1500 else 4
            for peer in (ours, theirs):
                peer.send(many, size, streams, kind)
            count += many
    assert_all_arrived(ours, theirs, count)
    assert_all_arrived(theirs, ours, count)
    result("establishment")
    result("messages")
    closes, other = (ours, theirs) if pair.case.we_connect else (theirs, ours)
    close(closes, other)
    result("close")


@cases(*STACKS, quick=False)
@pytest.mark.parametrize("sender", ["ours", "theirs"])
def test_bulk(pair, result, sender):
    """100 MB one way, with a checksum over all of it."""
    peers = dict(zip(("ours", "theirs"), pair.join(), strict=True))
    source = peers[sender]
    sink = peers["theirs" if sender == "ours" else "ours"]
    source.send(1600, 62_500, 8)
    source.until("taken", 60)
    assert_all_arrived(source, sink, 1600, 60)
    close(source, sink)
    result(f"bulk-{sender}")


@cases(*STACKS)
@pytest.mark.parametrize("aborts", ["ours", "theirs"])
def test_abort(pair, result, aborts):
    """The other side receives the ABORT at once, with its reason."""
    ours, theirs = pair.join()
    ours.send(10, 1000)
    assert_all_arrived(ours, theirs, 10)
    (ours if aborts == "ours" else theirs).tell("abort")
    told = (theirs if aborts == "ours" else ours).ended(5)
    # The kernel's ABORT contains no text.
    words = "enough of this" if aborts == "ours" or pair.case.stack != "linux" else "aborted by the peer"
    assert told["reason"] == "lost" and words in told["words"], told
    result(f"abort-{aborts}")
