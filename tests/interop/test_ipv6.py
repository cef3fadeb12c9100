"""Transfers over IPv6."""

from interop.conftest import cases
from interop.peers import assert_all_arrived, close
from interop.table import STACKS
from interop.test_paths import assert_both_confirmed
from support import capture


@cases(*STACKS, once=True)
def test_over_ipv6(pair, result, tmp_path):
    """Messages of all kinds both ways; if there are two paths, the one in use is cut."""
    pair.ipv6 = True
    paths = 1 if pair.case.stack == "pion" else 2
    pcap = tmp_path / "ipv6.pcapng"
    with pair.network.watched(pcap):
        ours, theirs = pair.join(paths, ("brisk",))
        if paths == 2:
            assert_both_confirmed(ours, theirs)
        count = 0
        for cut in (False, True)[:paths]:
            if cut:
                pair.network.lose(1)
            for size in (1, 1424, 1453, 65_536):
                for peer in (ours, theirs):
                    peer.send(20, size, 5, "mixed")
                count += 20
            assert_all_arrived(ours, theirs, count)
            assert_all_arrived(theirs, ours, count)
        close(*((ours, theirs) if pair.case.we_connect else (theirs, ours)))
    # Leave neighbor discovery out.
    capture.assert_sound(pcap, only="(ipv6.src == fd00:81::1 || ipv6.src == fd00:82::1) && !icmpv6",
                         at_least=40)
    assert not capture.fields(pcap, ["ip.src"], "ip")
    result("ipv6")
