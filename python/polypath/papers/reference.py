"""ns-2's results (``polypath/data/ns2``), and whether polypath's runs agree with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

import pandas as pd
from scipy.special import stdtrit

from polypath.papers.runs import (
    TRANSFER_TIME,
    NotThereError,
    Runs,
    Setting,
    Source,
    metric_of,
)
from polypath.statistics import LEVEL, Interval

PAPERS = (
    "caro2006-retransmission",
    "caro2006-failover",
    "iyengar2004",
    "natarajan2009",
    "qiao2008",
)
#: A point agrees if the means differ by less than this share, whatever the intervals.
CLOSE = 0.05


def reference(paper: str | None = None) -> pd.DataFrame:
    """Results of the papers' own simulator, a row for each point.

    ``polypath/data/ns2/README.md`` describes the columns and variants. Times are seconds from
    the application's send to the last byte delivered (`mean`, `sd`, and `half_width` of the 90 %
    interval); a parameter that a paper does not vary is NaN.

    Args:
        paper: One of "caro2006-retransmission", "caro2006-failover", "iyengar2004",
            "natarajan2009", "qiao2008"; all by default, with their names in the column "paper".

    Raises:
        ValueError: There is no such paper.
    """
    if paper is not None and paper not in PAPERS:
        raise ValueError(f'paper: no results of "{paper}"; allowed: {", ".join(PAPERS)}')
    wanted = PAPERS if paper is None else (paper,)
    return pd.concat([_of_paper(name) for name in wanted], ignore_index=True)


@cache
def _of_paper(paper: str) -> pd.DataFrame:
    file = resources.files("polypath") / "data" / "ns2" / f"{paper}.csv"
    with file.open(encoding="utf-8") as text:
        frame = pd.read_csv(text, keep_default_na=False, na_values=[""])
    if "paper" in frame:  # qiao2008: the time in the paper's table
        frame = frame.rename(columns={"paper": "stated"})
    frame.insert(0, "paper", paper)
    return frame


#: Name of the results of the module of the papers' year, in a report.
RELEASE_36 = "ns-2, release 3.6 of 2006"


@cache
def release_36(file: str) -> pd.DataFrame:
    """Results of the module of the papers' year: see ``polypath/data/ns2/README.md``."""
    place = resources.files("polypath") / "data" / "ns2" / "release-3.6" / f"{file}.csv"
    with place.open(encoding="utf-8") as text:
        return pd.read_csv(text, keep_default_na=False, na_values=[""])


@dataclass(frozen=True, slots=True)
class Sample:
    """A mean that is known with its number of runs and standard deviation only."""

    n: int
    mean: float
    sd: float
    #: Runs with a failover of the primary, and all runs for which this is known.
    failed_over: tuple[int, int] = (0, 0)

    def interval(self, level: float = LEVEL) -> Interval:
        """Student-t interval of the mean."""
        if self.n < 2:
            return Interval(self.mean, math.inf, level, self.n)
        half = float(stdtrit(self.n - 1, (1 + level) / 2)) * self.sd / math.sqrt(self.n)
        return Interval(self.mean, half, level, self.n)


def pooled(samples: Iterable[Sample]) -> Sample:
    """Pools independent samples of the same point."""
    samples = [sample for sample in samples if sample.n]
    n = sum(sample.n for sample in samples)
    mean = math.fsum(sample.n * sample.mean for sample in samples) / n
    squares = math.fsum(
        (sample.n - 1) * sample.sd**2 + sample.n * (sample.mean - mean) ** 2 for sample in samples
    )
    failed_over = sum(one.failed_over[0] for one in samples)
    known = sum(one.failed_over[1] for one in samples)
    sd = math.sqrt(squares / (n - 1)) if n > 1 else math.nan
    return Sample(n, mean, sd, (failed_over, known))


def quotient(below: Sample, above: Sample, level: float = LEVEL) -> Interval:
    """Interval of ``above / below``, two means of independent runs (by linearisation)."""
    n = min(below.n, above.n)
    if n == 0:
        return Interval(math.nan, math.nan, level, 0)
    value = above.mean / below.mean
    if n == 1:
        return Interval(value, math.inf, level, 1)
    error = math.hypot(
        above.sd / (above.mean * math.sqrt(above.n)),
        below.sd / (below.mean * math.sqrt(below.n)),
    )
    return Interval(value, value * error * float(stdtrit(n - 1, (1 + level) / 2)), level, n)


def sample_of(values: pd.Series) -> Sample:
    """The sample of these numbers; NaNs are left out."""
    known = values.astype(float).dropna()
    return Sample(len(known), float(known.mean()), float(known.std(ddof=1)))


#: Chooses one of the known points for a setting, and describes how it differs.
Nearest = Callable[[Setting, Collection[Setting]], tuple[Setting, str] | None]


class Ns2(Source):
    """The reference results as a source for claims."""

    def __init__(
        self,
        samples: Mapping[Setting, Sample],
        nearest: Nearest,
        frames: Mapping[Setting, pd.DataFrame] | None = None,
    ) -> None:
        super().__init__()
        self._samples = samples
        self._nearest = nearest
        self._frames = frames or {}

    @property
    def settings(self) -> Collection[Setting]:
        """The points with results."""
        return self._samples.keys() | self._frames.keys()

    def frame(self, setting: Setting) -> pd.DataFrame:
        """A row for each run of a point, where single runs are known."""
        if setting not in self._frames:
            raise NotThereError(f"no single runs of {setting}")
        self.used[setting] = None
        return self._frames[setting]

    def sample(self, setting: Setting) -> Sample:
        """The sample of a point, or of the nearest one, which the notes then mention.

        Raises:
            NotThereError: There is none.
        """
        self.used[setting] = None
        if setting in self._samples:
            return self._samples[setting]
        found = self._nearest(setting, self._samples.keys())
        if found is None:
            raise NotThereError(f"not among the reference results: {setting}")
        if found[1] not in self.notes:
            self.notes.append(found[1])
        return self._samples[found[0]]

    def mean(self, setting: Setting, metric: str = TRANSFER_TIME) -> Interval:
        """Mean transfer time at a point, or mean of the point's own metric."""
        if metric != metric_of(setting):
            raise NotThereError(f"not among the reference results: {metric}")
        return self.sample(setting).interval()

    def ratio(self, base: Setting, setting: Setting) -> Interval:
        """The ratio of two means as if their runs were independent: the pairs are not known."""
        return quotient(self.sample(base), self.sample(setting))

    def error_of_ratio(self, base: Setting, setting: Setting, runs: int) -> float:
        """From the standard deviations of the results."""
        below, above = (replace(self.sample(one), n=runs) for one in (base, setting))
        return quotient(below, above).half_width

    def failed_over(self, setting: Setting) -> tuple[int, int]:
        """Runs of a point in which the primary path became inactive, and all with this record."""
        failed_over = self.sample(setting).failed_over
        if failed_over[1] == 0:
            raise NotThereError(f"failovers are not among the reference results: {setting}")
        return failed_over


def agreement(
    runs: Runs, samples: Mapping[Setting, Sample], *, close: float = CLOSE, level: float = LEVEL
) -> pd.DataFrame:
    """Compares polypath's means with those of ns-2, at the points that both have.

    A point agrees if the means differ by less than a share `close` of ns-2's, or by no more than
    the interval of their difference (Welch).

    Returns:
        Columns: `setting` (the point itself), those of the point, `ours`, `ours_n`, `ns2`, `ns2_n`
        (seconds, or the unit of the point's metric), `difference` (share of ns-2's mean),
        `allowed` (half-width of the interval of the difference, as a share) and `agrees`. Points
        that the engine does not support are left out.
    """
    rows = []
    for setting, theirs in samples.items():
        try:
            ours = sample_of(runs.frame(setting)[metric_of(setting)])
        except LookupError:
            continue
        difference = ours.mean - theirs.mean
        allowed = welch(ours, theirs, level)
        rows.append(
            {
                "setting": setting,
                **setting.labels(),
                "ours": ours.mean,
                "ours_n": ours.n,
                "ns2": theirs.mean,
                "ns2_n": theirs.n,
                "difference": difference / theirs.mean,
                "allowed": allowed / theirs.mean,
                "agrees": abs(difference) <= max(close * theirs.mean, allowed),
            }
        )
    return pd.DataFrame(rows)


def welch(first: Sample, second: Sample, level: float = LEVEL) -> float:
    """Half-width of the interval of the difference of two independent means; 0 if not known."""
    if first.n < 2 or second.n < 2:
        return 0.0
    variances = [sample.sd**2 / sample.n for sample in (first, second)]
    total = sum(variances)
    if not total:
        return 0.0
    parts = zip(variances, (first, second), strict=True)
    freedom = total**2 / sum(variance**2 / (sample.n - 1) for variance, sample in parts)
    return float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(total)
