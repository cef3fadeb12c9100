"""The network emulator of the benchmarks (benches/netem.py) does what its scenario states: for TCP, UDP and the
kernel's own timestamps, between two namespaces."""

import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netem import Net
from support.program import target

BULK = [sys.executable, str(Path(__file__).parent.parent / "benches" / "bulk.py")]
# Sends numbered datagrams from host a to host b, waits for each answer if there is an interval, prints times.
PROBE = """
import socket, struct, sys, time
role, count, size, interval, tos = sys.argv[1], *map(float, sys.argv[2:])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
s.bind(("10.91.0.1" if role == "send" else "10.91.0.2", 7000))
s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(tos))
s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
s.settimeout(3)
print("ready", flush=True)
if role == "send":
    for number in range(int(count)):
        before = time.monotonic()
        s.sendto(struct.pack("!I", number).ljust(int(size), b"x"), ("10.91.0.2", 7000))
        if interval:
            s.recv(65536)
            print(time.monotonic() - before, flush=True)
            time.sleep(interval)
        elif number % 8 == 0:
            time.sleep(0.001)
else:
    try:
        while True:
            data, control, _, peer = s.recvmsg(65536, 256)
            print(struct.unpack("!I", data[:4])[0], time.monotonic(), control[0][2][0], flush=False)
            if interval:
                s.sendto(data[:4], peer)
    except TimeoutError:
        pass
"""

pytestmark = pytest.mark.needs("root", "namespaces", "tun")


def scenario(text: str) -> str:
    return f'schema = 1\nseed = 7\n[[path]]\nname = "p0"\n{text}'


@pytest.fixture
def network(tmp_path, worker_id):
    """Makes a network with the links of a text."""
    program = target() / "debug" / "examples" / "netem"
    assert program.exists(), f"{program} is not there: cargo build --all-targets"
    number = 90 + (0 if worker_id == "master" else int(worker_id.removeprefix("gw")))
    return lambda links: Net(program, scenario(links), 1, tmp_path, number)


@pytest.fixture
def net(network, request):
    """A network with the links of the test's parameter."""
    with network(request.param) as made:
        yield made


def probe(net: Net, count: int, size: int = 64, interval: float = 0, tos: int = 0) -> tuple[list[str], list[list[str]]]:
    """Lines of the sender and of the receiver."""
    words = [sys.executable, "-c", PROBE]
    numbers = [str(number) for number in (count, size, interval, tos)]
    with subprocess.Popen([*Net.inside(net.b), *words, "recv", *numbers], stdout=subprocess.PIPE,
                          text=True) as receiver:
        assert receiver.stdout.readline() == "ready\n"
        sender = subprocess.run([*Net.inside(net.a), *words, "send", *numbers], capture_output=True, text=True,
                                check=False)
        assert sender.returncode == 0, sender.stderr
        got = receiver.communicate(timeout=60)[0]
    return sender.stdout.splitlines()[1:], [line.split() for line in got.splitlines()]


@pytest.mark.clock
def test_the_round_trip_is_that_of_the_links(network, clock):
    def round_trip(delay: str) -> float:
        with network(f'delay = "{delay}"\nrate = "100 Mbit/s"\n') as net:
            times, _ = probe(net, 50, interval=0.01)
            assert net.do("report")["late"]["packets"] == 100
        return statistics.median(map(float, times))

    # 92 bytes there and 32 back take 0.01 ms at 100 Mbit/s. What the hosts take differs between machines: the links
    # without delay show it. What waits for 10 ms wakes up later than what waits for less: 0.3 ms in all were measured.
    hosts, rtt = round_trip("0 ms"), round_trip("10 ms")
    assert 0.02 <= rtt <= 0.021 + hosts + clock.late().worst, (rtt, hosts)


@pytest.mark.clock
@pytest.mark.parametrize("net", ['delay = "10 ms"\nrate = "20 Mbit/s"\nqueue = "50000 B"\n'], indirect=True)
def test_tcp_fills_the_rate_and_no_more(net, clock):
    receiver = subprocess.Popen([*Net.inside(net.b), *BULK, "recv", "tcp", "10.91.0.2", "5001", "3"],
                                stdout=subprocess.PIPE, text=True)
    assert receiver.stdout.readline() == "ready\n"
    sender = subprocess.Popen([*Net.inside(net.a), *BULK, "send", "tcp", "10.91.0.2", "5001", "4", "cubic"])
    log = json.loads(receiver.communicate(timeout=60)[0])
    sender.kill()
    sender.wait()
    rate = log["bytes"] * 8e-6 / (log["last"] - log["first"])
    # TCP's headers with timestamps have 52 of 1500 bytes. What the first instant brings is not part of the time.
    most = 20 * 1448 / 1500
    assert most * (0.97 - clock.late().share) < rate < most * 1.01, rate
    forward = net.do("report")["links"][0]
    assert forward["queued_ms_most"] <= 20, "50,000 bytes wait for 20 ms at 20 Mbit/s"
    assert net.dropped() == 0


@pytest.mark.parametrize("net", ['loss = "3 %"\nrate = "100 Mbit/s"\nqueue = "10 MB"\n'], indirect=True)
def test_the_share_that_is_lost_is_that_of_the_links(net):
    count = 10_000
    _, got = probe(net, count)
    forward, back = (link["counters"] for link in net.do("report")["links"])
    assert forward["offered"] == count and net.dropped() == 0
    assert len(got) == count - forward["lost"] == forward["delivered"]
    # 3 %, and five standard deviations.
    assert abs(forward["lost"] - 0.03 * count) < 5 * math.sqrt(0.03 * 0.97 * count)
    assert back["offered"] == 0
    numbers = [int(number) for number, *_ in got]
    assert numbers == sorted(numbers), "nothing overtakes"


@pytest.mark.parametrize("net", ['rate = "1 Mbit/s"\nmark_at = 3\n'], indirect=True)
def test_a_long_queue_marks_what_may_be_marked(net):
    """The kernel's checksum of the header holds, or nothing would arrive."""
    ect0, ce = 2, 3
    _, got = probe(net, 40, size=1000, tos=ect0)
    marks = [int(mark) for *_, mark in got]
    assert len(marks) == 40 and marks[0] == ect0
    assert marks.count(ce) >= 30
    _, got = probe(net, 40, size=1000, tos=0)
    assert {int(mark) for *_, mark in got} == {0}


@pytest.mark.parametrize("net", ['delay = "1 ms"\n'], indirect=True)
def test_a_cut_is_silent_and_ends(net):
    assert "error" in net.do("down p1")
    net.do("down p0 forward")
    _, got = probe(net, 10)
    assert not got
    assert net.do("report")["links"][0]["counters"]["lost_outage"] == 10
    net.do("up p0")
    began = time.monotonic()
    _, got = probe(net, 10)
    assert len(got) == 10 and float(got[-1][1]) > began
