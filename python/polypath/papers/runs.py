"""Runs of grids, and the sources from which claims take their numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Protocol, TypeVar, runtime_checkable

import pandas as pd

from polypath._core import ScenarioError
from polypath.ns2.transport import PROFILE
from polypath.progress import Progress
from polypath.result import Result
from polypath.scenario import Scenario
from polypath.simulate import Backend, simulate, simulate_many
from polypath.statistics import Interval, interval, ratio
from polypath.sweep import sweep

Value = TypeVar("Value")

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
    """The runs of a figure: points, each with the seeds 1 to `seeds`."""

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
        return _look_up(self.frames, setting, self.unknown)

    def mean(self, setting: Setting, metric: str = TRANSFER_TIME) -> Interval:
        """Mean of a metric at a point, over the runs that have a value."""
        frame = self.frame(setting)
        self._tell_of_missing(setting, frame)
        return interval(frame[metric].astype(float))

    def ratio(self, base: Setting, setting: Setting) -> Interval:
        """The ratio over runs with the same seeds, which have the same losses."""
        below, above = self.frame(base), self.frame(setting)
        for one, frame in ((base, below), (setting, above)):
            self._tell_of_missing(one, frame)
        pairs = below.set_index("seed")[[TRANSFER_TIME]].join(
            above.set_index("seed")[TRANSFER_TIME].rename("above"), how="inner"
        )
        first, second = pairs.astype(float).to_numpy().T
        return ratio(first, second)

    def failed_over(self, setting: Setting) -> tuple[int, int]:
        """Runs of a point in which the primary path became inactive, and all runs."""
        failures = self.frame(setting)["path.0.failures"]
        return int((failures > 0).sum()), len(failures)

    def results(self, setting: Setting) -> Sequence[Result]:
        """Every run of a point with its samples over time."""
        return _look_up(self.traces, setting, self.unknown)

    def _tell_of_missing(self, setting: Setting, frame: pd.DataFrame) -> None:
        missing = int(frame[TRANSFER_TIME].isna().sum())
        if missing:
            self.notes.append(f"{missing} of {len(frame)} runs did not finish: {setting}")


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
    for count, settings in _batches(seeds, scenarios, backend):
        try:
            frame = sweep(
                [scenarios[setting] for setting in settings],
                range(1, count + 1),
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
            for seed in range(1, count + 1):
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
) -> Iterator[tuple[int, list[Setting]]]:
    """Points with the same number of seeds; one by one for a simulator that may reject some."""
    by_count: defaultdict[int, list[Setting]] = defaultdict(list)
    for setting, count in seeds.items():
        if setting in scenarios and not isinstance(setting, Observed):
            by_count[count].append(setting)
    for count, settings in sorted(by_count.items()):
        if backend is None:
            yield count, settings
        else:
            yield from ((count, [setting]) for setting in settings)


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
        jobs = [(scenarios[setting], seed) for seed in range(1, count + 1)]
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
