"""netperfmeter: a control association, and an association with two flows of data each way."""

import re

import pytest

from programs.table import tell
from support.preload import cut, run

pytestmark = pytest.mark.needs("namespaces", "nft", "netperfmeter")
PORT = 9000
# Frames per second and bytes per frame, each way. A frame sent as the peer ends the flow fails; by default
# netperfmeter then exits in the thread that its main thread waits for, and hangs.
FLOW = "const100:const1000:const100:const1000:error_on_abort=off"


@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
def test_data_flows_both_ways(hosts, processes, tmp_path, is_cut):
    seconds = 12 if is_cut else 4
    # Mapped: it binds a TCP socket of IPv6 to the same addresses.
    own, other = (",".join(f"::ffff:{hosts.address(side, path)}" for path in (1, 2)) for side in ("a", "b"))
    server = processes.start(*run(), "netperfmeter", PORT, f"-local={other}", f"-controllocal={other}",
                             inside=hosts.b.inside, cwd=tmp_path)
    server.said("Accepting TCP/UDP/SCTP connections", 30)
    client = processes.start(
        *run(), "netperfmeter", f"{hosts.address('b', 1)}:{PORT}", f"-controllocal={own}", f"-runtime={seconds}",
        f"-local={own}", "-sctp", FLOW, FLOW, inside=hosts.a.inside, cwd=tmp_path)
    if is_cut:
        client.said("Duration:  0:00:04", 30)
        cut(hosts)
    ended = client.wait()
    assert ended.code == 0, ended.out + ended.err
    # Each flow in the report of the active side: what it has sent and received.
    found = [int(packets) for packets in re.findall(r"\* Packets:\s+(\d+) packets", ended.out)]
    assert len(found) >= 6, ended.out
    received = found[1::3]
    assert all(packets > 90 * seconds for packets in received), (received, ended.out)
    assert server.popen.poll() is None, server.out + server.err
    assert not is_cut or hosts.a.sent("va2") > 100_000
    tell("netperfmeter", "two flows each way, 100 frames/s of 1,000 bytes each", cut=is_cut)
