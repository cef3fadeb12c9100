"""`polypath sim`: reproducible runs, the papers' first number, and invalid files."""

import pytest

from support import capture
from support.program import SCENARIOS, wait_until

DATA, INIT, SACK, HEARTBEAT = "0", "1", "3", "4"


def simulate(processes, scenario, *words):
    """Run a scenario to its end."""
    return processes.polypath("sim", scenario, *words).wait()


def test_the_same_scenario_and_seed_is_the_same_run(processes, tmp_path):
    runs = []
    for name in ("first", "second"):
        pcap, series = tmp_path / f"{name}.pcapng", tmp_path / f"{name}.series"
        ended = simulate(processes, SCENARIOS / "caro2006-two-paths.toml",
                         "--json", "--pcap", pcap, "--series", series)
        assert ended.json
        runs.append((ended.out, pcap.read_bytes(), series.read_bytes()))
    assert runs[0] == runs[1]
    assert all(len(part) > 1000 for part in runs[0])


def test_80_mib_without_loss_take_as_long_as_the_papers_state(processes):
    """caro2006-failover: 122.3 s."""
    ended = simulate(processes, SCENARIOS / "f01-80mb.toml", "--json")
    flow = ended.json["associations"][0]["forward"]
    assert flow["bytes_delivered"] == 80 << 20
    # ns-2's module with the papers' constants: 122.305 s from when the bottleneck has sent the first
    # packet, which takes it 1.2 ms.
    assert flow["time_from_first_data"] - 0.0012 == pytest.approx(122.305, abs=0.0005)
    assert flow["messages_delivered"] == 57773


@pytest.mark.parametrize("scenario", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_scenario_runs_and_is_complete(processes, scenario):
    outcome = simulate(processes, scenario, "--json").json
    assert all(association["complete"] for association in outcome["associations"])


def test_without_json_there_is_a_table(processes):
    ended = simulate(processes, SCENARIOS / "demo.toml")
    assert ended.code == 0, ended.err
    assert "first" in ended.out and "second" in ended.out
    assert not ended.out.lstrip().startswith("{")


@pytest.mark.needs("tshark")
@pytest.mark.parametrize("name", ["caro2006-two-paths", "demo"])
def test_tshark_reads_the_capture(processes, tmp_path, name):
    pcap = tmp_path / "capture.pcapng"
    assert simulate(processes, SCENARIOS / f"{name}.toml", "--pcap", pcap).code == 0
    chunks = capture.assert_sound(pcap, at_least=1000)
    assert {DATA, INIT, SACK, HEARTBEAT} <= set(chunks)


PATH = 'schema = 1\n[[path]]\nrate = "10 Mbit/s"\ndelay = "45 ms"\n'
WORKLOAD = '[workload]\nsize = "1 MB"\n'


WRONG = {
    "a schema of the future": (
        "schema = 2\n" + PATH.removeprefix("schema = 1\n") + WORKLOAD, ["schema", "1"]),
    "an unknown key": (PATH.replace("delay", "dealy") + WORKLOAD, ["path[0].dealy", "delay", ":4:"]),
    "an unknown unit": (PATH.replace("45 ms", "45 parsecs") + WORKLOAD, ["path[0].delay", "ms"]),
    "no quantity": (PATH.replace("10 Mbit/s", "fast") + WORKLOAD, ["path[0].rate", "bit/s"]),
    "out of range": (PATH + 'loss = "108 %"\n' + WORKLOAD, ["path[0].loss", "100 %"]),
    "an unknown profile": (
        PATH + WORKLOAD + '[transport]\nprofile = "rfc2960"\n', ["transport.profile", "rfc9260"]),
    "an unknown policy": (
        PATH + WORKLOAD + '[policy]\nretransmission = "smae"\n', ["policy.retransmission", "same"]),
    "a refused constant": (
        PATH + WORKLOAD + '[transport]\nrto_min = "0 s"\n', ["rto_min", "from 1 ns to 1 h"]),
    "an unknown path": (
        PATH + WORKLOAD + '[[fault]]\nat = "1 s"\npath = 7\nkind = "down"\n', ["fault[0].path"]),
    "an unknown fault": (
        PATH + WORKLOAD + '[[fault]]\nat = "1 s"\npath = 0\nkind = "sideways"\n',
        ["fault[0].kind", "down"]),
    "a key in the wrong table": (WORKLOAD + "schema = 1\n", ["workload.schema"]),
    "no TOML": ("schema = 1\n[[path\n", [":2:", "not TOML"]),
    "no base": ('extends = "nowhere.toml"\n', ["nowhere.toml", "no such file"]),
}


@pytest.mark.parametrize("text, names", WRONG.values(), ids=WRONG)
def test_a_wrong_scenario_gets_one_line(processes, tmp_path, text, names):
    """The error lists the key and the allowed values."""
    scenario = tmp_path / "wrong.toml"
    scenario.write_text(text)
    ended = simulate(processes, scenario)
    assert ended.code != 0
    # The program may choose whether an invalid file is a usage error.
    line = ended.complains(code=ended.code, within=5)
    whole = line + ended.err
    for name in names:
        assert name.lower() in whole.lower(), whole


def test_a_scenario_that_is_not_there(processes, tmp_path):
    ended = simulate(processes, tmp_path / "nothing.toml")
    ended.complains("nothing.toml", code=ended.code or 1, within=5)


def test_a_capture_that_cannot_be_written(processes, tmp_path):
    ended = simulate(processes, SCENARIOS / "demo.toml", "--pcap", tmp_path / "no" / "where")
    ended.complains("where", within=5)
    ended = simulate(processes, SCENARIOS / "demo.toml", "--pcap", "/dev/full")
    ended.complains("no space left", within=5)


@pytest.mark.xdist_group("demo")  # the same addresses as in the demo
def test_the_emulator_refuses_addresses_that_are_taken(processes):
    first = processes.polypath("emulate", SCENARIOS / "demo.toml", stdin=-1)
    wait_until(lambda: first.err or first.out, 10, "emulate says nothing", alive=first.popen)
    second = processes.polypath("emulate", SCENARIOS / "demo.toml").wait(10)
    second.complains("9900", within=5)
