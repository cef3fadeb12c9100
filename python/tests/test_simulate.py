"""Runs: determinism, results, arrays without copies, captures, figures."""

import gc
import json
import math
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt

import polypath
from polypath import Result, Scenario
from polypath.metrics import PATH_METRICS

from places import ROOT


def test_the_same_seed_gives_the_same_run(lossy: Scenario, tmp_path: Path) -> None:
    first, second = (polypath.simulate(lossy, seed=5) for _ in range(2))
    assert first.outcome == second.outcome
    assert polypath.simulate(lossy, seed=6).outcome != first.outcome
    for number, result in enumerate((first, second)):
        result.pcap(tmp_path / f"{number}.pcapng")
    capture = (tmp_path / "0.pcapng").read_bytes()
    assert capture == (tmp_path / "1.pcapng").read_bytes()
    assert capture[:4] == bytes.fromhex("0a0d0d0a")
    assert len(capture) > 500_000


def test_the_command_line_gives_the_same(binary: str) -> None:
    file = ROOT / "scenarios" / "demo.toml"
    done = subprocess.run(
        [binary, "sim", file, "--json", "--seed", "9"], capture_output=True, text=True, check=True
    )
    assert polypath.simulate(Scenario.from_file(file), seed=9).outcome == json.loads(done.stdout)


def test_metrics_are_flat_and_described(lossy: Scenario) -> None:
    result = polypath.simulate(lossy)
    metrics = result.metrics
    of_paths = {name for name in metrics if name.startswith("path.")}
    assert set(metrics) - of_paths == set(polypath.METRICS)
    assert of_paths == {f"path.{path}.{name}" for path in (0, 1) for name in PATH_METRICS}
    sent = [int(metrics[f"path.{path}.packets_sent"]) for path in (0, 1)]
    assert metrics["packets_sent"] == sum(sent)
    for link in result.outcome["links"]:
        path, _, direction = link["name"].partition("/")
        if direction == "forward":
            number = path.removeprefix("path")
            arrived = int(metrics[f"path.{number}.packets_arrived"])
            # SHUTDOWN COMPLETE arrives last, when no association is left to count it.
            missing = (
                sent[int(number)]
                - arrived
                - link["counts"]["lost"]
                - link["counts"]["dropped_queue"]
            )
            assert missing in (0, 1)
    assert metrics["complete"] is True
    assert metrics["bytes_delivered"] == 500_000
    assert metrics["goodput"] == pytest.approx(500_000 / float(metrics["time_from_start"]))


def test_what_is_not_complete_has_no_time(lossy: Scenario) -> None:
    metrics = polypath.simulate(lossy.with_({"run.limit": "200 ms"})).metrics
    assert metrics["complete"] is False
    assert metrics["end"] == "time-limit"
    assert math.isnan(float(metrics["time_from_first_data"]))
    assert 0 < float(metrics["bytes_delivered"]) < 500_000


def test_several_associations_have_their_own_metrics() -> None:
    link = {"between": ["a", "b"], "rate": "10 Mbit/s", "delay": "10 ms"}
    one = {"from": "a", "to": "b", "workload": {"kind": "bulk", "size": "200 kB"}}
    ping = {"kind": "request-reply", "messages": 10, "message_size": "100 B"}
    scenario = Scenario.from_dict(
        {
            "schema": 1,
            "node": [
                {"name": "a", "addresses": ["10.0.0.1"]},
                {"name": "b", "addresses": ["10.0.0.2"]},
            ],
            "link": [link],
            "association": [
                {**one, "name": "bulk"},
                {**one, "name": "ping", "port": 5002, "workload": ping},
            ],
        }
    )
    result = polypath.simulate(scenario)
    metrics = result.metrics
    assert metrics["bytes_delivered"] == 201_000
    assert metrics["bulk.bytes_delivered"] == 200_000
    assert metrics["ping.back.bytes_delivered"] == 1_000
    assert list(result.associations["direction"]) == ["forward", "forward", "back"]


def test_a_striped_application_is_one_in_metrics(lossy: Scenario) -> None:
    result = polypath.simulate(lossy.with_({"workload.striped": True}), packets=True)
    names = ["main/path0", "main/path1"]
    assert list(result.associations["association"]) == names
    assert list(result.stripes["association"]) == ["main"]
    metrics = result.metrics
    of_paths = {name for name in metrics if name.startswith("path.")}
    assert set(metrics) - of_paths == set(polypath.METRICS)
    assert of_paths == {f"path.{path}.{name}" for path in (0, 1) for name in PATH_METRICS}
    assert metrics["complete"] is True
    assert metrics["bytes_delivered"] == 500_000 == result.stripes["bytes_delivered"].sum()
    assert metrics["goodput"] == pytest.approx(500_000 / float(metrics["time_from_start"]))
    sent = result.paths.loc[result.paths["side"] == "sender", "packets_sent"].tolist()
    assert [metrics[f"path.{path}.packets_sent"] for path in (0, 1)] == sent
    packets = result.packets()
    for name, link in zip(names, ("path0", "path1"), strict=True):
        links = set(packets.loc[packets["association"] == name, "link"])
        assert links == {f"{link}/forward", f"{link}/back"}


def test_associations_have_paths_and_settings_of_their_own() -> None:
    one = {"from": "sender", "to": "receiver", "workload": {"kind": "bulk", "size": "1 MB"}}
    cmt = {"name": "cmt", "paths": ["primary", "alternate"], "transport": {"profile": "cmt"}}
    scenario = Scenario.from_dict(
        {
            "schema": 1,
            "topology": "shared-bottleneck",
            "association": [{**one, **cmt}, {**one, "name": "single", "paths": ["competitor"]}],
        }
    )
    assert Scenario.from_toml(scenario.to_toml()) == scenario
    result = polypath.simulate(scenario)
    senders = result.paths[result.paths["side"] == "sender"]
    assert senders["association"].tolist() == ["cmt", "cmt", "single"]
    assert (senders["data_chunks_sent"] > 100).all()
    assert result.metrics["complete"] is True
    assert (
        result.metrics["cmt.bytes_delivered"] == result.metrics["single.bytes_delivered"] == 10**6
    )
    with pytest.raises(polypath.ScenarioError, match=r'association\[0\].paths\[0\]: no path "x"'):
        scenario.with_({"association.cmt.paths": ["x"]})


def test_frames_have_a_row_for_each_path_link_and_change(failing: Scenario) -> None:
    result = polypath.simulate(failing)
    assert list(result.paths[["side", "path"]].itertuples(index=False, name=None)) == [
        ("sender", 0),
        ("sender", 1),
        ("receiver", 0),
        ("receiver", 1),
    ]
    assert result.paths["failures"].sum() == result.metrics["failures"] == 1
    assert len(result.links) == 4
    lost, background = result.links["lost_outage"], result.links["background_lost_outage"]
    assert background.sum() > 0
    assert (lost - background).sum() == result.metrics["packets_lost"]
    assert "inactive" in set(result.changes["to"])
    assert len(result.associations) == 1


def test_series_are_not_copied(lossy: Scenario) -> None:
    result = polypath.simulate(lossy, series=True)
    series = result.samples
    assert [(one.side, one.path) for one in series] == [("sender", 0), ("sender", 1)]
    one = series[0]
    assert set(one.COLUMNS) == {
        name for name in dir(one) if isinstance(getattr(one, name), np.ndarray)
    }
    for name in one.COLUMNS:
        array = getattr(one, name)
        assert len(array) == len(one) > 100
        # The memory belongs to an object of the core that array and later views share.
        assert array.base is not None
        assert not array.flags.owndata
        assert np.shares_memory(array, getattr(result.samples[0], name))
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    time = one.time
    last = time[-1]
    del result, series, one
    gc.collect()
    assert time[-1] == last
    assert np.all(np.diff(time) >= 0)


def test_series_are_a_tidy_frame(lossy: Scenario) -> None:
    result = polypath.simulate(lossy, series="50 ms")
    frame = result.series
    assert list(frame.columns[:5]) == ["association", "side", "path", "name", "time"]
    first = frame[frame["path"] == 0]
    assert list(first["cwnd"]) == list(result.samples[0].cwnd)
    assert set(first["name"]) == {result.path_names[0]} == {"path0"}
    empty = polypath.simulate(lossy).series
    assert empty.empty
    assert list(empty.columns) == list(frame.columns)


def test_the_goodputs_of_the_paths_add_up_to_the_file(lossy: Scenario) -> None:
    result = polypath.simulate(lossy)
    frame = result.goodput(0.25)
    assert set(frame["path"]) == {0, 1}
    delivered = result.metrics["bytes_delivered"]
    assert (frame["goodput"] * 0.25).sum() == pytest.approx(delivered)
    with pytest.raises(ValueError, match="interval: found 0; allowed: above 0"):
        result.goodput(0)


def test_series_at_an_interval_do_not_change_the_run(lossy: Scenario) -> None:
    assert not polypath.simulate(lossy).samples
    every, plain = polypath.simulate(lossy, series="50 ms"), polypath.simulate(lossy)
    steps = np.diff(every.samples[0].time)
    assert steps == pytest.approx(np.full(len(steps), 0.05))
    assert every.metrics["time_from_start"] == plain.metrics["time_from_start"]
    with pytest.raises(polypath.ScenarioError, match=r"series\.interval: .*allowed"):
        polypath.simulate(lossy, series="50")
    with pytest.raises(polypath.ScenarioError, match=r"series\.interval: found 0 s"):
        polypath.simulate(lossy, series="0 s")


def test_captures_that_cannot_be_written(lossy: Scenario) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-folder"):
        polypath.simulate(lossy).pcap("no-such-folder/run.pcapng")


def test_many_runs_come_in_the_order_asked_for(lossy: Scenario) -> None:
    scenarios = [lossy.with_({"workload.size": f"{size} kB"}) for size in (900, 100, 500)]
    calls: list[tuple[int, int]] = []
    plans = [(scenario, seed) for scenario in scenarios for seed in (1, 2)]
    many = polypath.simulate_many(plans, threads=3, done=lambda *now: calls.append(now))
    assert calls == [(n, 6) for n in range(1, 7)]
    for (scenario, seed), result in zip(plans, many, strict=True):
        assert isinstance(result, Result)
        assert result.outcome == polypath.simulate(scenario, seed=seed).outcome
    assert polypath.simulate_many([]) == []


def test_many_runs_end_when_they_are_told_to(lossy: Scenario) -> None:
    calls = []

    def enough(finished: int, total: int) -> None:
        calls.append((finished, total))
        if finished == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        polypath.simulate_many([lossy] * 500, done=enough)
    assert len(calls) == 3


def test_damaged_packets_are_noticed(lossy: Scenario) -> None:
    """Endpoints of an optimised build compute checksums again for damaged packets only."""
    outcome = polypath.simulate(lossy.with_({"path.0.corrupt": "5 %"})).outcome
    corrupted = sum(link["counts"]["corrupted"] for link in outcome["links"])
    noticed = sum(endpoint["counts"]["bad_checksum"] for endpoint in outcome["endpoints"])
    assert 0 < noticed <= corrupted


def test_python_goes_on_during_a_run(lossy: Scenario) -> None:
    long = lossy.with_({"workload.size": "200 MB", "run.check_content": False})
    thread = threading.Thread(target=polypath.simulate, args=[long])
    ticks = 0
    thread.start()
    while thread.is_alive():
        time.sleep(0.005)
        ticks += 1
    # If the run held the interpreter, there would be one tick before and one after it.
    assert ticks > 5


def test_a_run_can_be_drawn(failing: Scenario, tmp_path: Path) -> None:
    for name, result in {
        "with series": polypath.simulate(failing, series="20 ms"),
        "without": polypath.simulate(failing),
    }.items():
        figure = result.plot()
        goodput, windows, times = figure.axes
        assert len(windows.get_lines()) >= 2
        names = goodput.get_legend_handles_labels()[1]
        assert names == list(result.path_names.values())
        assert goodput.get_ylabel() == "goodput [Mbit/s]"
        assert windows.get_ylabel() == "congestion window [kB]"
        assert times.get_xlabel() == "time [s]"
        figure.savefig(tmp_path / f"{name}.png")
        figure.savefig(tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        plt.close(figure)


def test_the_engine_has_a_version() -> None:
    version, plus, sources = polypath.engine_version.partition("+")
    assert version == polypath.__version__
    assert plus
    assert len(sources) == 16
