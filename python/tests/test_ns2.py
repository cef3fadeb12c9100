"""ns-2 as a backend: the same scenario, the same columns; unsupported features are rejected."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from polypath import METRICS, Scenario, ScenarioError, simulate, sweep
from polypath.lab import main
from polypath.metrics import Metric
from polypath.ns2.cross_traffic import cross_traffic
from polypath.ns2.mapping import Setup, setup
from polypath.ns2.run import Ns2Error, run
from polypath.packets import COLUMNS, frame
from polypath.simulation import Backend

pytestmark = pytest.mark.filterwarnings("ignore:transport.profile:UserWarning")

needs_ns = pytest.mark.usefixtures("ns")


def two_paths(**more: Any) -> Scenario:
    """A megabyte over the network of the retransmission studies."""
    edge = {"rate": "100 Mbit/s", "delay": "10 ms"}
    path = {"rate": "10 Mbit/s", "delay": "25 ms", "loss": "3 %", "edge": edge}
    return Scenario(
        **{
            "path": [{"name": "primary", **path}, {"name": "alternate", **path}],
            "transport": {"profile": "rfc9260", "receive_buffer": "64 KiB"},
            "workload": {"kind": "bulk", "size": "1 MB"},
            **more,
        }
    )


@needs_ns
def test_both_backends_give_the_same_columns() -> None:
    ours, theirs = (simulate(two_paths(), backend=b) for b in ("polypath", "ns2"))
    assert list(ours.metrics) == list(theirs.metrics)
    assert list(ours.packets()) == list(theirs.packets()) == list(COLUMNS)
    for table in ("associations", "paths", "links"):
        assert list(getattr(ours, table)) == list(getattr(theirs, table))
    known = {metric for metric, value in theirs.metrics.items() if not is_nan(value)}
    assert set(METRICS) - known == {
        "blocked_time",
        "events",
        "fast_retransmissions",
        "timeout_retransmissions",
        "heartbeats_lost",
    }
    assert theirs.metrics["complete"]
    assert theirs.metrics["bytes_delivered"] == 1_000_000


def is_nan(value: Metric) -> bool:
    return isinstance(value, float) and math.isnan(value)


@needs_ns
def test_80_mib_without_loss_take_what_debians_ns_takes(pytestconfig: pytest.Config) -> None:
    file = Path(pytestconfig.rootpath, "../scenarios/f01-80mb.toml")
    metrics = simulate(Scenario.from_file(file), backend="ns2").metrics
    assert metrics["time_from_first_data"] == pytest.approx(122.16, abs=0.005)
    assert metrics["time_from_start"] == pytest.approx(122.43, abs=0.005)


@needs_ns
def test_the_same_seed_loses_the_same_packets_and_another_path_changes_nothing() -> None:
    scenario = two_paths(policy={"retransmission": "same"})
    one = simulate(scenario, backend="ns2", seed=5).packets()
    assert simulate(scenario, backend="ns2", seed=5).packets().equals(one)
    assert not simulate(scenario, backend="ns2", seed=6).packets().equals(one)

    def lost(scenario: Scenario) -> list[int]:
        packets = simulate(scenario, backend="ns2", seed=5).packets()
        core = packets[packets["link"] == "primary/forward"]
        numbers: list[int] = (core["fate"] == "lost").to_numpy().nonzero()[0][:15].tolist()
        return numbers

    assert lost(scenario) == lost(scenario.with_({"path.alternate.loss": "20 %"}))


@needs_ns
def test_a_script_loses_exactly_the_same_packets_in_both() -> None:
    scenario = two_paths(
        path=[{"rate": "10 Mbit/s", "delay": "45 ms", "forward": {"loss": {"packets": [9, 12]}}}]
    )
    backends: tuple[Backend, ...] = ("polypath", "ns2")
    for backend in backends:
        packets = simulate(scenario, backend=backend).packets()
        forward = packets[packets["link"] == "path0/forward"]
        assert (forward["fate"] == "lost").to_numpy().nonzero()[0].tolist() == [8, 11]


@needs_ns
def test_a_broken_link_loses_what_is_on_it_and_the_other_path_takes_over() -> None:
    scenario = two_paths(
        transport={"profile": "rfc9260", "receive_buffer": "64 KiB", "path_max_retrans": 0},
        fault=[{"at": "2 s", "path": "primary", "kind": "down"}],
    )
    for path in ("primary", "alternate"):
        # So slow that packets are always in the queue and on the wire.
        scenario = scenario.with_({f"path.{path}.loss": None, f"path.{path}.rate": "2 Mbit/s"})
    result = simulate(scenario, backend="ns2", series=True)
    assert result.metrics["complete"]
    assert result.metrics["failures"] == 1
    packets = result.packets()
    down = packets[packets["fate"] == "down"]
    assert set(down["link"]) <= {"primary/forward", "primary/back"}
    # Of the 44 chunks that the window holds most wait in front of the core link.
    assert (down[down["tsns"].map(bool)]["time"] < 2).sum() > 20
    late = packets[(packets["time"] > 4) & packets["tsns"].map(bool)]
    assert set(late["path"]) == {1}
    assert {one.path for one in result.samples} == {0, 1}
    result.plot()


@needs_ns
def test_what_arrives_and_what_fails_is_told_by_path() -> None:
    # The agent with multiple fast retransmits traces its variables in another format.
    scenario = two_paths(
        transport={"profile": "rfc9260", "receive_buffer": "64 KiB", "path_max_retrans": 1},
        policy={"retransmission": "hybrid", "loss": "multiple-fast-retransmit"},
        fault=[{"at": "1 s", "path": "primary", "kind": "down"}],
    )
    result = simulate(scenario, backend="ns2")
    metrics, changes = result.metrics, result.changes
    assert metrics["path.0.failures"] == 1
    assert list(changes.loc[changes["path"] == 0, "to"]) == ["inactive"]
    (link,) = (one for one in result.outcome["links"] if one["name"] == "alternate/forward")
    sent, arrived = (int(metrics[f"path.1.packets_{what}"]) for what in ("sent", "arrived"))
    assert 100 < int(metrics["path.0.packets_arrived"]) < int(metrics["path.0.packets_sent"])
    # Packets in transit when the last acknowledgement arrives.
    assert 0 <= sent - arrived - link["counts"]["lost"] <= 3
    assert link["counts"]["lost"] > 5


@needs_ns
def test_queues_hold_as_much_in_both() -> None:
    path = {"rate": "1 Mbit/s", "delay": "20 ms"}
    for queue in ("4 packets", "6000 B"):
        scenario = two_paths(path=[{**path, "queue": queue}], workload={"messages": 60})
        backends: tuple[Backend, ...] = ("polypath", "ns2")
        runs = [simulate(scenario, backend=b).packets() for b in backends]
        for packets in runs:
            forward = packets[packets["link"] == "path0/forward"]
            dropped = forward[forward["fate"] == "queue"]
            assert len(dropped) > 0
            # One is being transmitted, four wait: the dropped packet is the sixth.
            first = dropped.iloc[0]
            before = forward[(forward["time"] <= first["time"]) & (forward.index < first.name)]
            waiting = (before["arrival"] - 0.02 > first["time"]).sum()
            assert waiting == 5


@needs_ns
def test_messages_at_an_interval_and_small_ones() -> None:
    workload = {
        "kind": "periodic",
        "messages": 20,
        "message_size": "100 B",
        "interval": "50 ms",
        "start": "1 s",
    }
    result = simulate(two_paths(workload=workload), backend="ns2")
    assert result.metrics["bytes_delivered"] == 2000
    assert result.associations["first_send"].iloc[0] == 1.0
    bulk = {"kind": "bulk", "messages": 30, "message_size": "100 B"}
    assert simulate(two_paths(workload=bulk), backend="ns2").metrics["messages_delivered"] == 30


@needs_ns
def test_a_sweep_keeps_the_backends_apart(tmp_path: Path) -> None:
    scenario = two_paths(name="both")
    frames = [
        sweep(scenario, [1, 2], results=tmp_path, progress=False, backend=backend)
        for backend in ("polypath", "ns2", "ns2")
    ]
    assert list(frames[0]) == list(frames[1])
    assert (frames[1]["status"] == "ok").all()
    assert frames[2].equals(frames[1])
    assert frames[1]["engine"].iloc[0] == "ns2+" + frames[0]["engine"].iloc[0]


@needs_ns
def test_the_program_runs_and_sweeps_in_ns2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(two_paths(workload={"messages": 40}).to_toml())
    assert main(["run", str(file), "--backend", "ns2"]) == 0
    shown = capsys.readouterr()
    assert "bytes_delivered" in shown.out
    assert shown.err.startswith("polypath-lab: transport.profile")
    command = ["sweep", str(file), "--seeds", "1..2", "--csv", "-", "--quiet"]
    assert main([*command, "--backend", "ns2"]) == 0
    assert capsys.readouterr().out.count("ns2+") == 2


def test_without_ns_the_error_names_debians_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Ns2Error, match=r'program "ns".*package ns2') as error:
        simulate(two_paths(), backend="ns2")
    assert "\n" not in str(error.value)
    with pytest.raises(Ns2Error, match="package ns2"):
        sweep(two_paths(), [1], progress=False, backend="ns2")


def test_another_profile_is_warned_about() -> None:
    assert ["rfc9260" in warning for warning in setup(two_paths()).warnings] == [True]


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ValueError, match='backend: found "ns3"'):
        simulate(two_paths(), backend="ns3")  # type: ignore[arg-type]


GRAPH = {
    "path": None,
    "node": [{"name": "a", "addresses": ["10.0.0.1"]}, {"name": "b", "addresses": ["10.0.0.2"]}],
    "link": [{"between": ["a", "b"], "rate": "10 Mbit/s"}],
}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        (GRAPH, "[[node]]"),
        (
            {
                "workload": None,
                "association": [
                    {"from": "sender", "to": "receiver", "workload": {"size": "1 kB"}},
                    {"from": "receiver", "to": "sender", "port": 2, "workload": {"size": "1 kB"}},
                ],
            },
            "[[association]]",
        ),
        ({"path": [{"delay": "10 ms"}]}, "path.0.rate"),
        ({"path": [{"rate": "1 Mbit/s", "mtu": "1000 B"}]}, "path.0.mtu"),
        ({"path": [{"rate": "1 Mbit/s", "corrupt": "1 %"}]}, "path.0.corrupt"),
        ({"path": [{"rate": "1 Mbit/s", "duplicate": "1 %"}]}, "path.0.duplicate"),
        (
            {"path": [{"rate": "1 Mbit/s", "reorder": {"probability": "1 %", "delay": "1 ms"}}]},
            "path.0.reorder",
        ),
        (
            {"path": [{"rate": "1 Mbit/s", "loss": {"good_to_bad": "1 %", "bad_to_good": "25 %"}}]},
            "path.0.loss",
        ),
        ({"transport": {"full_mesh": True}}, "transport.full_mesh"),
        ({"transport": {"encapsulation": "udp"}}, "transport.encapsulation"),
        ({"transport": {"profile": "rfc9260", "sack_every": 3}}, "sack_every"),
        ({"transport": {"profile": "rfc9260", "max_burst": 8}}, "max_burst"),
        ({"transport": {"profile": "rfc9260", "path_mtu": "1006 B"}}, "path_mtu"),
        (
            {"transport": {"profile": "rfc9260", "heartbeat_interval": "500 ms"}},
            "heartbeat_interval",
        ),
        ({"workload": {"kind": "request-reply", "messages": 3}}, "workload.kind"),
        ({"workload": {"size": "1 kB", "striped": True}}, "workload.striped"),
        (
            {"path": [{"rate": "1 Mbit/s", "edge": {"rate": "1 Mbit/s"}}, {"shares": "path0"}]},
            "path.1.shares",
        ),
        ({"workload": {"messages": 3, "message_size": "1 B .. 9 B"}}, "workload.message_size"),
        ({"workload": {"messages": 3, "message_size": "5 kB"}}, "workload.message_size"),
        ({"workload": {"messages": 3, "direction": "both"}}, "workload.direction"),
        ({"workload": {"messages": 3, "streams": 4}}, "workload.streams"),
        ({"workload": {"messages": 3, "unordered": "30 %"}}, "workload.unordered"),
        ({"workload": {"messages": 3, "read_rate": "1 Mbit/s"}}, "workload.read_rate"),
        (
            {"fault": [{"at": "1 s", "path": 0, "kind": "rate", "rate": "1 Mbit/s"}]},
            "fault.0.kind",
        ),
        (
            {"fault": [{"at": "1 s", "path": 0, "kind": "down", "direction": "back"}]},
            "fault.0.direction",
        ),
        ({"address": [{"at": "1 s", "node": "sender.1", "kind": "goes"}]}, "[[address]]"),
    ],
)
def test_what_ns2_cannot_do_is_refused_in_one_line(changes: dict[str, Any], key: str) -> None:
    scenario = two_paths(**changes)
    with pytest.raises(ScenarioError, match=r'allowed with backend "ns2": ') as error:
        setup(scenario)
    assert key in str(error.value).partition(":")[0]
    assert "\n" not in str(error.value)


def scripted(**scripts: dict[str, tuple[int, ...]]) -> Setup:
    """Eighty chunks over one path with scripts of losses that count packets of a kind."""
    plan = setup(
        two_paths(
            path=[{"rate": "10 Mbit/s", "delay": "45 ms"}],
            workload={"messages": 80},
            policy={"retransmission": "same"},
        )
    )
    path = plan.paths[0]
    forward, back = (
        replace(link, script=tuple(scripts.get(way, {}).items()))
        for way, (link,) in (("forward", path.forward), ("back", path.back))
    )
    return replace(plan, paths=(replace(path, forward=(forward,), back=(back,)),))


@needs_ns
@pytest.mark.parametrize(
    ("forward", "back"),
    [
        ({"data": (4, 9, 10, 11, 30, 900)}, {"sack": (3, 4, 20)}),
        ({"init": (1, 2), "data": (2,)}, {"init_ack": (1,), "cookie_ack": (1,)}),
        (
            {"heartbeat": (1,), "cookie_echo": (1,), "data": (5, 6, 7, 60, 61)},
            {"heartbeat_ack": (1,), "sack": (1, 2, 9)},
        ),
        ({"packets": (1, 8), "data": (1, 9)}, {"packets": (4,)}),
    ],
)
def test_scripts_by_kind_lose_exactly_those(
    forward: dict[str, tuple[int, ...]], back: dict[str, tuple[int, ...]]
) -> None:
    found = run(scripted(forward=forward, back=back)).packets
    packets = frame(found)
    for link, script in (("path0/forward", forward), ("path0/back", back)):
        own = packets[packets["link"] == link]
        expected = set()
        for kind, numbers in script.items():
            name = kind.upper().replace("_", " ")
            of_kind = own if kind == "packets" else own[own["chunks"] == name]
            expected |= {of_kind.index[n - 1] for n in numbers if n <= len(of_kind)}
        assert set(own.index[own["fate"] == "lost"]) == expected


@needs_ns
def test_cross_traffic_loads_the_core_link_and_is_counted_apart() -> None:
    edge = {"rate": "100 Mbit/s", "delay": "10 ms"}
    path = {"rate": "10 Mbit/s", "delay": "25 ms", "queue": "62500 B", "edge": edge}
    plan = setup(two_paths(path=[path], workload={"size": "4 MB"}))
    (way,) = plan.paths
    load = {"load": "70 %", "back": {"rate": "3 Mbit/s"}}
    background = cross_traffic(load, way.name, (way.forward[1], way.back[1]), way.forward[0], 3)
    outcome = run(replace(plan, cross_traffic=(background,)))
    links = {link["name"]: link for link in outcome.table["links"]}
    seconds = outcome.packets.end
    assert seconds > 5
    for link, rate in (("path0/forward", 7e6), ("path0/back", 3e6)):
        own = links[link]["background"]
        # A quarter of the packets has 1500 bytes, a quarter 576, half of them 44: 541 in the mean.
        assert own["offered_bytes"] * 8 / seconds == pytest.approx(rate, rel=0.3)
        assert own["offered_bytes"] / own["offered"] == pytest.approx(541, rel=0.1)
        assert 0 <= own["in_flight"] < 200
    assert links["path0/forward/first"]["background"]["offered"] == 0
    assert links["path0/forward"]["background"]["dropped_queue"] > 0
    # The frame only has the association's packets.
    assert len(frame(outcome.packets)) == len(outcome.packets.hop_time)
    assert set(frame(outcome.packets)["association"]) == {"main"}


@needs_ns
def test_what_ns_complains_about_is_the_error() -> None:
    broken = replace(setup(two_paths()), agent="Agent/Nonsense")
    with pytest.raises(Ns2Error, match=r"ns-2 ended with 1: .*Agent/Nonsense") as error:
        run(broken)
    assert "\n" not in str(error.value)
