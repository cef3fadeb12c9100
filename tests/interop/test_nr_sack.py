"""NR-SACK (draft-natarajan-tsvwg-sctp-nrsack) with FreeBSD's stack, which supports it."""

from interop.conftest import cases
from interop.peers import assert_all_arrived
from interop.test_wire import OURS, THEIRS, values
from support import capture

SACK, NR_SACK = "3", "16"
BLOCKS = "sctp.nr_sack_number_of_nr_gap_blocks"


@cases("usrsctp", once=True)
def test_both_sides_say_what_they_will_not_drop(pair, result, tmp_path):
    pcap = tmp_path / "nr-sack.pcapng"
    with pair.network.watched(pcap):
        ours, theirs = pair.join(options=("nrsack", "brisk"))
        pair.network.lose(1, "numgen random mod 100 < 5 counter drop")
        for peer in (ours, theirs):
            peer.send(100, 10_000, 4)
        assert_all_arrived(ours, theirs, 100, 60)
        assert_all_arrived(theirs, ours, 100, 60)
    for side in (OURS, THEIRS):
        kinds = values(capture.fields(pcap, ["sctp.chunk_type"], side))
        assert NR_SACK in kinds and SACK not in kinds, kinds
        blocks = values(capture.fields(pcap, [BLOCKS], f"({side}) && sctp.chunk_type == 16"))
        assert any(int(n, 0) > 0 for n in blocks), f"{side}: no promises: {blocks}"
    result("nr-sack")
    ours.tell("abort")
