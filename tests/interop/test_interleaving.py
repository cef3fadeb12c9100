"""User message interleaving (RFC 8260) with stacks that support it."""

from interop.conftest import cases
from interop.peers import assert_all_arrived, close
from interop.table import STACKS
from support import capture
from support.program import wait_until

DATA, I_DATA = 0, 64


def exchanged(pair, tmp_path, *sizes: int) -> set[int]:
    """Send messages of these sizes on four streams, both ways; return the chunk types on the wire."""
    pcap = tmp_path / "interleaved.pcapng"
    with pair.network.watched(pcap):
        ours, theirs = pair.join(options=("brisk", "interleave"))
        for peer in (ours, theirs):
            for size in sizes:
                peer.send(12, size, 4, "mixed")
        assert_all_arrived(ours, theirs, 12 * len(sizes))
        assert_all_arrived(theirs, ours, 12 * len(sizes))
        close(ours, theirs)
        # The capture may lag behind.
        wait_until(lambda: pcap.stat().st_size > 2 * 12 * sum(sizes), 15, "no capture")
    capture.assert_sound(pcap, only="ip.src == 10.81.0.1", at_least=20)
    rows = capture.fields(pcap, ["sctp.chunk_type"], "sctp")
    return {int(kind) for row in rows for kind in row[0].split(",")}


@cases(*STACKS, once=True)
def test_messages_of_one_chunk_travel_in_i_data(pair, result, tmp_path):
    kinds = exchanged(pair, tmp_path, 1, 500, 1400)
    assert (DATA in kinds) != (I_DATA in kinds), kinds
    assert (pair.case.stack == "pion") == (DATA in kinds)
    result("interleaving", "works" if I_DATA in kinds else "declined")


@cases("usrsctp", once=True)
def test_fragments_are_interleaved(pair, result, tmp_path):
    kinds = exchanged(pair, tmp_path, 1, 1448, 1449, 50_000)
    assert I_DATA in kinds and DATA not in kinds, kinds
    result("fragments")


@cases("linux", once=True)
def test_linux_counts_fragments_from_the_second_one_on(pair, result, tmp_path):
    """RFC 8260 2.1: fragments are numbered from 0, and the first one's chunk has no field for its number, 0.
    Linux numbers the second fragment 0, and expects that."""
    pcap = tmp_path / "fragments.pcapng"
    with pair.network.watched(pcap):
        ours, theirs = pair.join(options=("brisk", "interleave"))
        theirs.send(1, 5000, 1)
        assert "contradict each other" in ours.ended()["words"]
        assert theirs.ended()["words"] == "fragments of a message contradict each other"
        wait_until(lambda: pcap.stat().st_size > 3_000, 15, "no capture")
    rows = capture.fields(pcap, ["sctp.data_b_bit", "sctp.data_fsn"],
                          "ip.src == 10.81.0.2 && sctp.chunk_type == 64")
    assert ["0", "0"] in rows, rows
    result("fragments", "not by the RFC")
