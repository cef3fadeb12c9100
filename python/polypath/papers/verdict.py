"""Verdicts on statements: a measurement confirms it, refutes it, or has too few runs.

A statement has one or several checks. A check of a stated number asks whether the paper's value and
the measured one agree within both of their errors; that of an order or of a limit compares the
whole interval of a mean with the range that the statement allows: inside, outside, or across a
limit. "Undecided" always means: too few runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from scipy.special import ndtri

from polypath.papers.runs import NotThereError
from polypath.statistics import LEVEL, TOO_FEW, Interval, interval


class Verdict(Enum):
    """The verdict on a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided (too few runs)"
    MISSING = "not yet implemented"

    def __str__(self) -> str:
        return self.value


class Unit(Enum):
    """The unit in which a value is written."""

    SECONDS = "s"
    #: A share, written as percent with its sign: a change.
    CHANGE = "%"
    #: A share, written as percent without a sign: of transfers.
    SHARE = "% of"
    COUNT = ""
    RATIO = "times"
    KBITS = "kbit/s"


@dataclass(frozen=True, slots=True)
class Check:
    """One quantity with its interval, and the range that the statement allows for it."""

    #: Name of the measured quantity: "5 % primary, 0 % alternate".
    label: str
    measured: Interval
    #: The range that is allowed, in the unit of the interval.
    low: float = -math.inf
    high: float = math.inf
    unit: Unit = Unit.CHANGE
    #: The scenario has no randomness: one run is enough.
    exact: bool = False
    #: The number that the paper states, whose 90 % interval is then `low` to `high`; NaN for a
    #: limit.
    stated: float = math.nan
    #: The number of points of which this is the worst.
    of: int = 1
    #: The paper's runs of a stated mean, whose error then follows from the measured interval.
    runs: int = 0

    @property
    def verdict(self) -> Verdict:
        """The verdict of this check alone."""
        return self.among(1)

    def among(self, numbers: int) -> Verdict:
        """The verdict of this check as one of several stated numbers of a statement.

        The paper's value and the measured one agree if they differ by no more than the error of
        their difference. With several numbers, the level of each is such that all of a true
        statement agree in 90 of 100 cases. Numbers that agree although the measured one is less
        precise than the paper's are undecided.
        """
        estimate = self.measured
        if self.exact:
            inside = self.low <= estimate.mean <= self.high
            return Verdict.HOLDS if inside else Verdict.FAILS
        if estimate.n < TOO_FEW or not math.isfinite(estimate.half_width):
            return Verdict.UNDECIDED
        if not math.isnan(self.stated):
            return self._agrees(numbers)
        if self.low <= estimate.low and estimate.high <= self.high:
            return Verdict.HOLDS
        # The worst of many points deviates by chance alone: its interval is that of all together.
        high = estimate.mean + (estimate.high - estimate.mean) * wider(self.of)
        low = estimate.mean - (estimate.mean - estimate.low) * wider(self.of)
        if high < self.low or low > self.high:
            return Verdict.FAILS
        return Verdict.UNDECIDED

    def _agrees(self, numbers: int) -> Verdict:
        estimate = self.measured
        # The sides that face each other (Newcombe's method for intervals that are not symmetric).
        if estimate.mean < self.stated:
            own, paper = estimate.high - estimate.mean, self.stated - self.low
        else:
            own, paper = estimate.mean - estimate.low, self.high - self.stated
        paper = math.hypot(paper, self.error_of_runs)
        allowed = math.hypot(own, paper) * wider(numbers)
        if abs(estimate.mean - self.stated) > allowed:
            return Verdict.FAILS
        # A mean that is known within 5 % shows a difference of the papers' acceptable error.
        enough = paper
        if self.unit not in (Unit.CHANGE, Unit.SHARE):
            enough = max(paper, abs(self.stated) * OF_A_MEAN / 2)
        return Verdict.UNDECIDED if own > enough else Verdict.HOLDS

    @property
    def error_of_runs(self) -> float:
        """The half-width that the paper's own runs give a mean with the measured spread."""
        if not self.runs:
            return 0.0
        return self.measured.half_width * math.sqrt(self.measured.n / self.runs)

    def known_within(self, error: float) -> Check:
        """The same check if the paper's runs give its value this half-width, with its rounding."""
        if math.isnan(self.stated) or not math.isfinite(error):
            return self
        low = self.stated - math.hypot(self.stated - self.low, error)
        high = self.stated + math.hypot(self.high - self.stated, error)
        return replace(self, low=low, high=high)

    @property
    def runs_to_decide(self) -> int | None:
        """Number of runs with which the interval ends on the limit, if the mean does not change.

        The interval narrows with the square root of their number. None if the check is decided or
        nothing is known.
        """
        estimate = self.measured
        if not math.isnan(self.stated):
            paper = min(self.stated - self.low, self.high - self.stated)
            paper = math.hypot(paper, self.error_of_runs)
            if self.verdict is not Verdict.UNDECIDED or estimate.n < 2 or not paper > 0:
                return None
            return max(math.ceil(estimate.n * (estimate.half_width / paper) ** 2), TOO_FEW)
        apart = min(abs(estimate.mean - border) for border in (self.low, self.high))
        known = estimate.n > 1 and 0 < apart < math.inf
        if self.verdict is not Verdict.UNDECIDED or not known:
            return None
        return max(math.ceil(estimate.n * (estimate.half_width / apart) ** 2), TOO_FEW)


@dataclass(frozen=True, slots=True)
class Finding:
    """The measurements for a claim: its checks, and notes on them."""

    checks: tuple[Check, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """Holds if every check does, fails if one does not, otherwise undecided."""
        return combined(self.verdicts)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdict of each check, among the stated numbers of the statement."""
        numbers = sum(not (math.isnan(one.stated) or one.exact) for one in self.checks)
        return tuple(check.among(max(numbers, 1)) for check in self.checks)


def combined(verdicts: Sequence[Verdict]) -> Verdict:
    """Combines verdicts: fails if one fails, otherwise undecided if one is undecided."""
    if not verdicts:
        return Verdict.UNDECIDED
    for decisive in (Verdict.FAILS, Verdict.UNDECIDED):
        if decisive in verdicts:
            return decisive
    return Verdict.HOLDS


def wider(numbers: int) -> float:
    """The factor by which intervals at 90 % widen if all of several are to hold at 90 %."""
    each = 1 - (1 - LEVEL) / numbers
    return float(ndtri((1 + each) / 2) / ndtri((1 + LEVEL) / 2))


#: The papers' acceptable error of a mean.
OF_A_MEAN = 0.10
#: Two policies whose means differ by less than this "perform similarly" (Fig. 12 of
#: caro2006-retransmission gives the word this number).
SIMILAR = 0.05
#: Half of the last digit of a percentage without decimals.
ROUNDED = 0.005


def change(label: str, quotient: Interval, stated: float, *, rounded: float = ROUNDED) -> Check:
    """The change of a mean against a stated one, with its sign (-0.21: 21 % shorter).

    The paper's interval is that of rounding until :meth:`Check.known_within` adds its runs.
    """
    low, high = stated - rounded, stated + rounded
    return Check(label, minus_one(quotient), low, high, Unit.CHANGE, stated=stated)


def number(
    label: str,
    measured: Interval,
    stated: float,
    error: float,
    unit: Unit = Unit.SECONDS,
    *,
    runs: int = 0,
) -> Check:
    """A mean that the paper states with an error, or with one that its number of runs widens."""
    return Check(label, measured, stated - error, stated + error, unit, stated=stated, runs=runs)


def similar(label: str, quotient: Interval, within: float = SIMILAR) -> Check:
    """Checks that the two differ by less than `within`."""
    return Check(label, minus_one(quotient), -within, within)


def faster(label: str, quotient: Interval) -> Check:
    """Checks that the transfer takes less time than the base."""
    return Check(label, minus_one(quotient), high=0.0)


def slower(label: str, quotient: Interval) -> Check:
    """Checks that the transfer takes more time than the base."""
    return Check(label, minus_one(quotient), low=0.0)


def about(
    label: str,
    measured: Interval,
    stated: float,
    *,
    within: float = OF_A_MEAN,
    unit: Unit = Unit.SECONDS,
    exact: bool = False,
) -> Check:
    """A mean that the paper states, within its acceptable error."""
    low, high = stated * (1 - within), stated * (1 + within)
    return Check(label, measured, low, high, unit, exact)


def minus_one(quotient: Interval) -> Interval:
    """A quotient of means as a change."""
    return Interval(quotient.mean - 1, quotient.half_width, quotient.level, quotient.n)


def at_most(label: str, quotient: Interval, stated: float) -> Check:
    """Slower by no more than this share."""
    return Check(label, minus_one(quotient), high=stated)


def typical(label: str, values: Sequence[float], stated: float, unit: Unit) -> Check:
    """Checks that the paper's single run could be one of these, 90 % of which are so close."""
    own = interval(values)
    spread = math.sqrt(own.n + 1) * own.half_width  # from the mean's interval to that of one run
    return Check(label, own, stated - spread, stated + spread, unit)


def least(checks: Sequence[Check]) -> Check:
    """The check with the smallest mean: the largest improvement."""
    return _of(min(_some(checks), key=lambda check: check.measured.mean), checks)


def greatest(checks: Sequence[Check]) -> Check:
    """The check with the largest mean: the largest degradation."""
    return _of(max(_some(checks), key=lambda check: check.measured.mean), checks)


def widest(checks: Sequence[Check]) -> Check:
    """The check with the largest difference in either direction."""
    return _of(max(_some(checks), key=lambda check: abs(check.measured.mean)), checks)


def _of(worst: Check, checks: Sequence[Check]) -> Check:
    return replace(worst, of=max(len(checks), worst.of))


def _some(checks: Sequence[Check]) -> Sequence[Check]:
    if not checks:
        raise NotThereError("no point to look at")
    return checks
