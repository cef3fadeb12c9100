"""A path that drops large packets (RFC 8899): the peer must skip PAD chunks."""

from interop.conftest import cases
from interop.peers import assert_all_arrived
from interop.table import STACKS
from support import capture
from support.program import wait_until

PAD = "132"


@cases(*STACKS, quick=False)
def test_the_path_mtu_is_found(pair, result, tmp_path):
    """Packets of more than 1280 bytes are dropped silently. pion drops packets with unknown chunks, so that
    no probe is acknowledged and the packet size falls to one that every path supports."""
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
    # The peer's own path MTU is not tested.
    ours.tell("abort")
