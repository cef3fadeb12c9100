"""`make demo`, run as a user would."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import capture
from support.namespaces import Namespace
from support.program import ROOT, binary, changes, wait_until

DEMO = [sys.executable, str(ROOT / "scripts" / "demo.py")]
FRONT, BACK = 9900, 9901
# One demo at a time: the addresses are those of its scenario.
one_at_a_time = pytest.mark.xdist_group("demo")


@pytest.mark.clock
@pytest.mark.needs("tshark")
def test_the_demo_survives_the_cut_and_its_capture_is_sound(processes, tmp_path, clock):
    """Checks the emulator's capture of each link."""
    pcap = tmp_path / "demo.pcapng"
    ended = processes.start(
        *DEMO, "--program", binary(), "--pcap", pcap, "--json").wait(60)
    assert ended.code == 0, ended.err
    result = json.loads(ended.out.splitlines()[-1])
    sent, received = result["sent"], result["received"]
    assert result["sha256_sent"] == result["sha256_received"] == sent["sha256"] == received["sha256"]
    assert changes(sent, 0)[:2] == ["potentially_failed", "active"]
    assert sent["changes"][0]["at_s"] > result["cut_at_s"] - 0.5
    assert all(path["bytes"] > 500_000 for path in sent["paths"])
    # Two round trips of 90 ms and the queue of each path; the other path goes on meanwhile.
    assert received["blackout_s"] < 0.5 + clock.late().seconds
    assert result["before_cut_bit_per_s"] > 0.8 * result["links_bit_per_s"] or clock.late().seconds > 0.2
    capture.assert_sound(pcap, (9899, FRONT, BACK), at_least=5000)


@pytest.mark.needs("namespaces", "tshark", "ethtool")
def test_what_the_demo_puts_on_the_wire_is_sound(processes, tmp_path):
    """Checks a capture of the sockets by tshark, on a separate loopback without segmentation offload, which
    would show up to 64 KiB as one datagram."""
    pcap = tmp_path / "wire.pcapng"
    with Namespace() as host:
        host.whole_datagrams("lo")
        # Write to standard output: tshark drops its privileges and may not write elsewhere.
        with pcap.open("wb") as out:
            sniffer = subprocess.Popen(
                [*host.inside, "dumpcap", "-q", "-i", "lo", "-f", "udp portrange 9899-9901",
                 "-w", "-"], stdout=out, stderr=subprocess.PIPE)
        try:
            wait_until(lambda: pcap.stat().st_size > 0, 15, "dumpcap does not start", alive=sniffer)
            ended = processes.start(*DEMO, "--program", binary(), "--megabytes", 4, "--json",
                                    inside=host.inside).wait(60)
            assert ended.code == 0, ended.err
        finally:
            sniffer.terminate()
            sniffer.wait(10)
    # Each datagram appears twice: before the emulated link, and after it.
    capture.assert_sound(pcap, (9899, FRONT, BACK), at_least=6000)


@one_at_a_time
def test_the_summary_is_plain(processes):
    ended = processes.start(*DEMO, "--program", binary(), "--megabytes", 2).wait(60)
    assert ended.code == 0, ended.err
    assert "\x1b" not in ended.out + ended.err and "\r" not in ended.out + ended.err
    for row in ("SHA-256   equal on both sides", "path 0", "path 1", "blackout", "cut", "restored"):
        assert row in ended.out, ended.out


@one_at_a_time
def test_an_interrupted_demo_leaves_nothing_behind(processes):
    demo = processes.start(*DEMO, "--program", binary(), "--megabytes", 8)
    wait_until(lambda: len(children(demo.popen.pid)) == 3, 15, "the children do not start",
               alive=demo.popen)
    started = children(demo.popen.pid)
    demo.popen.terminate()
    assert demo.wait(15).code == 143
    assert not any(Path("/proc", str(pid)).exists() for pid in started)


def children(parent: int) -> list[int]:
    """Child processes of `parent`."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The format is "pid (name) state parent ...", and names may contain anything.
            pid, rest = stat.parent.name, stat.read_text().rpartition(")")[2].split()
            if int(rest[1]) == parent:
                found.append(int(pid))
    return found
