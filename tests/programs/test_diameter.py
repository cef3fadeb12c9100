"""freeDiameter: two peers that listen on two SCTP ports each, connect to each other, and watch over each other."""

import pytest

from programs import table
from programs.diameter import configured, identity, opened
from support.preload import cut, run
from support.program import wait_until

pytestmark = pytest.mark.needs("namespaces", "nft", "freeDiameterd", "openssl")
DUMPS = 'LoadExtension = "/usr/lib/freeDiameter/dbg_msg_dumps.fdx" : "0x0080";'


@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
def test_peers_exchange_capabilities_and_watchdogs(hosts, processes, tmp_path, is_cut):
    """Both are bound to the wildcard address, so both are multihomed."""
    peers = {}
    for name, other, number in (("one", "other", 2), ("other", "one", 1)):
        path = configured(tmp_path, name, other, f"10.81.0.{number}", DUMPS)
        host = hosts.a if name == "one" else hosts.b
        peers[name] = processes.start(*run("--doctor"), "freeDiameterd", "-c", path, inside=host.inside)
    for name, other in (("one", "other"), ("other", "one")):
        peers[name].said(opened(other), 60)
    if is_cut:
        cut(hosts)

    def watchdogs() -> list[int]:
        return [peer.out.count("Device-Watchdog-Answer") for peer in peers.values()]

    before = watchdogs()
    wait_until(lambda: all(now >= then + 2 for now, then in zip(watchdogs(), before, strict=True)), 90,
               lambda: f"{watchdogs()} watchdogs were answered: {peers['one'].out}")
    for name, other in (("one", "other"), ("other", "one")):
        assert "'STATE_OPEN'\t-> " not in peers[name].out, identity(other)
    table.tell("freeDiameter", "capabilities, then watchdogs and their answers", cut=is_cut)
