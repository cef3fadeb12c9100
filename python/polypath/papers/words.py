"""Numbers and findings as text, the same in the report and in ``docs/claims.md``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable

import pandas as pd

from polypath.papers.verdict import Check, Unit, Verdict


def value(check: Check) -> str:
    """The measured value with the half-width of its 90 % interval: "-21.3 % ± 1.9"."""
    estimate = check.measured
    if math.isnan(estimate.mean):
        return "no value"
    text = number(estimate.mean, check.unit, exact=check.exact)
    if check.exact:
        return text
    if not math.isfinite(estimate.half_width):
        return f"{text} (one run)"
    if check.unit is Unit.SHARE:
        low, high = (number(end, check.unit) for end in (estimate.low, estimate.high))
        return f"{text} ({low} … {high}, n = {estimate.n})"
    half = estimate.half_width * (100 if check.unit is Unit.CHANGE else 1)
    return f"{text} ± {_significant(half)} (n = {estimate.n})"


def allowed(check: Check) -> str:
    """The range that is allowed, such as "at most +5.0 %"; of a number, the paper's interval."""
    ends = (check.low, check.high)
    if check.runs and math.isfinite(check.error_of_runs):
        half = (math.hypot(check.stated - end, check.error_of_runs) for end in ends)
        below, above = half
        ends = (check.stated - below, check.stated + above)
    low, high = (number(end, check.unit, exact=check.exact) for end in ends)
    if not math.isnan(check.stated):
        return f"paper {number(check.stated, check.unit)}: {low} … {high}"
    if check.low == check.high:
        return low
    if math.isinf(check.low):
        return f"at most {high}"
    return f"at least {low}" if math.isinf(check.high) else f"{low} … {high}"


def still_open(check: Check) -> str:
    """The number of runs that would decide an open check: "some 900 runs would decide".

    It has two digits, because the runs so far do not determine it any better.
    """
    runs = check.runs_to_decide
    if runs is None:
        return ""
    places = 10 ** max(len(str(runs)) - 2, 0)
    return f"some {-(-runs // places) * places} runs would decide"


def number(mean: float, unit: Unit, *, exact: bool = False) -> str:
    """A value in its unit."""
    if math.isinf(mean):
        return "∞" if mean > 0 else "-∞"
    if unit is Unit.CHANGE:
        return f"{100 * mean:+.{2 if exact else 1}f} %"
    if unit is Unit.SHARE:
        return f"{100 * mean:.1f} %"
    if exact and unit is Unit.COUNT:
        return f"{mean:.0f}"
    if exact and unit is Unit.SECONDS:
        return f"{mean:.3f} s"
    return f"{_significant(mean, 4)} {unit.value}".strip()


def _significant(amount: float, digits: int = 2) -> str:
    """Plain decimals, never an exponent."""
    if not amount:
        return "0"
    places = max(digits - 1 - math.floor(math.log10(abs(amount))), 0)
    return f"{amount:.{places}f}"


#: How statements are judged, in the report and on the page.
RULE = (
    "A stated number holds if the paper's value and the measured one agree within both errors. The "
    "paper's error is that of its runs (60 transfers a point, 30 or 45, or its own interval) with "
    "the spread of single transfers, and of the last digit; the number is undecided if the "
    "measured "
    "one is less precise than that (a mean: than 5 %). An order or a limit holds if the whole 90 % "
    "interval is "
    "within it, does not hold if it is outside, and is undecided otherwise, or with fewer than "
    'ten runs. "As much as" is judged at a point that is fixed in advance, and of several points '
    "the worst one at the level of all together. Counts have exact intervals (Clopper and Pearson, "
    "Garwood). polypath equals ns-2 if the 90 % interval of the mean difference, over the points "
    "of "
    "a statement, is within 5 %, and no point is surely outside."
)


def tally(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """The number of statements with each verdict, in the order of the verdicts."""
    counts = Counter(verdicts)
    return {str(verdict): counts[verdict] for verdict in Verdict}


#: Condition under which a point agrees with ns-2, and units of the means in such a table.
AGREES = (
    "the means differ by less than 5 %, or by no more than the 90 % interval of their difference"
)
UNITS = "transfer times in seconds, goodputs in bytes a second"
#: Heads of the columns of tables, with their units.
_HEADS = {
    "primary_loss": "primary loss [%]",
    "alternate_loss": "alternate loss [%]",
    "alternate_rtt": "alternate RTT [ms]",
    "loss_1": "path 1 loss [%]",
    "loss_2": "path 2 loss [%]",
    "breaks_at": "break at [s]",
    "confirmation": "confirmation of paths",
    "pmr": "PMR",
    "ours": "polypath",
    "ours_n": "runs",
    "ns2": "ns-2",
    "ns2_n": "runs of ns-2",
    "difference": "difference",
    "allowed": "90 % interval of it",
}
#: Columns that are shares.
_SHARES = frozenset({"difference", "allowed"})


def columns(frame: pd.DataFrame) -> list[str]:
    """The readable heads of a table."""
    return [_HEADS.get(str(column), str(column).replace("_", " ")) for column in frame]


def cell(column: Hashable, content: object) -> str:
    """A value of such a table."""
    if isinstance(content, float):
        if math.isnan(content):
            return ""
        if column in _SHARES:
            sign = "±" if column == "allowed" else ""
            return f"{sign}{100 * content:{'' if sign else '+'}.1f} %"
        return f"{content:.5g}"
    return str(content)
