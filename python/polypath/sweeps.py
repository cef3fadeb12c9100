"""Runs many scenarios with many seeds, on any executor."""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import nullcontext, suppress
from itertools import islice
from os import PathLike

import pandas as pd

from polypath import work
from polypath.frame import frame_of_sweep
from polypath.progress import Progress, Reporter
from polypath.replications import Replications
from polypath.scenario import Scenario, labels
from polypath.simulation import Backend, engine, prepare
from polypath.statistics import Stop
from polypath.store import Row, Store


class EngineMismatchError(RuntimeError):
    """A worker has another version of the engine than the process that started the sweep."""


#: Seconds between two progress reports while no run finishes.
TICK = 0.5
#: Seconds that a task of several short runs is meant to take. To hand over a task costs an executor
#: milliseconds (Dask's scheduler, pickling), as much as a short run.
TASK = 0.25
#: Least number of seconds between two searches for the widest interval.
BETWEEN_LOOKS = 0.2


def sweep(
    scenarios: Scenario | Iterable[Scenario],
    seeds: Iterable[int] | None = None,
    *,
    stop: Stop | None = None,
    executor: Executor | None = None,
    results: str | PathLike[str] | None = None,
    shard: tuple[int, int] | None = None,
    progress: bool | Callable[[Progress], object] = True,
    retry_failed: bool = False,
    backend: Backend = "polypath",
) -> pd.DataFrame:
    """Runs scenarios with many seeds and returns a row for each run.

    All scenarios have the same seeds, so that differences between them can be taken pair by pair
    (:func:`polypath.compare`). The frame depends on scenarios, seeds, rule and engine alone: not on
    the executor, nor on interruptions.

    Args:
        scenarios: The scenarios to run; equal ones are run once.
        seeds: Roots of randomness, from 0 to 2**64 - 1, in the order in which they are used;
            1 to 30 by default, 1 to `stop.at_most` with a rule.
        stop: Run each scenario until its interval is narrow enough; without it, with all seeds.
        executor: Any object like `concurrent.futures.Executor` (processes, Dask's
            ``Client.get_executor()``, mpi4py's pool). All cores in this process by default.
        results: A folder that keeps every run as soon as it is finished. Its runs are not
            repeated; a changed scenario or another engine only runs what is new. Without it
            nothing is kept.
        shard: (3, 16) runs the third of sixteen parts; the parts partition the work exactly: by
            runs, or with a rule by scenarios. Give all parts the same `results`, then call without
            `shard` for the whole frame.
        progress: Whether to show progress on stderr, or a function that receives it after each run.
        retry_failed: Repeat runs that failed before.
        backend: The simulator, as in :func:`polypath.simulate`; "ns2" is another engine.

    Returns:
        A row for each run, in the order of scenarios and seeds. Columns: scenario (its name, or
        the values that differ), key, a column for each value that differs between the
        scenarios, seed, engine, status ("ok" or "failed"), reason, and the metrics
        (:data:`polypath.METRICS`). A run that failed has a row without metrics.

    Raises:
        ValueError: An argument is invalid; one line.
        ScenarioError: The backend does not support a scenario.
        Ns2Error: ns-2 is not installed.
        EngineMismatchError: A worker of the executor has another version of the engine.
        OSError: The folder of results cannot be written.
        KeyboardInterrupt: After Ctrl-C, once the runs in progress are finished and kept.
    """
    plans = _unique([scenarios] if isinstance(scenarios, Scenario) else scenarios)
    prepare(plans, backend)
    mine = _assign(plans, _seeds(seeds, stop), stop, shard)
    store = None if results is None else Store(results)
    found = 0
    if store is not None:
        known: defaultdict[str, dict[int, Row]] = defaultdict(dict)
        for row in store.rows([one.scenario.key for one in mine], engine(backend)):
            if row["status"] == "ok" or not retry_failed:
                known[row["key"]][row["seed"]] = row
        for one in mine:
            store.keep_scenario(one.scenario)
            one.known(known[one.scenario.key])
            found += len(one.counted())
    inside = ThreadPoolExecutor(_cores()) if executor is None else nullcontext(executor)
    try:
        with inside as pool, Reporter(progress) as reporter:
            _Sweep(mine, pool, store, reporter, found, backend).run()
    finally:
        if store is not None:
            store.close()
    return frame_of_sweep(plans, {one.scenario.key: one.counted() for one in mine})


class _Sweep:
    """A sweep in progress: keeps the executor busy, and stores every row."""

    def __init__(
        self,
        replications: Sequence[Replications],
        executor: Executor,
        store: Store | None,
        reporter: Reporter,
        found: int,
        backend: Backend,
    ) -> None:
        self._all = replications
        self._executor = executor
        self._store = store
        self._reporter = reporter
        self._width = _width(executor)
        self._backend = backend
        self._engine = engine(backend)
        self._running: dict[Future[list[Row]], tuple[Replications, list[int]]] = {}
        #: Seeds of tasks that were lost: each is tried again alone, because one run can have ended
        #: the worker of all.
        self._again: deque[tuple[Replications, int]] = deque()
        #: Seconds and number of the finished runs of a scenario.
        self._spent: dict[Replications, tuple[float, int]] = {}
        #: Scenarios that may have a run to start; those of `_waiting` wait for a run to finish.
        self._ready = deque(one for one in replications if not one.settled)
        self._waiting: set[Replications] = set()
        self._unsettled = len(self._ready)
        self._missing = sum(one.missing for one in replications)
        self._found = found
        self._finished = 0
        self._failed = sum(r["status"] == "failed" for one in replications for r in one.counted())
        self._widest = (math.nan, "")
        self._start = time.monotonic()
        self._looked = -math.inf

    def run(self) -> None:
        self._report(final=True)
        try:
            self._fill()
            while self._unsettled:
                self._wait()
                self._fill()
            self._report(final=True)
        except KeyboardInterrupt:
            kept = "what is finished is kept" if self._store else "nothing is kept: no `results`"
            self._reporter.tell(f"interrupted after {self._finished} runs; {kept}")
            raise
        finally:
            self._drain()

    def _fill(self) -> None:
        """Starts runs of the scenarios in turn, so that all intervals get narrower together."""
        while self._again and len(self._running) < self._width:
            one, seed = self._again.popleft()
            self._submit(one, [seed])
        while self._ready and len(self._running) < self._width:
            one = self._ready.popleft()
            seeds = self._next_seeds(one)
            if seeds:
                self._submit(one, seeds)
                self._ready.append(one)
            elif not one.settled:
                self._waiting.add(one)

    def _submit(self, one: Replications, seeds: list[int]) -> None:
        future = self._executor.submit(work.runs, one.scenario, seeds, self._backend)
        self._running[future] = (one, seeds)

    def _next_seeds(self, one: Replications) -> list[int]:
        """The seeds of the next task: one, until it is known how long a run takes.

        Towards the end tasks get shorter, so that the workers finish together.
        """
        spent, runs = self._spent.get(one, (0.0, 0))
        most = int(TASK * runs / spent) if spent > 0 else 1
        most = max(min(most, self._missing // (2 * self._width)), 1)
        return list(islice(iter(one.next_seed, None), most))

    def _wait(self) -> None:
        done, _ = wait(self._running, timeout=TICK, return_when=FIRST_COMPLETED)
        for future in done:
            self._take(future)
            self._report()
        if not done:
            self._report()

    def _take(self, future: Future[list[Row]]) -> None:
        one, seeds = self._running.pop(future)
        for row in self._rows(future, one, seeds):
            if self._store is not None:
                self._store.add(row)
            settled, missing = one.settled, one.missing
            one.finished(row)
            self._finished += 1
            self._failed += row["status"] == "failed"
            self._missing += one.missing - missing
            self._unsettled -= one.settled and not settled
            if row["status"] == "ok":
                spent, runs = self._spent.get(one, (0.0, 0))
                self._spent[one] = (spent + row["wall"], runs + 1)
        if one in self._waiting:
            self._waiting.remove(one)
            self._ready.append(one)

    def _rows(self, future: Future[list[Row]], one: Replications, seeds: list[int]) -> list[Row]:
        try:
            rows = future.result()
        except BrokenExecutor:
            raise
        except Exception as error:  # the worker or its result is lost
            if len(seeds) > 1:
                self._again.extend((one, seed) for seed in seeds)
                return []
            identity = {"key": one.scenario.key, "seed": seeds[0], "engine": self._engine}
            return [identity | work.failure(error)]
        for row in rows:
            if row["engine"] != self._engine:
                raise EngineMismatchError(
                    f"a worker has engine {row['engine']}, this process {self._engine}"
                )
        return rows

    def _drain(self) -> None:
        """Cancels waiting runs, and stores those that were running."""
        for future in [future for future in self._running if future.cancel()]:
            del self._running[future]
        while self._running:
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                # The first of these errors has been raised already.
                with suppress(BrokenExecutor, EngineMismatchError):
                    self._take(future)

    def _report(self, final: bool = False) -> None:
        now = time.monotonic()
        if final or now - self._looked > BETWEEN_LOOKS:
            widths = ((one.widest, one.label) for one in self._all)
            known = (width for width in widths if not math.isnan(width[0]))
            self._looked, self._widest = now, max(known, default=(math.nan, ""))
        elapsed = now - self._start
        rate = self._finished / elapsed if elapsed > 0 else 0.0
        left = self._missing / rate if rate > 0 else math.inf
        self._reporter.show(
            Progress(
                finished=self._finished,
                found=self._found,
                failed=self._failed,
                expected=self._found + self._finished + self._missing,
                rate=rate,
                left=left if self._missing else 0.0,
                widest=self._widest[0],
                widest_of=self._widest[1],
            )
        )


def _unique(scenarios: Iterable[Scenario]) -> list[Scenario]:
    plans = list({scenario.key: scenario for scenario in scenarios}.values())
    if not plans:
        raise ValueError("scenarios: found none; allowed: at least one")
    return plans


def _seeds(seeds: Iterable[int] | None, stop: Stop | None) -> list[int]:
    if seeds is None:
        return list(range(1, (stop.at_most if stop else 30) + 1))
    chosen = list(dict.fromkeys(int(seed) for seed in seeds))
    for seed in chosen:
        if not 0 <= seed < 2**64:
            raise ValueError(f"seeds: found {seed}; allowed: from 0 to 2**64 - 1")
    if not chosen:
        raise ValueError("seeds: found none; allowed: at least one")
    if stop and len(chosen) < stop.at_least:
        raise ValueError(
            f"seeds: found {len(chosen)}; allowed: as many as stop.at_least ({stop.at_least})"
        )
    return chosen


def _assign(
    plans: list[Scenario], seeds: list[int], stop: Stop | None, shard: tuple[int, int] | None
) -> list[Replications]:
    """The work of this process: everything, or its shard."""
    number, of = shard or (1, 1)
    if not 1 <= number <= of:
        raise ValueError(f"shard: found {number} of {of}; allowed: from 1 to {of}")
    mine = []
    for index, (scenario, label) in enumerate(zip(plans, labels(plans), strict=True)):
        if stop is not None:
            own = seeds if index % of == number - 1 else []
        else:
            first = index * len(seeds)
            own = [s for i, s in enumerate(seeds) if (first + i) % of == number - 1]
        if own:
            mine.append(Replications(scenario, label, own, stop))
    return mine


def _width(executor: Executor) -> int:
    """Number of runs to have in progress: workers never wait, and few runs are unneeded."""
    workers = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)
    if workers is None:
        client = getattr(executor, "_client", None)  # Dask
        workers = _cores() if client is None else sum(client.nthreads().values())
    threads = isinstance(executor, ThreadPoolExecutor)
    return max(int(workers), 1) * (1 if threads else 2)


def _cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
