"""kamailio's SCTP module: a one-to-many socket that its worker processes inherit, read and send on."""

import sys
from pathlib import Path

import pytest

from programs import table
from support.preload import cut, run

pytestmark = pytest.mark.needs("namespaces", "nft", "kamailio")
COUNT = 12
CONFIGURATION = """#!KAMAILIO
debug=2
log_stderror=yes
children=2
disable_tcp=yes
enable_sctp=yes
auto_aliases=no
{listen}
loadmodule "sctp.so"
loadmodule "sl.so"
loadmodule "pv.so"
request_route {{
    sl_send_reply("200", "OK");
}}
"""


def started(hosts, processes, tmp_path, listen: list[str]):
    """kamailio on host b."""
    path = tmp_path / "kamailio.cfg"
    path.write_text(CONFIGURATION.format(listen="\n".join(f"listen=sctp:{one}" for one in listen)))
    server = processes.start(*run("--doctor"), "kamailio", "-f", path, "-DD", "-E", "-P", tmp_path / "kamailio.pid",
                             "-Y", tmp_path, inside=hosts.b.inside)
    server.said("child_init()")
    return server


def client(hosts, processes, address: str, port: int):
    """A client on host a."""
    script = Path(__file__).with_name("sip.py")
    return processes.start(*run(), sys.executable, script, address, port, COUNT, inside=hosts.a.inside)


@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
def test_requests_are_answered(hosts, processes, tmp_path, is_cut):
    """The client is bound to the wildcard address: both sides announce both of their addresses."""
    both = f"({hosts.address('b', 1)}, {hosts.address('b', 2)}):5060"
    server = started(hosts, processes, tmp_path, [both])
    caller = client(hosts, processes, hosts.address("b", 1), 5060)
    caller.said("3 SIP/2.0 200 OK")
    if is_cut:
        cut(hosts)
    ended = caller.wait()
    assert ended.code == 0, ended.err + server.err
    assert ended.out.splitlines() == [f"{number} SIP/2.0 200 OK" for number in range(COUNT)]
    table.tell("kamailio", f"{COUNT} SIP requests, each answered by one of its processes", cut=is_cut)


def test_two_addresses_are_served(hosts, processes, tmp_path):
    """Each address has a socket of its own, and all have the same UDP port."""
    places = [(hosts.address("b", 1), 5060), (hosts.address("b", 2), 5060), (hosts.address("b", 1), 5062)]
    server = started(hosts, processes, tmp_path, [f"{address}:{port}" for address, port in places])
    callers = [client(hosts, processes, *place) for place in places]
    for caller in callers:
        ended = caller.wait()
        assert ended.code == 0, ended.err + server.err
        assert ended.out.count("200 OK") == COUNT, ended.out
    table.tell("kamailio", "three listening sockets: two addresses, two ports")
