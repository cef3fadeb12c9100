"""Intervals, the papers' stopping rule, and comparisons with common random numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betaincinv, gammainccinv, gammaincinv, stdtrit

#: One number per run.
Values: TypeAlias = Sequence[float] | NDArray[np.float64]

#: The papers' confidence level.
LEVEL = 0.90
#: The papers' largest half-width of an interval, as a share of the mean.
WITHIN = 0.10
#: Samples of the bootstrap.
_RESAMPLES = 4000
#: With fewer runs than this, an interval depends too much on the distribution of the values.
TOO_FEW = 10


@dataclass(frozen=True, slots=True)
class Interval:
    """Mean of independent runs and the half-width of its Student-t interval, in their unit."""

    mean: float
    #: Infinite for a single run, NaN for none.
    half_width: float
    level: float
    #: Number of runs.
    n: int

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half_width

    @property
    def relative(self) -> float:
        """Half-width as a share of the mean (0 if both are 0)."""
        if self.half_width == 0:
            return 0.0
        return self.half_width / abs(self.mean) if self.mean else math.inf

    @property
    def too_few(self) -> bool:
        """Whether there are fewer than ten runs, too few for a reliable interval."""
        return self.n < TOO_FEW


@dataclass(frozen=True, slots=True)
class Share(Interval):
    """A share of independent runs, or a number per run, with an exact interval: not symmetric."""

    lower: float
    upper: float

    @property
    def low(self) -> float:
        """Lower end."""
        return self.lower

    @property
    def high(self) -> float:
        """Upper end."""
        return self.upper


def share(part: float, n: float, level: float = LEVEL) -> Share:
    """The exact interval (Clopper and Pearson) of a share of `n` independent runs.

    Args:
        part: The share in these runs, from 0 to 1.
        n: Number of runs; not an integer if runs are not independent of each other.
        level: Confidence level, between 0 and 1.

    Raises:
        ValueError: The level is not between 0 and 1.
    """
    _check_share("level", level)
    if n <= 0:
        return Share(math.nan, math.nan, level, 0, math.nan, math.nan)
    with_it, without = part * n, (1 - part) * n
    tail = (1 - level) / 2
    low = float(betaincinv(with_it, without + 1, tail)) if with_it > 0 else 0.0
    high = float(betaincinv(with_it + 1, without, 1 - tail)) if without > 0 else 1.0
    return Share(part, (high - low) / 2, level, math.floor(n), low, high)


def rate(events: float, n: int, level: float = LEVEL) -> Share:
    """The exact interval (Garwood) of the number of events per run that are independent.

    Args:
        events: All events of `n` runs.
        n: Number of runs.
        level: Confidence level, between 0 and 1.

    Raises:
        ValueError: The level is not between 0 and 1.
    """
    _check_share("level", level)
    if n <= 0:
        return Share(math.nan, math.nan, level, 0, math.nan, math.nan)
    tail = (1 - level) / 2
    low = float(gammaincinv(events, tail)) / n if events > 0 else 0.0
    high = float(gammainccinv(events + 1, tail)) / n
    return Share(events / n, (high - low) / 2, level, n, low, high)


def ratio_of_unpaired(first: Values, second: Values, level: float = LEVEL) -> Interval:
    """Interval of the ratio of the means ``second / first`` of independent runs (linearised)."""
    n = min(len(first), len(second))
    if n == 0 or not np.mean(first):
        return Interval(math.nan, math.nan, level, 0)
    quotient = float(np.mean(second) / np.mean(first))
    if n == 1:
        return Interval(quotient, math.inf, level, 1)
    error = math.hypot(*(_of_mean(one) / math.sqrt(len(one)) for one in (first, second)))
    return Interval(quotient, quotient * error * float(stdtrit(n - 1, (1 + level) / 2)), level, n)


def error_of_unpaired(first: Values, second: Values, n: int, level: float = LEVEL) -> float:
    """The half-width that the ratio has with `n` independent runs of each, of such a spread."""
    if min(len(first), len(second)) < 2 or not np.mean(first):
        return math.nan
    quotient = float(np.mean(second) / np.mean(first))
    error = math.hypot(_of_mean(first), _of_mean(second)) / math.sqrt(n)
    return quotient * error * float(stdtrit(n - 1, (1 + level) / 2))


def _of_mean(values: Values) -> float:
    """The standard deviation as a share of the mean."""
    return float(np.std(values, ddof=1) / np.mean(values))


def medians(first: Values, second: Values, level: float = LEVEL) -> Interval:
    """The ratio of the medians ``second / first`` of runs that share their seeds.

    For times whose mean a few transfers decide. The half-width is the larger distance to an end of
    the interval by resampling of pairs (bootstrap); the same values give the same interval.

    Raises:
        ValueError: The two are not equally long.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} values do not make pairs")
    pairs = np.stack([np.asarray(first, dtype=float), np.asarray(second, dtype=float)])
    below, above = pairs[:, ~np.isnan(pairs).any(axis=0)]
    n = len(below)
    if n == 0 or not np.median(below):
        return Interval(math.nan, math.nan, level, 0)
    quotient = float(np.median(above) / np.median(below))
    if n == 1:
        return Interval(quotient, math.inf, level, 1)
    chosen = np.random.default_rng(1).integers(n, size=(_RESAMPLES, n))
    ratios = np.median(above[chosen], axis=1) / np.median(below[chosen], axis=1)
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    half = max(quotient - float(low), float(high) - quotient)
    return Interval(quotient, half, level, n)


def interval(values: Iterable[float], level: float = LEVEL) -> Interval:
    """Student-t interval of the mean of independent runs. NaNs (runs without a value) are left out.

    Args:
        values: One number per run.
        level: Confidence level, between 0 and 1; 0.90 as in the papers.

    Raises:
        ValueError: The level is not between 0 and 1.
    """
    _check_share("level", level)
    sample = np.asarray(list(values), dtype=float)
    sample = sample[~np.isnan(sample)]
    n = len(sample)
    if n == 0:
        return Interval(math.nan, math.nan, level, 0)
    mean = float(sample.mean())
    if n == 1:
        return Interval(mean, math.inf, level, 1)
    error = float(sample.std(ddof=1)) / math.sqrt(n)
    quantile = float(stdtrit(n - 1, (1 + level) / 2))
    return Interval(mean, quantile * error, level, n)


def paired(first: Values, second: Values, level: float = LEVEL) -> Interval:
    """Interval of the mean difference ``second - first`` of runs that share their seeds.

    The n-th values of both belong to the same seed: the same packets are lost, so that only the
    difference between the two remains. Pairs with a NaN are left out.

    Raises:
        ValueError: The two are not equally long.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} values do not make pairs")
    return interval(np.asarray(second, dtype=float) - np.asarray(first, dtype=float), level)


def ratio(first: Values, second: Values, level: float = LEVEL) -> Interval:
    """Interval of the ratio of the means ``second / first`` of runs that share their seeds.

    By linearisation (the delta method): the pairs' residuals ``second - ratio * first`` give the
    error. Pairs with a NaN are left out.

    Raises:
        ValueError: The two are not equally long.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} values do not make pairs")
    pairs = np.stack([np.asarray(first, dtype=float), np.asarray(second, dtype=float)])
    below, above = pairs[:, ~np.isnan(pairs).any(axis=0)]
    if len(below) == 0 or not below.mean():
        return Interval(math.nan, math.nan, level, 0)
    quotient = float(above.mean() / below.mean())
    around = interval((above - quotient * below) / below.mean(), level)
    return Interval(quotient, around.half_width, level, around.n)


@dataclass(frozen=True, slots=True)
class Stop:
    """The papers' rule for stopping the runs of a scenario.

    Seeds are run in their order until there are `at_least` runs and the interval at `level` of the
    mean of each metric is within a share `within` of that mean, or until there are `at_most`. The
    rule uses the first n seeds only, so it does not depend on the order in which runs finish, nor
    on how many run at a time.

    Raises:
        ValueError: One line with the argument and the allowed values.
    """

    level: float = LEVEL
    within: float = WITHIN
    at_least: int = 10
    at_most: int = 100
    #: One metric, or several.
    metric: str | tuple[str, ...] = "time_from_first_data"

    def __post_init__(self) -> None:
        _check_share("level", self.level)
        if not self.within > 0:
            raise ValueError(f"within: found {self.within}; allowed: above 0")
        if self.at_least < 2:
            raise ValueError(f"at_least: found {self.at_least}; allowed: at least 2")
        if self.at_most < self.at_least:
            raise ValueError(
                f"at_most: found {self.at_most}; allowed: at_least ({self.at_least}) or more"
            )

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the rule."""
        return (self.metric,) if isinstance(self.metric, str) else tuple(self.metric)


def summary(
    frame: pd.DataFrame,
    metric: str = "time_from_first_data",
    *,
    level: float = LEVEL,
    within: float = WITHIN,
) -> pd.DataFrame:
    """A row for each scenario of a sweep, with the interval of a metric.

    Columns: scenario, key, the values that differ between the scenarios, `runs` and how many of
    them `failed` or were `incomplete`, `n` (runs with a value), `mean`, `half_width`, `low`, `high`
    (unit of the metric), `too_few`: fewer than ten runs, or an interval wider than `within` of the
    mean.

    Raises:
        ValueError: The frame has no such metric.
    """
    _check_metric(frame, metric)
    rows = []
    for key, runs in frame.groupby("key", sort=False):
        estimate = interval(runs[metric].astype(float), level)
        rows.append(
            {
                **_identity(frame, runs),
                "key": key,
                "runs": len(runs),
                "failed": int((runs["status"] == "failed").sum()),
                "incomplete": int((~runs["complete"].astype(bool)).sum()),
                "n": estimate.n,
                "mean": estimate.mean,
                "half_width": estimate.half_width,
                "low": estimate.low,
                "high": estimate.high,
                "too_few": estimate.too_few or not estimate.relative <= within,
            }
        )
    return pd.DataFrame(rows)


def compare(
    frame: pd.DataFrame,
    metric: str = "time_from_first_data",
    *,
    baseline: str | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Compares each scenario of a sweep with one of them, pairing runs of the same seed.

    Columns: scenario, key, the values that differ, `n` (pairs), `difference` of the means and its
    `low` and `high` (unit of the metric), `relative` (difference as a share of the baseline's mean
    over the pairs), `differs` (the interval excludes 0), `too_few` (fewer than ten pairs). With
    many rows, some intervals exclude 0 by chance.

    Args:
        frame: The frame of :func:`polypath.sweep`.
        metric: A metric of :data:`polypath.METRICS`.
        baseline: Name (column "scenario") or key of a scenario; the first by default.
        level: Confidence level of each interval.

    Raises:
        ValueError: The frame has no such metric or scenario.
    """
    _check_metric(frame, metric)
    groups = {str(key): runs for key, runs in frame.groupby("key", sort=False)}
    base = _baseline(frame, baseline)
    reference = groups[base].set_index("seed")[metric].astype(float)
    rows = []
    for key, runs in groups.items():
        if key == base:
            continue
        pairs = pd.concat([reference, runs.set_index("seed")[metric].astype(float)], axis=1)
        pairs = pairs.dropna()
        first, second = pairs.to_numpy(dtype=np.float64).T
        estimate = paired(first, second, level)
        mean = float(first.mean()) if len(first) else math.nan
        rows.append(
            {
                **_identity(frame, runs),
                "key": key,
                "n": estimate.n,
                "difference": estimate.mean,
                "low": estimate.low,
                "high": estimate.high,
                "relative": estimate.mean / mean if mean else math.nan,
                "differs": estimate.low > 0 or estimate.high < 0,
                "too_few": estimate.too_few,
            }
        )
    return pd.DataFrame(rows)


def _identity(frame: pd.DataFrame, runs: pd.DataFrame) -> dict[str, object]:
    """The values that identify a scenario: the columns in front of "seed"."""
    front = list(frame.columns[: list(frame.columns).index("seed")])
    return {str(column): runs[column].iloc[0] for column in front}


def _baseline(frame: pd.DataFrame, baseline: str | None) -> str:
    if baseline is None:
        return str(frame["key"].iloc[0])
    found = frame.loc[(frame["scenario"] == baseline) | (frame["key"] == baseline), "key"]
    if found.empty:
        known = ", ".join(dict.fromkeys(str(name) for name in frame["scenario"]))
        raise ValueError(f'baseline: no scenario "{baseline}"; allowed: {known}')
    return str(found.iloc[0])


def _check_metric(frame: pd.DataFrame, metric: str) -> None:
    if metric not in frame.columns:
        after = list(frame.columns)[list(frame.columns).index("reason") + 1 :]
        raise ValueError(f'metric: no metric "{metric}"; allowed: {", ".join(after)}')


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name}: found {value}; allowed: between 0 and 1, such as 0.90")
