"""Runs of grids, and the sources from which claims take their numbers."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polypath._core import ScenarioError
from polypath.ns2.transport import PROFILE
from polypath.progress import Progress
from polypath.result import Result
from polypath.scenario import Scenario
from polypath.simulation import Backend, simulate, simulate_many
from polypath.statistics import (
    Interval,
    error_of_unpaired,
    interval,
    medians,
    ratio,
    ratio_of_unpaired,
)
from polypath.sweeps import sweep

Value = TypeVar("Value")

#: Transfer times of single runs.
Times: TypeAlias = NDArray[np.float64]

#: The papers' transfer time: from the application's send to the last byte delivered.
TRANSFER_TIME = "time_from_start"


class Setting(Protocol):
    """One point of a paper's figures: the parameters that it varies, as a frozen dataclass."""

    def scenario(self) -> Scenario:
        """The scenario of this point.

        Raises:
            ScenarioError: The engine does not support a policy, profile or key of it yet.
        """

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""


def metric_of(setting: Setting) -> str:
    """The metric that is compared at a point: its `metric`, or the transfer time."""
    return str(getattr(setting, "metric", TRANSFER_TIME))


@runtime_checkable
class Observed(Protocol):
    """A point with numbers of its own, in addition to the metrics of a run."""

    def scenario(self) -> Scenario:
        """As in :class:`Setting`."""

    def labels(self) -> dict[str, Any]:
        """As in :class:`Setting`."""

    def observe(self, result: Result) -> dict[str, float]:
        """The point's own numbers, from a run whose packets are kept."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The runs of a figure: points, each with `seeds` seeds from :func:`first_seed` on."""

    settings: tuple[Setting, ...]
    seeds: int
    #: Points whose runs are all kept with their samples over time.
    traced: tuple[Setting, ...] = ()
    #: Points that decide a statement, each with its own number of seeds, which follows from the
    #: interval of the grid's runs (`Check.runs_to_decide`; twice as many suffice if the mean stays
    #: near). All of them are run, whatever the results in between: a rule that stops once the
    #: interval is on one side would need a wider interval.
    more: tuple[tuple[Setting, int], ...] = ()


class NotImplementedYetError(LookupError):
    """The engine rejects a scenario, because it does not support a part of it."""


class NotThereError(LookupError):
    """There are no runs of this point."""


class Source(ABC):
    """The source of a claim's numbers: polypath's runs, or ns-2's results."""

    def __init__(self) -> None:
        #: Notes on the numbers that were used, which are shown with the finding.
        self.notes: list[str] = []
        #: The points that were used, in their order.
        self.used: dict[Setting, None] = {}

    @property
    @abstractmethod
    def settings(self) -> Collection[Setting]:
        """The points of this source."""

    @abstractmethod
    def mean(self, setting: Setting, metric: str = TRANSFER_TIME) -> Interval:
        """Mean of a metric at a point.

        Raises:
            NotImplementedYetError: The engine does not support the point.
            NotThereError: There is no such point or metric.
        """

    @abstractmethod
    def ratio(self, base: Setting, setting: Setting) -> Interval:
        """Mean transfer time of `setting` as a multiple of that of `base`.

        Raises:
            NotImplementedYetError: The engine does not support a point.
            NotThereError: There is no such point.
        """

    @abstractmethod
    def error_of_ratio(self, base: Setting, setting: Setting, runs: int) -> float:
        """The half-width that the ratio has if each point has this number of independent runs.

        Raises:
            NotImplementedYetError: The engine does not support a point.
            NotThereError: There is no such point.
        """

    def ratio_of_medians(self, base: Setting, setting: Setting) -> Interval:
        """Median transfer time of `setting` as a multiple of that of `base`; only of :class:`Runs`.

        Raises:
            NotImplementedYetError: The engine does not support a point.
            NotThereError: Single runs are not known.
        """
        raise NotThereError(f"no single runs of {base} and {setting}")

    @abstractmethod
    def failed_over(self, setting: Setting) -> tuple[int, int]:
        """Runs of a point in which the primary path became inactive, and all runs.

        Raises:
            NotImplementedYetError: The engine does not support the point.
            NotThereError: It is not known for any run.
        """

    def results(self, setting: Setting) -> Sequence[Result]:
        """Every run of a point with its samples over time; only :class:`Runs` has these.

        Raises:
            NotImplementedYetError: The engine does not support the point.
            NotThereError: There are none.
        """
        raise NotThereError(f"no traces of {setting}")

    def frame(self, setting: Setting) -> pd.DataFrame:
        """A row for each run of a point; only :class:`Runs` has these.

        Raises:
            NotImplementedYetError: The engine does not support the point.
            NotThereError: There are none.
        """
        raise NotThereError(f"no single runs of {setting}")


class Runs(Source):
    """Runs that :func:`measure` has made."""

    def __init__(
        self,
        frames: Mapping[Setting, pd.DataFrame],
        unknown: Mapping[Setting, str],
        traces: Mapping[Setting, Sequence[Result]],
    ) -> None:
        super().__init__()
        self.frames = frames
        #: Points that the engine rejects, each with the reason.
        self.unknown = unknown
        self.traces = traces

    @property
    def settings(self) -> Collection[Setting]:
        """The requested points, including those that the engine does not support."""
        return [*self.frames, *self.unknown]

    def frame(self, setting: Setting) -> pd.DataFrame:
        """A row for each run of a point: seed, status and metrics."""
        self.used[setting] = None
        return _look_up(self.frames, setting, self.unknown)

    def mean(self, setting: Setting, metric: str = TRANSFER_TIME) -> Interval:
        """Mean of a metric at a point, over the runs that have a value."""
        frame = self.frame(setting)
        self._tell_of_missing(setting, frame)
        return interval(frame[metric].astype(float))

    def ratio(self, base: Setting, setting: Setting) -> Interval:
        """The ratio over runs with the same seeds, which have the same losses."""
        first, second, paired = self._pairs(base, setting)
        return ratio(first, second) if paired else ratio_of_unpaired(first, second)

    def ratio_of_medians(self, base: Setting, setting: Setting) -> Interval:
        """The ratio of medians over runs with the same seeds."""
        first, second, paired = self._pairs(base, setting)
        if not paired:
            raise NotThereError(f"not the same seeds: {base} and {setting}")
        return medians(first, second)

    def error_of_ratio(self, base: Setting, setting: Setting, runs: int) -> float:
        """From the spread of single runs, which the paper's had as well."""
        first, second, _ = self._pairs(base, setting)
        return error_of_unpaired(first, second, runs)

    def _pairs(self, base: Setting, setting: Setting) -> tuple[Times, Times, bool]:
        """The times of both points, and whether they have the same seeds."""
        below, above = self.frame(base), self.frame(setting)
        for one, frame in ((base, below), (setting, above)):
            self._tell_of_missing(one, frame)
        pairs = below.set_index("seed")[[TRANSFER_TIME]].join(
            above.set_index("seed")[TRANSFER_TIME].rename("above"), how="inner"
        )
        if len(pairs):
            first, second = pairs.astype(float).to_numpy().T
            return first, second, True
        return _times(below), _times(above), False

    def failed_over(self, setting: Setting) -> tuple[int, int]:
        """Runs of a point in which the primary path became inactive, and all runs."""
        failures = self.frame(setting)["path.0.failures"]
        return int((failures > 0).sum()), len(failures)

    def results(self, setting: Setting) -> Sequence[Result]:
        """Every run of a point with its samples over time."""
        self.used[setting] = None
        return _look_up(self.traces, setting, self.unknown)

    def _tell_of_missing(self, setting: Setting, frame: pd.DataFrame) -> None:
        missing = int(frame[TRANSFER_TIME].isna().sum())
        if missing:
            self.notes.append(f"{missing} of {len(frame)} runs did not finish: {setting}")


def _times(frame: pd.DataFrame) -> Times:
    return np.asarray(frame[TRANSFER_TIME].astype(float).dropna(), dtype=np.float64)


def _look_up(
    table: Mapping[Setting, Value], setting: Setting, unknown: Mapping[Setting, str]
) -> Value:
    if setting in table:
        return table[setting]
    if setting in unknown:
        raise NotImplementedYetError(unknown[setting])
    raise NotThereError(f"not measured: {setting}")


def measure(
    grids: Iterable[Grid],
    *,
    results: str | PathLike[str] | None = None,
    progress: bool | Callable[[Progress], object] = True,
    backend: Backend | None = None,
) -> Runs:
    """Runs the grids; a point of several grids is run once.

    Args:
        grids: The grids to run.
        results: A folder that keeps every run, so that interrupted work can go on.
        progress: As in :func:`polypath.sweep`.
        backend: Another simulator, as in :func:`polypath.sweep`.

    Returns:
        The runs, and the points that the engine rejects.

    Raises:
        RuntimeError: A run failed, or there is no program `ns`.
    """
    seeds: dict[Setting, int] = {}
    traced: dict[Setting, int] = {}
    for grid in grids:
        for setting, count in (*((one, grid.seeds) for one in grid.settings), *grid.more):
            seeds[setting] = max(seeds.get(setting, 0), count)
        for setting in grid.traced:
            traced[setting] = max(traced.get(setting, 0), grid.seeds)
    scenarios: dict[Setting, Scenario] = {}
    unknown: dict[Setting, str] = {}
    for setting in {**seeds, **traced}:
        try:
            scenarios[setting] = _as_run(setting.scenario(), backend)
        except ScenarioError as error:
            unknown[setting] = _short(error)
    frames: dict[Setting, pd.DataFrame] = {}
    for own_seeds, settings in _batches(seeds, scenarios, backend):
        try:
            frame = sweep(
                [scenarios[setting] for setting in settings],
                own_seeds,
                results=results,
                progress=progress,
                backend=backend or "polypath",
            )
        except ScenarioError as error:  # another simulator rejects the one scenario of this batch
            unknown[settings[0]] = _short(error)
            continue
        _check(frame)
        own = dict(iter(frame.groupby("key")))
        frames |= {setting: own[scenarios[setting].key] for setting in settings}
    frames |= _observe(seeds, scenarios, unknown, backend)
    return Runs(frames, unknown, _trace(traced, scenarios, unknown, backend))


def _observe(
    seeds: Mapping[Setting, int],
    scenarios: Mapping[Setting, Scenario],
    unknown: dict[Setting, str],
    backend: Backend | None,
) -> dict[Setting, pd.DataFrame]:
    """A row for each run of the points that have numbers of their own."""
    frames: dict[Setting, pd.DataFrame] = {}
    for setting, count in seeds.items():
        if setting not in scenarios or not isinstance(setting, Observed):
            continue
        rows = []
        try:
            for seed in _seeds(scenarios[setting], count):
                result = simulate(
                    scenarios[setting], seed=seed, packets=True, backend=backend or "polypath"
                )
                rows.append({"seed": seed, **result.metrics, **setting.observe(result)})
        except ScenarioError as error:
            unknown[setting] = _short(error)
            continue
        frames[setting] = pd.DataFrame(rows)
    return frames


def _batches(
    seeds: Mapping[Setting, int], scenarios: Mapping[Setting, Scenario], backend: Backend | None
) -> Iterator[tuple[range, list[Setting]]]:
    """Points with the same seeds; one by one for a simulator that may reject some."""
    by_seeds: defaultdict[range, list[Setting]] = defaultdict(list)
    for setting, count in seeds.items():
        if setting in scenarios and not isinstance(setting, Observed):
            by_seeds[_seeds(scenarios[setting], count)].append(setting)
    for own, settings in by_seeds.items():
        if backend is None:
            yield own, settings
        else:
            yield from ((own, [setting]) for setting in settings)


#: What a path's losses depend on, and the largest number of seeds of a point.
_OF_LOSSES = ("loss", "rate", "delay", "cross_traffic")
_SEEDS_OF_A_POINT = 100_000


def first_seed(scenario: Scenario) -> int:
    """The first seed of a point.

    Points with the same primary path and the same file share their seeds, so that policies meet the
    same losses there. All others have seeds of their own: what is unusual in one range of seeds
    does not affect several results at once. Where nothing is lost at random, the seed is 1.
    """
    table = scenario.to_dict()
    primary = {key: value for key, value in table.get("path", [{}])[0].items() if key in _OF_LOSSES}
    if not primary.keys() & {"loss", "cross_traffic"}:
        return 1
    workload = {key: table.get("workload", {}).get(key) for key in ("kind", "size", "messages")}
    text = json.dumps([primary, workload], sort_keys=True)
    place = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
    return 1 + place * _SEEDS_OF_A_POINT


def _seeds(scenario: Scenario, count: int) -> range:
    first = first_seed(scenario)
    return range(first, first + count)


def _as_run(scenario: Scenario, backend: Backend | None) -> Scenario:
    """Adapts a scenario to a backend: Debian's ns-2 has one release of the module, the last.

    Of the papers' constants, only the four missing reports can be set in it.
    """
    if backend != "ns2":
        return scenario
    return scenario.with_(
        {
            "transport.profile": PROFILE,
            "transport.path_confirmation": None,
            "transport.fast_retransmit_reports": 4,
        }
    )


def _short(error: Exception) -> str:
    """The error without the list of allowed values."""
    return str(error).partition("; allowed")[0]


def _check(frame: pd.DataFrame) -> None:
    failed = frame.loc[frame["status"] == "failed", "reason"]
    if len(failed):
        raise RuntimeError(f"{len(failed)} of {len(frame)} runs failed, first: {failed.iloc[0]}")


def _trace(
    wanted: Mapping[Setting, int],
    scenarios: Mapping[Setting, Scenario],
    unknown: dict[Setting, str],
    backend: Backend | None,
) -> dict[Setting, list[Result]]:
    traces = {}
    for setting, count in wanted.items():
        if setting not in scenarios:
            continue
        jobs = [(scenarios[setting], seed) for seed in _seeds(scenarios[setting], count)]
        if backend is not None:
            try:
                traces[setting] = [
                    simulate(scenario, seed=seed, series=True, backend=backend)
                    for scenario, seed in jobs
                ]
            except ScenarioError as error:
                unknown[setting] = _short(error)
            continue
        done = simulate_many(jobs, series=True)
        for one in done:
            if isinstance(one, Exception):
                raise one
        traces[setting] = [one for one in done if isinstance(one, Result)]
    return traces
