"""ECN (RFC 4960 Appendix A, RFC 3168), and requested SACKs (RFC 7053)."""

import time

import pytest

from interop.conftest import cases
from interop.peers import assert_all_arrived, close
from interop.table import STACKS
from support import capture

SACK, ECNE, CWR = "3", "12", "13"
OURS, THEIRS = "ip.src == 10.81.0.1", "ip.src == 10.81.0.2"


@cases(once=True)
def test_marked_packets(pair, result, tmp_path):
    """One packet in forty is marked. usrsctp sees no marks over UDP, and does not recognize an ECNE of the
    length that RFC 4960 specifies; all data arrives in any case."""
    pcap = tmp_path / "marks.pcapng"
    pair.network.lose(1, "ip ecn 2 numgen inc mod 40 == 0 counter ip ecn set 3")
    with pair.network.watched(pcap):
        ours, theirs = pair.join(our_options=("ecn",))
        marks = []
        for speaks, hears in ((ours, theirs), (theirs, ours)):
            speaks.send(200, 10_000, 4)
            assert_all_arrived(speaks, hears, 200)
            marks.append(pair.network.dropped(1))
        path = ours.paths()[pair.network.address("b", 1)]
        close(ours, theirs)
    seen = {side: set(capture.assert_sound(pcap, only=side, at_least=40)) for side in (OURS, THEIRS)}
    assert marks[0] > 10
    echoed = int(path["notified"]) > 0
    assert (ECNE in seen[THEIRS]) == (CWR in seen[OURS]) == echoed, (seen, path)
    result("ecn-ours", "works" if echoed else "declined")
    marked = int(path["marked"]) > 0
    assert (ECNE in seen[OURS]) == marked == (marks[1] - marks[0] > 0), (seen, path, marks)
    result("ecn-theirs", "works" if CWR in seen[THEIRS] else "declined")


@cases(*STACKS, once=True)
@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_a_sack_that_is_asked_for(pair, result, tmp_path, who):
    """A single message would otherwise be acknowledged 200 ms later."""
    if pair.case.stack == "pion" and who == "theirs":
        return
    pcap = tmp_path / "prompt.pcapng"
    with pair.network.watched(pcap):
        peers = dict(zip(("ours", "theirs"), pair.join(), strict=True))
        speaks, hears = peers[who], peers["theirs" if who == "ours" else "ours"]
        speaks.send(5, 1000)
        assert_all_arrived(speaks, hears, 5)
        time.sleep(0.5)
        speaks.send(1, 1000, more="prompt")
        assert_all_arrived(speaks, hears, 6)
        time.sleep(0.3)
        close(speaks, hears)
    asks, answers = (OURS, THEIRS) if who == "ours" else (THEIRS, OURS)
    (asked,) = capture.fields(pcap, ["frame.time_relative", "sctp.data_tsn_raw"],
                              f"{asks} && sctp.data_i_bit == 1")[-1:]
    (answered, *_) = capture.fields(
        pcap, ["frame.time_relative"], f"{answers} && sctp.sack_cumulative_tsn_ack_raw == {asked[1]}")
    assert float(answered[0]) - float(asked[0]) < 0.1
    result(f"prompt-{who}")
