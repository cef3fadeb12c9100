"""Verdicts on statements: a measurement confirms it, refutes it, or has too few runs.

A statement has one or several checks. Each compares the whole interval of a mean with the range
that the statement allows: inside, outside, or across a limit. More runs move an interval off the
limit, so that "undecided" always means: too few runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from polypath.papers.runs import NotThereError
from polypath.statistics import TOO_FEW, Interval, interval


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

    @property
    def verdict(self) -> Verdict:
        """The position of the interval: inside, outside, or across a limit."""
        estimate = self.measured
        if self.exact:
            inside = self.low <= estimate.mean <= self.high
            return Verdict.HOLDS if inside else Verdict.FAILS
        if estimate.n < TOO_FEW or not math.isfinite(estimate.half_width):
            return Verdict.UNDECIDED
        if self.low <= estimate.low and estimate.high <= self.high:
            return Verdict.HOLDS
        if estimate.high < self.low or estimate.low > self.high:
            return Verdict.FAILS
        return Verdict.UNDECIDED

    @property
    def runs_to_decide(self) -> int | None:
        """Number of runs with which the interval ends on the limit, if the mean does not change.

        The interval narrows with the square root of their number. None if the check is decided or
        nothing is known.
        """
        estimate = self.measured
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
        return combined([check.verdict for check in self.checks])


def combined(verdicts: Sequence[Verdict]) -> Verdict:
    """Combines verdicts: fails if one fails, otherwise undecided if one is undecided."""
    if not verdicts:
        return Verdict.UNDECIDED
    for decisive in (Verdict.FAILS, Verdict.UNDECIDED):
        if decisive in verdicts:
            return decisive
    return Verdict.HOLDS


#: Each mean of the papers is known within 10 % (at 90 %), so a quotient of two within 14 %.
OF_A_QUOTIENT = math.hypot(0.10, 0.10)
#: The papers' acceptable error of a mean.
OF_A_MEAN = 0.10
#: Two policies whose means differ by less than this "perform similarly" (Fig. 12 of
#: caro2006-retransmission gives the word this number).
SIMILAR = 0.05


def change(label: str, quotient: Interval, stated: float, *, exact: bool = False) -> Check:
    """The change of a mean against a stated one, with its sign (-0.21: 21 % shorter).

    The range follows from the papers' own error of the quotient, but never includes the other sign.
    """
    error = OF_A_QUOTIENT * (1 + stated)
    low, high = stated - error, stated + error
    low, high = (low, min(high, 0.0)) if stated < 0 else (max(low, 0.0), high)
    return Check(label, minus_one(quotient), low, high, Unit.CHANGE, exact)


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


def at_most(label: str, quotient: Interval, stated: float, *, error: float | None = None) -> Check:
    """Slower by no more than a stated share, within the papers' own error (or this one)."""
    allowed = OF_A_QUOTIENT * (1 + stated) if error is None else error
    return Check(label, minus_one(quotient), high=stated + allowed)


def typical(label: str, values: Sequence[float], stated: float, unit: Unit) -> Check:
    """Checks that the paper's single run could be one of these, 90 % of which are so close."""
    own = interval(values)
    spread = math.sqrt(own.n + 1) * own.half_width  # from the mean's interval to that of one run
    return Check(label, own, stated - spread, stated + spread, unit)


def least(checks: Sequence[Check]) -> Check:
    """The check with the smallest mean: the largest improvement."""
    return min(_some(checks), key=lambda check: check.measured.mean)


def greatest(checks: Sequence[Check]) -> Check:
    """The check with the largest mean: the largest degradation."""
    return max(_some(checks), key=lambda check: check.measured.mean)


def widest(checks: Sequence[Check]) -> Check:
    """The check with the largest difference in either direction."""
    return max(_some(checks), key=lambda check: abs(check.measured.mean))


def _some(checks: Sequence[Check]) -> Sequence[Check]:
    if not checks:
        raise NotThereError("no point to look at")
    return checks
