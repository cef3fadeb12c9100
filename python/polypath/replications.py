"""Replications of a scenario: seed after seed, until the stopping rule holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from polypath.scenario import Scenario
from polypath.statistics import Interval, Stop, interval
from polypath.store import Row


class Replications:
    """The runs of one scenario: those that are finished, and those that are still needed.

    The first n seeds alone decide how many runs count, so that the number does not depend on the
    order in which runs finish. To keep many workers busy, runs may be started that turn out not to
    be needed: they are kept, but do not count.
    """

    def __init__(
        self, scenario: Scenario, label: str, seeds: Sequence[int], stop: Stop | None
    ) -> None:
        self.scenario = scenario
        self.label = label
        self._seeds = seeds if stop is None else seeds[: stop.at_most]
        self._stop = stop
        self._rows: dict[int, Row] = {}
        #: Index of the next seed to start: the runs of all seeds before it are finished or running.
        self._next = 0
        #: Number of seeds at the beginning that all have rows.
        self._prefix = 0
        #: Number of runs that count, once it is known.
        self._settled: int | None = None
        self._intervals: list[Interval] = []
        self._advance()

    def known(self, rows: Mapping[int, Row]) -> None:
        """Adds runs that exist already."""
        self._rows |= {seed: rows[seed] for seed in self._seeds if seed in rows}
        self._advance()

    def next_seed(self) -> int | None:
        """The seed of the next run, which then counts as started; `None` if there is none now."""
        if self._settled is not None:
            return None
        expected = self.expected
        while self._next < expected:
            seed = self._seeds[self._next]
            self._next += 1
            if seed not in self._rows:
                return seed
        return None

    def finished(self, row: Row) -> None:
        """Adds a finished run."""
        self._rows[row["seed"]] = row
        self._advance()

    @property
    def settled(self) -> bool:
        """Whether there are enough runs."""
        return self._settled is not None

    @property
    def expected(self) -> int:
        """Estimate of the number of runs that will count."""
        most = len(self._seeds)
        if self._settled is not None:
            return self._settled
        if self._stop is None:
            return most
        if self._prefix < self._stop.at_least:
            return min(self._stop.at_least, most)
        # The half-width is proportional to one over the square root of n.
        factor = self.widest / self._stop.within
        needed = math.ceil(self._prefix * factor**2) if math.isfinite(factor) else most
        return min(max(needed, self._prefix + 1), most)

    @property
    def missing(self) -> int:
        """Number of expected runs that have no row yet."""
        if self._stop is None:
            return len(self._seeds) - len(self._rows)
        return sum(seed not in self._rows for seed in self._seeds[: self.expected])

    @property
    def widest(self) -> float:
        """The widest interval of the rule's metrics as a share of its mean; NaN if not known."""
        relative = [estimate.relative for estimate in self._intervals if estimate.n > 1]
        if len(relative) < len(self._intervals):
            return math.inf
        return max(relative, default=math.nan)

    def counted(self) -> list[Row]:
        """The rows so far that count, in the order of the seeds."""
        count = len(self._seeds) if self._settled is None else self._settled
        return [self._rows[seed] for seed in self._seeds[:count] if seed in self._rows]

    def _advance(self) -> None:
        while self._settled is None:
            if self._prefix == len(self._seeds):
                self._settled = self._prefix
            elif self._seeds[self._prefix] in self._rows:
                self._prefix += 1
                if self._enough():
                    self._settled = self._prefix
            else:
                return

    def _enough(self) -> bool:
        if self._stop is None or self._prefix < self._stop.at_least:
            return False
        rows = [self._rows[seed] for seed in self._seeds[: self._prefix]]
        self._intervals = [
            interval(
                [math.nan if row.get(metric) is None else row[metric] for row in rows],
                self._stop.level,
            )
            for metric in self._stop.metrics
        ]
        enough = self._stop.at_least
        return all(one.n >= enough and one.relative <= self._stop.within for one in self._intervals)
