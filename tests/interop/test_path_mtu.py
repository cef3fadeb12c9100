"""A path that swallows large packets (RFC 8899): PAD chunks are the peer's to skip."""

from interop.conftest import cases
from interop.peers import assert_all_arrived
from interop.table import STACKS
from support import capture
from support.program import wait_until

PAD = "132"


@cases(*STACKS, quick=False)
def test_the_path_mtu_is_found(pair, result, tmp_path):
    """Packets of more than 1280 bytes vanish, without a word. pion drops packets with chunks that it does not
    know, so that no probe is answered: what every path carries is what is sent."""
    pcap = tmp_path / "probes.pcapng"
    pair.network.lose(1, "meta length > 1280 drop")
    with pair.network.watched(pcap):
        ours, theirs = pair.join(options=(), our_options=("pmtud", "brisk"))
        address = pair.network.address("b", 1)
        sizes = (576, 1200) if pair.case.stack == "pion" else (1270, 1280)
        wait_until(lambda: sizes[0] <= int(ours.paths()[address]["mtu"]) <= sizes[1], 40,
                   lambda: f"{ours.paths()}")
        ours.send(50, 10_000, 4)
        assert_all_arrived(ours, theirs, 50)
    assert PAD in capture.assert_sound(pcap, only="ip.src == 10.81.0.1", at_least=40)
    result("pmtud", "declined" if pair.case.stack == "pion" else "works")
    # What the peer sends is its own matter.
    ours.tell("abort")
