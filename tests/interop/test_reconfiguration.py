"""Either side resets and adds streams (RFC 6525)."""

from interop.conftest import cases
from interop.peers import assert_all_arrived, close
from support import capture

RE_CONFIG = 130


@cases(quick=False)
def test_reset_and_add(pair, result, tmp_path):
    """After each request all streams carry messages, both ways, and they arrive in order."""
    pcap = tmp_path / "reconfig.pcapng"
    with pair.network.watched(pcap):
        ours, theirs = pair.join(1, ("reconfig",))
        sent = {ours: 0, theirs: 0}
        streams = {ours: 64, theirs: 64}

        def talk(*speakers) -> None:
            for peer in speakers or (ours, theirs):
                peer.send(150, 1000, streams[peer], "mixed")
                sent[peer] += 150
            assert_all_arrived(ours, theirs, sent[ours])
            assert_all_arrived(theirs, ours, sent[theirs])

        def performed(news: str, count: int) -> None:
            for peer in (ours, theirs):
                told = peer.until(news, 15, count)
                assert told["result"] == "performed", (peer.name, peer.lines())

        talk()
        for asker, name in ((ours, "ours"), (theirs, "theirs")):
            before = 0 if asker is ours else 1
            for count, what in enumerate(("outgoing", "incoming"), 1):
                asker.tell(f"reset {what}")
                performed("reset", 2 * before + count)
                talk()
            asker.tell("add 6 0")
            streams[asker] += 6
            for peer, other in ((ours, theirs), (theirs, ours)):
                told = peer.until("streams", 15, before + 1)
                assert told == {"outgoing": str(streams[peer]), "incoming": str(streams[other])}
            asker.tell("reset association")
            performed("reset-association", before + 1)
            if asker is theirs and pair.case.stack == "usrsctp":
                # usrsctp sends only a few messages after that: docs/interoperability.md.
                talk(ours)
                ours.tell("abort")
            else:
                talk()
            result(f"reset-{name}")
        if pair.case.stack != "usrsctp":
            close(*((ours, theirs) if pair.case.we_connect else (theirs, ours)))
    seen = capture.assert_sound(pcap, only="ip.src == 10.81.0.1", at_least=40)
    assert RE_CONFIG in set(map(int, seen))
