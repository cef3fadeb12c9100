"""How often a scenario is run: seed after seed, until the stopping rule holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from polypath.scenario import Scenario
from polypath.statistics import Interval, Stop, interval
from polypath.store import Row


class Replications:
    """The runs of one scenario: which are there, which are needed, and when there are enough.

    How many count is decided by the first n seeds alone, so that it does not depend on the order in
    which runs finish. To keep many workers busy, runs may be started that turn out not to be
    needed: they are kept, but do not count.
    """

    def __init__(
        self, scenario: Scenario, label: str, seeds: Sequence[int], stop: Stop | None
    ) -> None:
        self.scenario = scenario
        self.label = label
        self._seeds = seeds if stop is None else seeds[: stop.at_most]
        self._stop = stop
        self._rows: dict[int, Row] = {}
        #: Everything before this one is there or under way.
        self._next = 0
        #: The first so many seeds have rows.
        self._prefix = 0
        #: How many of them count, once that is known.
        self._settled: int | None = None
        self._intervals: list[Interval] = []
        self._advance()

    def known(self, rows: Mapping[int, Row]) -> None:
        """These runs are there already."""
        self._rows |= {seed: rows[seed] for seed in self._seeds if seed in rows}
        self._advance()

    def next_seed(self) -> int | None:
        """The next run to start, which is then under way; `None` if there is none for now."""
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
        """A run is finished."""
        self._rows[row["seed"]] = row
        self._advance()

    @property
    def settled(self) -> bool:
        """There are enough runs."""
        return self._settled is not None

    @property
    def expected(self) -> int:
        """How many runs will count, as far as one can tell now."""
        most = len(self._seeds)
        if self._settled is not None:
            return self._settled
        if self._stop is None:
            return most
        if self._prefix < self._stop.at_least:
            return min(self._stop.at_least, most)
        # The half-width goes with one over the root of n.
        factor = self.widest / self._stop.within
        needed = math.ceil(self._prefix * factor**2) if math.isfinite(factor) else most
        return min(max(needed, self._prefix + 1), most)

    @property
    def missing(self) -> int:
        """How many of the expected runs are not there yet."""
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
        """The rows that count, in the order of the seeds; as far as they are there."""
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
