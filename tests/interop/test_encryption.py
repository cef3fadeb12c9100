"""DTLS below SCTP (RFC 8261) with a WebRTC peer, which has DTLS 1.2."""

import pytest

from interop.conftest import cases
from interop.peers import Pair, Peer, assert_all_arrived, close
from support import capture

DATA, INIT, INIT_ACK, SACK, COOKIE_ECHO = 0, 1, 2, 3, 10
WRONG = "0123-4567-89ab-cdef" * 4


def introduced(pair: Pair, wrong: str = "", more: tuple[str, ...] = ()) -> tuple[Peer, Peer]:
    """Start both peers, the other stack's with `more` options, and exchange their fingerprints. The side
    named by `wrong` ("ours" or "theirs") gets a wrong one."""
    sides = (("b", "theirs"), ("a", "ours")) if pair.case.we_connect else (("a", "ours"), ("b", "theirs"))
    options = {"ours": ("dtls",), "theirs": ("dtls", *more)}
    peers = {name: pair.start(side, connects, options=options[name])
             for connects, (side, name) in enumerate(sides)}
    has = {name: peer.until("fingerprint")["sha256"] for name, peer in peers.items()}
    for connects, (_, name) in enumerate(sides):
        other = "theirs" if name == "ours" else "ours"
        peers[name].tell(f"expect {WRONG if name == wrong else has[other]}")
        if not connects:
            peers[name].until("ready")
    return peers["ours"], peers["theirs"]


@cases("pion")
def test_encrypted(pair, result, tmp_path):
    """Messages both ways and 15 MB each way; everything is in DTLS 1.2 records, nothing in clear."""
    pcap = tmp_path / "encrypted.pcapng"
    with pair.network.watched(pcap):
        ours, theirs = introduced(pair)
        for peer in (ours, theirs):
            peer.until("up")
        for peer in (ours, theirs):
            peer.send(40, 3000, 8, "mixed")
        assert_all_arrived(ours, theirs, 40)
        assert_all_arrived(theirs, ours, 40)
    for source, sink in ((ours, theirs), (theirs, ours)):
        source.send(240, 62_500, 8)
        source.until("taken", 60)
        assert_all_arrived(source, sink, 280, 60)
    close(*((ours, theirs) if pair.case.we_connect else (theirs, ours)))
    records = capture.fields(pcap, ["dtls.record.version", "dtls.record.content_type"],
                             only="dtls", protocol="dtls")
    assert len(records) > 40
    # Only the first ClientHello and the HelloVerifyRequest may have an older version.
    versions = [row[0].split(",") for row in records]
    assert all(set(row) <= {"0xfefd", "0xfeff"} for row in versions), versions
    assert sum("0xfeff" in row for row in versions) <= 4
    assert sum("23" in row[1].split(",") for row in records) > 30
    # ECDHE_ECDSA with AES-128-GCM, the only suite that both sides have.
    chosen = capture.fields(pcap, ["dtls.handshake.ciphersuite"], only="dtls.handshake.type == 2",
                            protocol="dtls")
    assert chosen == [["0xc02b"]]
    result("dtls")


@cases("pion")
def test_checksums_are_left_out(pair, result, tmp_path):
    """RFC 9653: both sides offer it, and packets after the handshake have no checksum. tshark uses the key
    log."""
    pcap, secrets = tmp_path / "zero.pcapng", tmp_path / "secrets"
    with pair.network.watched(pcap):
        ours, theirs = introduced(pair, more=(f"keylog={secrets}", "zero-checksum"))
        for peer in (ours, theirs):
            peer.until("up")
        for sender, receiver in ((ours, theirs), (theirs, ours)):
            sender.send(40, 3000, 8, "mixed")
            assert_all_arrived(sender, receiver, 40)
    close(*((ours, theirs) if pair.case.we_connect else (theirs, ours)))
    for source in ("10.81.0.1", "10.81.0.2"):
        packets = capture.decrypted(pcap, secrets, f"ip.src == {source}")
        # By type of the first chunk; INIT and COOKIE ECHO always have a checksum (RFC 9653 5.2).
        sums = [(packet[12], packet[8:12] != bytes(4)) for packet in packets]
        assert all(summed for chunk, summed in sums if chunk in {INIT, COOKIE_ECHO}), sums
        transfer = [summed for chunk, summed in sums if chunk in {DATA, SACK}]
        assert len(transfer) > 40 and not any(transfer), sums
        assert {chunk for chunk, _ in sums} & {INIT, INIT_ACK}, sums
    result("zero-checksum")


@cases("pion")
@pytest.mark.parametrize("wrong", ["ours", "theirs"])
def test_another_fingerprint_is_refused(pair, wrong):
    """The side that expects another fingerprint refuses; the other side is informed, and no association is
    set up."""
    ours, theirs = introduced(pair, wrong)
    if pair.case.we_connect:
        words = ours.ended()["words"]
        assert ("another one than expected" if wrong == "ours" else "does not trust") in words, words
    told = theirs.ended()
    if wrong == "theirs":
        assert "another fingerprint than expected" in told["words"], told
    assert not ours.saw("up") and not theirs.saw("up")
