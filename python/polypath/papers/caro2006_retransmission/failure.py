"""Section 6.3: the primary path breaks while the transfer runs (Figures 15 and 16)."""

from __future__ import annotations

from itertools import combinations

from polypath.papers.caro2006_retransmission.compare import (
    alternates,
    best,
    short,
)
from polypath.papers.caro2006_retransmission.figures import EARLY, LATE, PRIMARY_WITH_BREAK
from polypath.papers.caro2006_retransmission.settings import BEST, Transfer
from polypath.papers.registry import Claim
from polypath.papers.runs import TRANSFER_TIME, NotThereError, Source
from polypath.papers.verdict import ROUNDED, Check, Finding, Unit, similar, widest
from polypath.statistics import Interval, ratio


def _r30(source: Source) -> Finding:
    """The pair whose medians differ most, in each panel.

    Medians, because a transfer in which both paths are given up takes hours: one in a few hundred
    decides a mean. At most 9 % is less than 9.5 % before rounding.
    """
    checks = []
    for primary in PRIMARY_WITH_BREAK:
        apart: list[Check] = []
        for first, second in combinations(BEST, 2):
            try:
                apart += [
                    _medians(
                        source, *(best(p, primary, a, breaks_at=EARLY) for p in (first, second))
                    )
                    for a in alternates(source, best(second, primary, breaks_at=EARLY))
                ]
            except NotThereError:
                continue
        if apart:
            checks.append(widest(apart))
    if not checks:
        raise NotThereError("no points of Figure 15")
    return Finding(tuple(checks), _without_outages(source))


def _medians(source: Source, base: Transfer, other: Transfer) -> Check:
    label = f"median of {other} against {short(base, other)}"
    return similar(label, source.ratio_of_medians(base, other), 0.09 + ROUNDED)


def _without_outages(source: Source) -> tuple[str, ...]:
    """The differences without transfers in which the alternate path was given up as well."""
    notes = []
    for primary in PRIMARY_WITH_BREAK:
        left: list[tuple[str, Interval, int]] = []
        try:
            for first, second in combinations(BEST, 2):
                for alternate in alternates(source, best(second, primary, breaks_at=EARLY)):
                    pair = [best(p, primary, alternate, breaks_at=EARLY) for p in (first, second)]
                    left.append(_of_single_outages(source, *pair))
        except NotThereError:
            continue
        label, quotient, out = max(left, key=lambda one: abs(one[1].mean - 1))
        if any(count for _, _, count in left):
            change = f"{100 * (quotient.mean - 1):+.1f} % ± {100 * quotient.half_width:.1f}"
            notes.append(
                f"without transfers in which both paths were given up ({out} of "
                f"{out + quotient.n} pairs): {label}: {change}"
            )
    return tuple(notes)


def _of_single_outages(
    source: Source, base: Transfer, other: Transfer
) -> tuple[str, Interval, int]:
    frames = [source.frame(one).set_index("seed") for one in (base, other)]
    pairs = frames[0].join(frames[1].add_suffix("_other"), how="inner")
    single = ~((pairs["failures"] > 1) | (pairs["failures_other"] > 1))
    first, second = (
        [float(one) for one in pairs.loc[single, f"{TRANSFER_TIME}{end}"]] for end in ("", "_other")
    )
    label = f"{other} against {short(base, other)}"
    return label, ratio(first, second), int((~single).sum())


def _r31(source: Source) -> Finding:
    checks = []
    for policy in BEST:
        low, high = (70.0, 70.0) if policy == "AllRtxSame" else (8.0, 18.0)
        for alternate in alternates(source, best(policy, 0, 0, breaks_at=LATE)):
            setting = best(policy, 0, alternate, breaks_at=LATE)
            measured = source.mean(setting)
            exact = alternate == 0
            checks.append(Check(str(setting), measured, 0.9 * low, 1.1 * high, Unit.SECONDS, exact))
    return Finding(tuple(checks))


CLAIMS = (
    Claim("R30", ("15",), _r30),
    Claim("R31", ("16",), _r31),
)
