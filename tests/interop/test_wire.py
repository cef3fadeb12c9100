"""Polypath's packets as tshark decodes them, and extensions that only one side offers."""

from interop.conftest import cases
from interop.peers import assert_all_arrived, close
from interop.table import STACKS
from interop.test_paths import assert_both_confirmed
from support import capture

OURS = "ip.src == 10.81.0.1 || ip.src == 10.82.0.1"
THEIRS = "ip.src == 10.81.0.2 || ip.src == 10.82.0.2"

# RFC 9260 3.2, except ERROR, which is checked below.
BOTH = {"DATA": 0, "SACK": 3, "HEARTBEAT": 4, "ABORT": 6}
# The accepting side confirms the path to an address that the INIT lists. The side that opens also closes.
OPENS = {"INIT": 1, "HEARTBEAT ACK": 5, "SHUTDOWN": 7, "COOKIE ECHO": 10, "SHUTDOWN COMPLETE": 14}
ACCEPTS = {"INIT ACK": 2, "SHUTDOWN ACK": 8, "COOKIE ACK": 11}
# Polypath's extensions (docs/architecture.md): a chunk, and parameters that offer timestamps, the
# retransmission flag and counts of packets.
TIMESTAMP = 190
OFFERS = {"shutdown": {"0xbe01", "0xbe03"}, "abort": {"0xbe02", "0xbe03"}}
SAMPLING = {"shutdown": "timestamps", "abort": "retransmission-flag"}
UNRECOGNIZED = "0x0008"
# IPv4 and IPv6 addresses, cookie, unrecognized, preservative, ECN, supported address types.
KNOWN = {"0x0005", "0x0006", "0x0007", UNRECOGNIZED, "0x0009", "0x8000", "0x000c"}


def values(rows: list[list[str]]) -> set[str]:
    return {value for row in rows for value in row[0].split(",") if value}


@cases(*STACKS, quick=False)
def test_the_wire(pair, result, tmp_path):
    """Two associations, one closed and one aborted, over two paths. Polypath offers extensions that the peer
    does not know, and the peer offers some that polypath does not know."""
    pcap = tmp_path / "wire.pcapng"
    multihomed = pair.case.stack != "pion"
    with pair.network.watched(pcap):
        for end in ("shutdown", "abort"):
            ours, theirs = pair.join(2 if multihomed else 1, ("brisk",),
                                     (f"offer={SAMPLING[end]}", "ack=delayed-cmt"))
            if multihomed:
                assert_both_confirmed(ours, theirs)
            for peer in (ours, theirs):
                peer.send(30, 3000, 3, "mixed")
            assert_all_arrived(ours, theirs, 30)
            assert_all_arrived(theirs, ours, 30)
            if end == "shutdown":
                close(*((ours, theirs) if pair.case.we_connect else (theirs, ours)))
            else:
                ours.tell("abort")
            ours.ended()
            theirs.ended()
    kinds = set(map(int, capture.assert_sound(pcap, only=OURS, at_least=40)))
    expected = set((BOTH | (OPENS if pair.case.we_connect else ACCEPTS)).values())
    if not multihomed:
        expected -= {4, 5}
    assert not expected - kinds, f"not seen: {expected - kinds}"
    result("tshark")

    def parameters(side: str, kind: int) -> set[str]:
        return values(capture.fields(pcap, ["sctp.parameter_type"],
                                     f"({side}) && sctp.chunk_type == {kind}"))

    first, second = (1, 2) if pair.case.we_connect else (2, 1)
    ours_offered, theirs_offered = parameters(OURS, first), parameters(THEIRS, second)
    # Polypath's INIT ACK contains only extensions that both sides offer.
    alone = OFFERS["shutdown"] | OFFERS["abort"]
    assert ours_offered & alone == (alone if pair.case.we_connect else set())
    assert not theirs_offered & alone
    assert TIMESTAMP not in kinds
    # No flags are set that only another polypath knows.
    rows = capture.fields(pcap, ["sctp.chunk_type", "sctp.chunk_flags"], OURS)
    flags = {(int(kind), int(bits, 16)) for row in rows
             for kind, bits in zip(*(cell.split(",") for cell in row), strict=True)}
    assert all(bits == 0 for kind, bits in flags if kind == 3), flags
    assert all(bits < 0x10 for kind, bits in flags if kind == 0), flags
    result("ours-offered", "declined")
    unknown = theirs_offered - KNOWN
    if pair.case.we_connect and pair.case.stack == "linux":
        # The kernel's INIT ACK offers no more than the INIT did.
        assert not unknown
        result("theirs-offered", "not offered by the peer")
        return
    assert unknown, theirs_offered
    # RFC 9260 3.2.1: the second bit of the type requests a report, which is sent with the COOKIE ECHO or in
    # the INIT ACK.
    reports = any(int(kind, 16) & 0x4000 for kind in unknown)
    if pair.case.we_connect:
        reported = capture.fields(pcap, ["sctp.chunk_type", "sctp.cause_code"],
                                  f"({OURS}) && sctp.chunk_type == 10")
        expected = ["10,9", "0x0008"] if reports else ["10", ""]
        assert all(row == expected for row in reported), reported
    else:
        assert (UNRECOGNIZED in ours_offered) == reports
    result("theirs-offered", "declined")
