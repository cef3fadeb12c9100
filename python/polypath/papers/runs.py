"""Measured runs: what a grid asks for, what the engine knows, where claims look things up."""

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
    """What a paper varies, as a frozen dataclass: one point of its figures."""

    def scenario(self) -> Scenario:
        """The scenario of this point.

        Raises:
            ScenarioError: The engine does not know a policy, profile or key of it yet.
        """

    def labels(self) -> dict[str, Any]:
        """The columns that say which point it is."""


def metric_of(setting: Setting) -> str:
    """What is compared at a point: its `metric`, or the transfer time."""
    return str(getattr(setting, "metric", TRANSFER_TIME))


@runtime_checkable
class Observed(Protocol):
    """A point with numbers of its own, which the metrics of a run do not have."""

    def scenario(self) -> Scenario:
        """As of :class:`Setting`."""

    def labels(self) -> dict[str, Any]:
        """As of :class:`Setting`."""

    def observe(self, result: Result) -> dict[str, float]:
        """These numbers of a run, of which the packets are kept."""


@dataclass(frozen=True, slots=True)
class Grid:
    """What has to be run: points, each with the seeds 1 to `seeds`."""

    settings: tuple[Setting, ...]
    seeds: int
    #: Points of which every run is kept with its samples over time.
    traced: tuple[Setting, ...] = ()
    #: Points that a statement hangs on, each with seeds of its own: from the interval that the
    #: grid's number gave follows how many it takes (`Check.runs_to_decide`, which twice as many
    #: reach if the mean stays near). So many are run, whatever they say on the way: a rule that
    #: stops once the interval is on one side would need a wider one.
    more: tuple[tuple[Setting, int], ...] = ()


class NotImplementedYetError(LookupError):
    """The engine refuses a scenario: it does not know what it needs."""


class NotThereError(LookupError):
    """There are no runs of this point here."""


class Source(ABC):
    """Where a claim takes its numbers from: our runs, or those of ns-2."""

    def __init__(self) -> None:
        #: What has to be known about the numbers that were taken; told with the finding.
        self.notes: list[str] = []

    @property
    @abstractmethod
    def settings(self) -> Collection[Setting]:
        """The points that there are."""

    @abstractmethod
    def mean(self, setting: Setting, metric: str = TRANSFER_TIME) -> Interval:
        """Mean of a metric at a point.

        Raises:
            NotImplementedYetError: The engine does not know what the point needs.
            NotThereError: There is no such point or metric.
        """

    @abstractmethod
    def ratio(self, base: Setting, setting: Setting) -> Interval:
        """Mean transfer time of `setting` as a multiple of that of `base`.

        Raises:
            NotImplementedYetError: The engine does not know what a point needs.
            NotThereError: There is no such point.
        """

    @abstractmethod
    def failed_over(self, setting: Setting) -> tuple[int, int]:
        """Runs of a point in which the primary path became inactive, and all runs.

        Raises:
            NotImplementedYetError: The engine does not know what the point needs.
            NotThereError: There are none of which that is known.
        """

    def results(self, setting: Setting) -> Sequence[Result]:
        """Every run of a point with its samples over time; only our own runs have that.

        Raises:
            NotImplementedYetError: The engine does not know what the point needs.
            NotThereError: There are none.
        """
        raise NotThereError(f"no traces of {setting}")

    def frame(self, setting: Setting) -> pd.DataFrame:
        """A row for each run of a point; only our own runs have that.

        Raises:
            NotImplementedYetError: The engine does not know what the point needs.
            NotThereError: There are none.
        """
        raise NotThereError(f"no single runs of {setting}")


class Runs(Source):
    """Our own runs."""

    def __init__(
        self,
        frames: Mapping[Setting, pd.DataFrame],
        unknown: Mapping[Setting, str],
        traces: Mapping[Setting, Sequence[Result]],
    ) -> None:
        super().__init__()
        self.frames = frames
        #: Points that the engine refuses, each with its reason.
        self.unknown = unknown
        self.traces = traces

    @property
    def settings(self) -> Collection[Setting]:
        """The points that were asked for, those that the engine does not know among them."""
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
        """Of runs with the same seeds, so that both met the same losses."""
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
    """Runs what the grids ask for; a point that several ask for is run once.

    Args:
        grids: What is wanted.
        results: A folder that keeps every run: what was interrupted goes on from there.
        progress: As in :func:`polypath.sweep`.
        backend: Another simulator, as in :func:`polypath.sweep`.

    Returns:
        The runs, and the points that the engine refuses.

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
        except ScenarioError as error:  # another simulator refuses the one scenario of this batch
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
    """Of the points that have numbers of their own: a row for each run."""
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
    """Points with the same number of seeds; one by one for a simulator that may refuse some."""
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
    """The scenario for a simulator: Debian's ns-2 has one release of the module, the last.

    Of the papers' constants, only the four missing reports can be set there.
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
    """What is wrong, without everything that is allowed."""
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
