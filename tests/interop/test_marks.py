"""What the network does to packets by itself: it swallows large ones, and marks them (RFC 8899, RFC 3168)."""

from interop.conftest import cases
from interop.peers import assert_all_arrived, close
from interop.table import STACKS
from support import capture
from support.program import wait_until

DATA, ECNE, CWR = 0, 12, 13
OURS, THEIRS = "ip.src == 10.81.0.1", "ip.src == 10.81.0.2"


@cases(*STACKS, quick=False)
def test_the_path_mtu_is_found(pair, result):
    """Packets of more than 1280 bytes vanish. PAD chunks are the peer's to skip."""
    pair.network.lose(1, "meta length > 1280 drop")
    ours, theirs = pair.join(options=(), our_options=("pmtud", "brisk"))
    address = pair.network.address("b", 1)
    wait_until(lambda: 1270 <= int(ours.paths()[address]["mtu"]) <= 1280, 40,
               lambda: f"{ours.paths()}")
    ours.send(50, 10_000, 4)
    assert_all_arrived(ours, theirs, 50)
    result("pmtud")
    # What the peer sends is its own matter.
    ours.tell("abort")


@cases(quick=False)
def test_marked_packets(pair, result, tmp_path):
    """One packet in forty is marked instead of lost, both ways."""
    pcap = tmp_path / "marks.pcapng"
    pair.network.lose(1, "ip ecn 2 numgen inc mod 40 == 0 ip ecn set 3")
    with pair.network.watched(pcap):
        ours, theirs = pair.join(our_options=("ecn",))
        address = pair.network.address("b", 1)
        for peer in (ours, theirs):
            peer.send(400, 10_000, 4)
        assert_all_arrived(ours, theirs, 400)
        assert_all_arrived(theirs, ours, 400)
        path = ours.paths()[address]
        assert int(path["notified"]) > 0, path
        result("ecn-ours")
        seen = {side: set(map(int, capture.assert_sound(pcap, only=side, at_least=40)))
                for side in (OURS, THEIRS)}
        assert {ECNE, CWR} <= seen[OURS] | seen[THEIRS]
        assert CWR in seen[OURS] and ECNE in seen[THEIRS]
        assert int(path["marked"]) > 0, path
        assert ECNE in seen[OURS] and CWR in seen[THEIRS], seen
        result("ecn-theirs")
        close(ours, theirs)
