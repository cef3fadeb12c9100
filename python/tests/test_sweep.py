"""Sweeps: the same frame from every executor, and no run lost or repeated."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib import pyplot as plt
from pandas.testing import assert_frame_equal

import polypath
from polypath import Progress, Scenario, SimulationError, Stop, work
from polypath.metrics import PATH_METRICS
from polypath.store import DamagedStoreError, Store, load_rows

LOSSES = ["1 %", "3 %", "5 %"]


@pytest.fixture
def grid(lossy: Scenario) -> list[Scenario]:
    return lossy.grid({"path.0.loss": LOSSES})


def quiet(*arguments: Any, **more: Any) -> pd.DataFrame:
    return polypath.sweep(*arguments, progress=more.pop("progress", False), **more)


def test_a_row_for_each_run(grid: list[Scenario]) -> None:
    frame = quiet(grid, range(1, 5))
    front = ["scenario", "key", "path.0.loss", "seed", "engine", "status", "reason"]
    of_paths = [f"path.{path}.{name}" for path in (0, 1) for name in PATH_METRICS]
    assert list(frame.columns) == [*front, *polypath.METRICS, *of_paths]
    assert list(frame["seed"]) == [1, 2, 3, 4] * 3
    assert list(frame["path.0.loss"]) == [loss for loss in LOSSES for _ in range(4)]
    assert list(frame["scenario"].unique()) == [f"loss {loss}" for loss in LOSSES]
    assert set(frame["status"]) == {"ok"}
    expected = polypath.simulate(grid[1], seed=3).metrics
    assert frame.loc[6, list(expected)].to_dict() == expected


def test_equal_scenarios_are_run_once(lossy: Scenario) -> None:
    assert len(quiet([lossy, lossy.with_(seed=9), lossy], range(3))) == 3


def test_the_rule_stops_each_scenario_when_it_is_narrow(grid: list[Scenario]) -> None:
    stop = Stop(level=0.90, within=0.10, at_least=5, at_most=40)
    frame = quiet(grid, stop=stop)
    every = quiet(grid, range(1, 41))
    for key, runs in every.groupby("key", sort=False):
        times = list(runs[stop.metrics[0]])
        prefixes = (polypath.interval(times[:n]) for n in range(5, 41))
        expected = next((one.n for one in prefixes if one.relative <= 0.10), 40)
        assert list(frame.loc[frame["key"] == key, "seed"]) == list(range(1, expected + 1))
    table = polypath.summary(frame)
    assert len(set(table["n"])) > 1
    assert list(table["too_few"]) == list((table["n"] < 10) | (table["n"] == 40))


def test_arguments_that_are_wrong(lossy: Scenario) -> None:
    with pytest.raises(ValueError, match="scenarios: found none"):
        quiet([])
    with pytest.raises(ValueError, match="seeds: found none"):
        quiet(lossy, [])
    with pytest.raises(ValueError, match="seeds: found -1; allowed: from 0"):
        quiet(lossy, [-1])
    with pytest.raises(ValueError, match="seeds: found 3; allowed: as many as"):
        quiet(lossy, range(3), stop=Stop())
    with pytest.raises(ValueError, match="shard: found 4 of 3; allowed: from 1 to 3"):
        quiet(lossy, shard=(4, 3))


@pytest.mark.parametrize("stop", [None, Stop(within=0.2, at_least=5, at_most=7)])
@pytest.mark.parametrize("parts", [2, 3, 16])
def test_shards_partition_the_work(
    grid: list[Scenario], tmp_path: Path, parts: int, stop: Stop | None
) -> None:
    pieces = [
        quiet(grid, range(1, 8), stop=stop, shard=(n, parts), results=tmp_path)
        for n in range(1, parts + 1)
    ]
    runs = [run for one in pieces for run in zip(one["key"], one["seed"], strict=True)]
    assert len(runs) == len(set(runs))
    seen: list[Progress] = []
    frame = quiet(grid, range(1, 8), stop=stop, results=tmp_path, progress=seen.append)
    assert seen[-1].finished == 0
    assert set(runs) == set(zip(frame["key"], frame["seed"], strict=True))
    assert_frame_equal(frame, quiet(grid, range(1, 8), stop=stop))


def test_what_is_there_is_not_run_again(grid: list[Scenario], tmp_path: Path) -> None:
    seen: list[Progress] = []
    first = quiet(grid, range(5), results=tmp_path, progress=seen.append)
    assert (seen[-1].finished, seen[-1].found, seen[-1].expected) == (15, 0, 15)
    again = quiet(grid, range(5), results=tmp_path, progress=seen.append)
    assert (seen[-1].finished, seen[-1].found) == (0, 15)
    assert_frame_equal(first, again)
    changed = [*grid[:2], grid[2].with_({"path.1.delay": "50 ms"})]
    quiet(changed, range(7), results=tmp_path, progress=seen.append)
    assert (seen[-1].finished, seen[-1].found) == (2 * 2 + 7, 10)
    assert len(polypath.load(tmp_path)) == 26
    for scenario in grid:
        file = tmp_path / f"scenario-{scenario.key}.toml"
        assert Scenario.from_file(file) == scenario


def test_another_engine_runs_anew(
    lossy: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet(lossy, range(3), results=tmp_path)
    monkeypatch.setattr(sys.modules["polypath.simulation"], "engine_version", "9.9.9")
    seen: list[Progress] = []
    assert set(quiet(lossy, range(3), results=tmp_path, progress=seen.append)["engine"]) == {
        "9.9.9"
    }
    assert seen[-1].finished == 3
    assert len(polypath.load(tmp_path)) == 6
    assert len(polypath.load(tmp_path, engine="9.9.9")) == 3


def test_a_worker_with_another_engine_is_refused(lossy: Scenario) -> None:
    class Foreign(Immediate):
        def answer(self, scenario: Scenario, seed: int) -> Any:
            return {**work.run(scenario, seed), "engine": "0.0.1"}

    with pytest.raises(polypath.EngineMismatchError, match=r"a worker has engine 0\.0\.1"):
        quiet(lossy, range(3), executor=Foreign())


def test_a_failed_run_is_a_row(
    lossy: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(scenario: Scenario, seed: int, _backend: str) -> polypath.Result:
        if seed in (2, 4):
            raise SimulationError(f"seed {seed:#x}, at 1 s: what did\nnot hold")
        return polypath.simulate(scenario, seed=seed)

    monkeypatch.setattr(work, "execute", breaks)
    seen: list[Progress] = []
    frame = quiet(lossy, range(1, 6), results=tmp_path, progress=seen.append)
    assert list(frame["status"]) == ["ok", "failed", "ok", "failed", "ok"]
    assert frame["reason"][1] == "SimulationError: seed 0x2, at 1 s: what did not hold"
    assert frame["time_from_start"].isna().tolist() == [False, True, False, True, False]
    assert seen[-1].failed == 2
    assert "2 failed" in str(seen[-1])
    summary = polypath.summary(frame)
    assert (summary["runs"][0], summary["failed"][0], summary["n"][0]) == (5, 2, 3)
    assert_frame_equal(frame, quiet(lossy, range(1, 6), results=tmp_path, progress=seen.append))
    assert seen[-1].finished == 0
    monkeypatch.undo()
    restored = quiet(lossy, range(1, 6), results=tmp_path, retry_failed=True, progress=seen.append)
    assert seen[-1].finished == 2
    assert set(restored["status"]) == {"ok"}
    assert_frame_equal(restored, quiet(lossy, range(1, 6), results=tmp_path))


class Immediate(Executor):
    """An executor that runs each task at once."""

    def __init__(self) -> None:
        self.tasks: list[list[int]] = []

    def answer(self, scenario: Scenario, seed: int) -> Any:
        return work.run(scenario, seed)

    def submit(  # type: ignore[override]
        self, function: Callable[..., Any], /, scenario: Scenario, seeds: list[int], backend: str
    ) -> Future[Any]:
        assert (function, backend) == (work.runs, "polypath")
        self.tasks.append(seeds)
        future: Future[Any] = Future()
        try:
            future.set_result([self.answer(scenario, seed) for seed in seeds])
        except Exception as error:
            future.set_exception(error)
        return future


def test_a_worker_that_loses_a_run_makes_it_a_failed_one(lossy: Scenario) -> None:
    class Forgetful(Immediate):
        def answer(self, scenario: Scenario, seed: int) -> Any:
            if seed == 1:
                raise MemoryError
            return super().answer(scenario, seed)

    frame = quiet(lossy, range(3), executor=Forgetful())
    assert list(frame["status"]) == ["ok", "failed", "ok"]
    assert frame["reason"][1] == "MemoryError"


def test_short_runs_share_a_task(lossy: Scenario) -> None:
    executor = Immediate()
    frame = quiet(lossy, range(3000), executor=executor)
    assert [seed for seeds in executor.tasks for seed in seeds] == list(frame["seed"])
    assert executor.tasks[0] == [0], "how long a run takes is not known yet"
    # Some 30 tasks, and shorter ones towards the end. On a busy machine they are more.
    assert len(executor.tasks) < 1000
    assert len(executor.tasks[-1]) == 1


def test_a_lost_task_costs_only_the_run_that_ended_it(lossy: Scenario) -> None:
    class Forgetful(Immediate):
        def answer(self, scenario: Scenario, seed: int) -> Any:
            if seed == 400:
                raise MemoryError
            return super().answer(scenario, seed)

    executor = Forgetful()
    frame = quiet(lossy, range(1000), executor=executor)
    lost = next(seeds for seeds in executor.tasks if 400 in seeds)
    assert len(lost) > 1
    assert all([seed] in executor.tasks for seed in lost), "each runs again, alone"
    assert list(frame["seed"][frame["status"] == "failed"]) == [400]


def test_workers_that_are_gone_end_the_sweep(lossy: Scenario, tmp_path: Path) -> None:
    class Broken(Immediate):
        def answer(self, scenario: Scenario, seed: int) -> Any:
            if seed == 5:
                raise BrokenExecutor("a process was terminated abruptly")
            return super().answer(scenario, seed)

    executor = Broken()
    with pytest.raises(BrokenExecutor, match="terminated"):
        quiet(lossy, range(100), executor=executor, results=tmp_path)
    finished = {seed for seeds in executor.tasks if 5 not in seeds for seed in seeds}
    assert {row["seed"] for row in load_rows(tmp_path)} == finished >= {0, 1, 2, 3}


def test_processes_give_the_same_frame(grid: list[Scenario]) -> None:
    stop = Stop(within=0.10, at_least=5, at_most=15)
    expected = quiet(grid, stop=stop)
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        assert_frame_equal(quiet(grid, stop=stop, executor=executor), expected)


def test_dask_gives_the_same_frame(grid: list[Scenario], tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    expected = quiet(grid, range(8))
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=tmp_path / "dask",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        frame = quiet(grid, range(8), executor=client.get_executor(), results=tmp_path / "runs")
        assert len(client.scheduler_info()["workers"]) == 2
    assert_frame_equal(frame, expected)


def test_mpi_gives_the_same_frame(grid: list[Scenario], tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    launcher = Path(sys.executable).with_name("mpiexec")
    if not launcher.exists():
        pytest.skip("there is no mpiexec beside Python")
    script = tmp_path / "mpi.py"
    script.write_text(
        "import sys, polypath\n"
        "from mpi4py.futures import MPIPoolExecutor\n"
        "if __name__ == '__main__':\n"
        "    texts = open(sys.argv[1]).read().split('#####')\n"
        "    grid = [polypath.Scenario.from_toml(text) for text in texts]\n"
        "    with MPIPoolExecutor() as pool:\n"
        "        frame = polypath.sweep(grid, range(8), executor=pool, progress=False)\n"
        "    frame.to_pickle(sys.argv[2])\n"
    )
    (tmp_path / "grid").write_text("#####".join(scenario.to_toml() for scenario in grid))
    command = [str(launcher), "-n", "3", sys.executable, "-m", "mpi4py.futures", str(script)]
    subprocess.run(
        [*command, str(tmp_path / "grid"), str(tmp_path / "frame")],
        check=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert_frame_equal(pd.read_pickle(tmp_path / "frame"), quiet(grid, range(8)))


KILLED = """
import os, signal, sys, polypath
scenario = polypath.Scenario.from_file(sys.argv[1])
def report(progress):
    if progress.found + progress.finished >= int(sys.argv[3]):
        print(progress.found + progress.finished, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
polypath.sweep(scenario, range(120), results=sys.argv[2], progress=report)
"""


def test_a_killed_sweep_loses_and_repeats_nothing(lossy: Scenario, tmp_path: Path) -> None:
    slow = lossy.with_({"workload.size": "10 MB"})
    file, folder = tmp_path / "slow.toml", tmp_path / "results"
    file.write_text(slow.to_toml())
    for kills in (1, 2):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, file, folder, str(25 * kills)],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        reported = int(killed.stdout)
        rows = load_rows(folder)
        assert 25 * kills <= reported <= len(rows) < 120
        assert list(folder.glob("journal-*"))
    kept = {row["seed"]: row["wall"] for row in rows}
    seen: list[Progress] = []
    frame = quiet(slow, range(120), results=folder, progress=seen.append)
    assert (seen[0].found, seen[-1].finished) == (len(kept), 120 - len(kept))
    assert list(frame["seed"]) == list(range(120))
    parts = [pd.read_parquet(part) for part in folder.glob("runs-*.parquet")]
    everything = pd.concat(parts)
    assert sorted(everything["seed"]) == list(range(120))  # each run once, in all files together
    walls = everything.set_index("seed")["wall"].to_dict()
    assert all(walls[seed] == wall for seed, wall in kept.items())
    assert not list(folder.glob("journal-*"))
    assert not list(folder.glob(".*"))


def test_ctrl_c_keeps_what_is_finished(lossy: Scenario, tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.finished >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quiet(lossy, range(50), results=tmp_path, progress=interrupt)
    assert 10 <= len(load_rows(tmp_path)) < 50
    assert len(quiet(lossy, range(50), results=tmp_path)) == 50


def test_a_store_survives_a_crash_anywhere(lossy: Scenario, tmp_path: Path) -> None:
    rows = [work.run(lossy, seed) for seed in (2**64 - 1, 1, 2)]
    store = Store(tmp_path)
    for row in rows[:2]:
        store.add(row)
    (journal,) = tmp_path.glob("journal-*.jsonl")
    before = journal.read_bytes()
    assert load_rows(tmp_path) == rows[:2]
    # The journal of a running process is not touched.
    other = Store(tmp_path)
    assert journal.exists()
    other.close()
    # Killed after the rename, before the journal was deleted; and while a line was written.
    store.close()
    journal.write_bytes(before)
    torn = tmp_path / "journal-torn.jsonl"
    torn.write_bytes(before[: before.index(b"\n") + 50])
    (tmp_path / ".runs-x.parquet.1234").write_bytes(b"half a file")
    assert len(load_rows(tmp_path)) == 2
    again = Store(tmp_path)
    again.add(rows[2])
    again.close()
    assert not list(tmp_path.glob("journal-*"))
    found = {row["seed"]: row for row in load_rows(tmp_path)}
    assert found == {row["seed"]: row for row in rows}


@pytest.mark.parametrize("kind", ["journal", "runs"])
def test_a_flipped_bit_anywhere_is_an_error(lossy: Scenario, tmp_path: Path, kind: str) -> None:
    store = Store(tmp_path)
    rows = [work.run(lossy, seed) for seed in range(5)]
    for row in rows:
        store.add(row)
    if kind == "runs":
        store.close()
    (path,) = tmp_path.glob(f"{kind}-*")
    content = path.read_bytes()
    assert load_rows(tmp_path) == rows
    for bit in random.Random(1).sample(range(8 * len(content)), 300):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        # An unfinished last line is not an error: its run was not reported as finished.
        if kind == "journal" and bit // 8 == len(content) - 1:
            continue
        with pytest.raises(DamagedStoreError, match=f"{path.name} is damaged: .*; delete it"):
            load_rows(tmp_path)
    path.write_bytes(content)
    assert load_rows(tmp_path) == rows


def test_a_long_journal_becomes_parquet_on_the_way(
    lossy: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polypath.store.ROWS_OF_A_JOURNAL", 4)
    quiet(lossy, range(10), results=tmp_path)
    sizes = sorted(len(pd.read_parquet(part)) for part in tmp_path.glob("runs-*.parquet"))
    assert sizes == [2, 4, 4]


def test_a_folder_that_is_none() -> None:
    with pytest.raises(FileNotFoundError, match="no-such-folder"):
        polypath.load("no-such-folder")


def test_progress_is_told(grid: list[Scenario]) -> None:
    seen: list[Progress] = []
    quiet(grid, stop=Stop(within=0.2, at_least=5, at_most=9), progress=seen.append)
    last = seen[-1]
    assert last.finished >= last.expected - 2
    assert last.rate > 0
    assert last.left == 0
    assert 0 < last.widest < 1
    assert last.widest_of in {f"loss {loss}" for loss in LOSSES}
    assert "widest interval" in str(last)


def test_progress_without_a_terminal_is_lines(
    lossy: Scenario, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polypath.progress.BETWEEN_LINES", 0.0)
    polypath.sweep(lossy, range(5))
    out, err = capfd.readouterr()
    assert out == ""
    assert "sweep: 5 of 5 runs, " in err


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals to pretend")
def test_progress_on_a_terminal_is_a_bar(lossy: Scenario, tmp_path: Path) -> None:
    file = tmp_path / "lossy.toml"
    file.write_text(lossy.to_toml())
    script = "import sys, polypath as p; p.sweep(p.Scenario.from_file(sys.argv[1]), range(5))"
    master, slave = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    subprocess.run([sys.executable, "-c", script, file], stderr=slave, check=True, env=environment)
    os.close(slave)
    shown = os.read(master, 100_000).decode()
    os.close(master)
    assert "5/5" in shown
    assert "runs/s" in shown


def test_a_sweep_can_be_drawn(grid: list[Scenario], tmp_path: Path) -> None:
    figure = polypath.plot(quiet(grid, range(5)), "goodput")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"loss {x}" for x in LOSSES]
    assert axes.get_xlabel().startswith("bytes delivered per second")
    figure.savefig(tmp_path / "sweep.pdf")
    figure.savefig(tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").stat().st_size > 5_000
    plt.close(figure)
