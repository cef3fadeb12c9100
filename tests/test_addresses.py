"""A host changes its network during a transfer: one address is added, the other one is removed."""

import time

import pytest

from support.namespaces import TwoHosts
from support.program import SCENARIOS, Processes, make_file, tuning, wait_until

SIZE = 6_000_000
# Six seconds at the networks' rate: on a busy host the moves take one or two.
LONG = 15_000_000
BRISK = tuning(rto_initial="400ms", rto_min="200ms", rto_max="1s", heartbeat_interval="500ms")


class Roaming(TwoHosts):
    """Host `a` gets an address on the second path only when it moves there."""

    def __init__(self):
        super().__init__(rate="20mbit")

    def comes(self, path: int) -> None:
        self.a.ip("addr", "add", f"10.8{path}.0.1/24", "dev", f"va{path}")
        self.a.ip("route", "replace", "10.90.0.2/32", "via", f"10.8{path}.0.2")

    def containers(self, number: int) -> None:
        """A network on host `a` alone, as containers have."""
        self.a.ip("link", "add", f"con{number}", "type", "veth", "peer", "name", f"tainer{number}")
        self.a.ip("addr", "add", f"172.{number}.0.1/16", "dev", f"con{number}")
        for device in (f"con{number}", f"tainer{number}"):
            self.a.ip("link", "set", device, "up")

    def goes(self, path: int, link: bool) -> None:
        if link:
            self.a.ip("link", "set", f"va{path}", "down")
        else:
            self.a.ip("addr", "del", f"10.8{path}.0.1/24", "dev", f"va{path}")


@pytest.fixture
def hosts():
    """Host `b` has one address, which is reachable over both networks."""
    with Roaming() as both:
        both.a.ip("addr", "del", "10.82.0.1/24", "dev", "va2")
        both.b.ip("addr", "add", "10.90.0.2/32", "dev", "lo")
        both.a.ip("route", "add", "10.90.0.2/32", "via", "10.81.0.2")
        # Packets from the second address take the second path, as in a real network.
        for path in (1, 2):
            both.a.ip("rule", "add", "from", f"10.8{path}.0.1", "lookup", 100 + path)
            both.a.ip("route", "add", f"10.8{path}.0.0/24", "dev", f"va{path}", "table", 100 + path)
            both.a.ip("route", "add", "10.90.0.2/32", "via", f"10.8{path}.0.2", "dev", f"va{path}",
                      "table", 100 + path)
        yield both


@pytest.mark.needs("namespaces", "ethtool")
@pytest.mark.parametrize("raw, sends, link, gap", [
    pytest.param(False, True, True, True, id="udp-sender-link"),
    pytest.param(False, False, False, True, id="udp-receiver-address"),
    pytest.param(True, True, False, False, id="ip-sender-address"),
    pytest.param(True, False, True, False, id="ip-receiver-link"),
])
def test_a_host_that_moves_keeps_its_transfer(hosts, tmp_path, raw, sends, link, gap):
    """The file arrives whole. The stationary host learns the new address and drops the old one, even if the
    moving host has no address for a moment. An address that the peer cannot reach is not announced."""
    sha256 = make_file(tmp_path / "file", LONG)
    below = ["--raw"] if raw else []
    (tmp_path / "there").mkdir()
    hosts.containers(17)
    with Processes(tmp_path) as processes:
        stays, moves = hosts.b.inside, hosts.a.inside
        if sends:
            receiver = processes.polypath("recv", "--json", "--bind", "10.90.0.2", "-o", tmp_path / "there",
                                          *below, *BRISK, inside=stays).said("waiting on")
            sender = processes.polypath("send", "--json", tmp_path / "file", "10.90.0.2", "--follow-addresses",
                                        *below, *BRISK, inside=moves)
        else:
            receiver = processes.polypath("recv", "--json", "--follow-addresses", "-o", tmp_path / "there",
                                          *below, *BRISK, inside=moves).said("waiting on")
            sender = processes.polypath("send", "--json", tmp_path / "file", "10.81.0.1", "--bind", "10.90.0.2",
                                        *below, *BRISK, inside=stays)
        device, other = ("va1", "va2") if sends else ("vb1", "vb2")
        host = hosts.a if sends else hosts.b
        wait_until(lambda: host.sent(device) > LONG // 6, 20, lambda: f"nothing moves: {sender.err}")
        hosts.containers(18)
        steps = [lambda: hosts.comes(2), lambda: hosts.goes(1, link)]
        for step in reversed(steps) if gap else steps:
            step()
            time.sleep(0.3)
        gone = host.sent(device)
        summary = receiver.wait(60).json
        sent = sender.wait(60).json
    assert summary["sha256"] == sent["sha256"] == sha256
    assert host.sent(other) > LONG // 3
    assert host.sent(device) < gone + LONG // 3
    stayed = summary if sends else sent
    assert {path["remote"].partition(":")[0] for path in stayed["paths"]} == {"10.81.0.1", "10.82.0.1"}


@pytest.mark.clock
@pytest.mark.needs("namespaces", "ethtool")
@pytest.mark.parametrize("apart", [
    pytest.param(0.3, id="new-network-first"),
    pytest.param(-1.0, id="old-network-first"),
])
def test_the_gap_is_that_of_the_simulator(hosts, tmp_path, clock, apart):
    """Runs scenarios/laptop.toml with the parameters of these networks: 20 Mbit/s, queues of 60 kB, no delay.
    The receiver's window fits a queue, so that only the move loses packets: a retransmission lost in a
    full queue would add a second."""
    window = "48 kB"
    make_file(tmp_path / "file", SIZE)
    (tmp_path / "there").mkdir()
    with Processes(tmp_path) as processes:
        comes, goes = (1.0, 1.0 + apart) if apart > 0 else (1.0 - apart, 1.0)
        values = {"workload.size": f"{SIZE} B", "link.wifi.delay": "0 ms", "link.mobile.delay": "0 ms",
                  "transport.receive_buffer": window, "address.0.at": f"{comes} s", "address.1.at": f"{goes} s"}
        words = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
        simulated = processes.polypath("sim", SCENARIOS / "laptop.toml", "--json", *words).wait().json
        forward = simulated["associations"][0]["forward"]
        gap = forward["longest_gap"]["length"]
        receiver = processes.polypath("recv", "--json", "--plain", "--bind", "10.90.0.2",
                                      "-o", tmp_path / "there", *tuning(receive_buffer=window),
                                      inside=hosts.b.inside).said("waiting on")
        sender = processes.polypath("send", "--json", "--plain", tmp_path / "file", "10.90.0.2",
                                    "--follow-addresses", inside=hosts.a.inside)
        wait_until(lambda: hosts.a.sent("va1") > SIZE // 6, 20, lambda: f"nothing moves: {sender.err}")
        moved = {}
        for step in ("comes", "goes") if apart > 0 else ("goes", "comes"):
            if moved:
                time.sleep(abs(apart))
            began = time.monotonic()
            hosts.comes(2) if step == "comes" else hosts.goes(1, link=True)
            moved[step] = (began, time.monotonic())
        real = receiver.wait(60).json["blackout_s"]
        assert sender.wait().code == 0
    print(f"longest time without new data: {gap:.3f} s in the simulator, {real:.3f} s between processes")
    assert forward["bytes_delivered"] == SIZE
    assert gap == pytest.approx(max(-apart, 0.05), abs=0.1)
    # ip(8) takes time: the host may have been without a network for longer than in the simulator.
    longer = 0.0 if apart > 0 else moved["comes"][1] - moved["goes"][0] + apart
    assert -0.1 < real - gap < longer + 0.5 + clock.late().seconds
