"""osmo-stp: a signalling gateway, which routes messages of M3UA between two application servers."""

import sys
from pathlib import Path

import pytest

from programs import table
from support.preload import cut, run

pytestmark = pytest.mark.needs("namespaces", "nft", "osmo-stp")
COUNT = 12
CONFIGURATION = """log stderr
 logging filter all 1
 logging color 0
 logging timestamp 0
 logging level set-all notice
line vty
 no login
cs7 instance 0
 xua rkm routing-key-allocation dynamic-permitted
"""


@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
def test_messages_are_routed(hosts, processes, tmp_path, is_cut):
    """It listens for M3UA on both addresses, and for M3UA on another port and for SUA besides: three SCTP ports
    above one UDP port. The application servers are bound to the wildcard address, so they are multihomed."""
    path = tmp_path / "stp.cfg"
    listens = [f" listen {kind} {port}\n  accept-asp-connections dynamic-permitted\n"
               f"  local-ip {hosts.address('b', 1)}\n  local-ip {hosts.address('b', 2)}\n"
               for kind, port in (("m3ua", 2905), ("m3ua", 2906), ("sua", 14001))]
    path.write_text(CONFIGURATION + "".join(listens))
    gateway = processes.start(*run("--doctor"), "osmo-stp", "-c", path, inside=hosts.b.inside)
    script = Path(__file__).with_name("m3ua.py")

    def asp(*words: object):
        return processes.start(*run(), sys.executable, script, hosts.address("b", 1), *words, inside=hosts.a.inside)

    gateway.said("Available via telnet")
    server = asp(2905, 1)
    server.said("active")
    client = asp(2906, 2, 1, COUNT)
    client.said("answered 3")
    if is_cut:
        cut(hosts)
    ended = client.wait()
    assert ended.code == 0, ended.err + gateway.err
    assert ended.out.splitlines() == ["active"] + [f"answered {number}" for number in range(COUNT)]
    assert server.out.splitlines() == ["active"] + [f"message {number}" for number in range(COUNT)]
    table.tell("osmo-stp", f"{COUNT} messages of M3UA between two application servers, each answered", cut=is_cut)
