"""Judges each statement about transfer times, in the order of the paper.

A quotient is a transfer time as a multiple of another: "reducing the PMR from 5 to 0 improves the
performance by 4 %" if the time with PMR 0 is 0.96 of that with PMR 5.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from polypath.papers import delaware
from polypath.papers.caro2006_failover.by_model import best_threshold
from polypath.papers.caro2006_failover.figures import (
    DORMANT,
    FAILOVERS,
    LONGER_ALTERNATE,
    LONGER_PRIMARY,
    OPTIMAL,
    SYMMETRIC,
)
from polypath.papers.caro2006_failover.ladders import CLAIM as LADDERS
from polypath.papers.caro2006_failover.remarks import REMARKS
from polypath.papers.caro2006_failover.settings import (
    CELLULAR,
    LOSSES,
    PMR,
    PRIMARY,
    TIME,
    Transfer,
    permanent,
)
from polypath.papers.caro2006_failover.spurious import CLAIMS as SPURIOUS
from polypath.papers.caro2006_failover.spurious import FAILURES
from polypath.papers.registry import Claim
from polypath.papers.runs import NotThereError, Source
from polypath.papers.stated import precision
from polypath.papers.verdict import (
    SIMILAR,
    Check,
    Finding,
    Unit,
    about,
    at_most,
    change,
    greatest,
    similar,
    widest,
)
from polypath.statistics import Interval, interval, ratio

#: A check of one point's quotient.
MakeCheck = Callable[[str, Interval], Check]
#: From primary and alternate loss to two transfers: the base, and the one that is judged.
Pair = Callable[[float, float], tuple[Transfer, Transfer]]


def _against(source: Source, base: Transfer, other: Transfer, make: MakeCheck) -> Check:
    """Applies `make` to the transfer time of `other` as a multiple of that of `base`."""
    label = f"{other} against {base.mechanism}"
    if base.mechanism == other.mechanism:
        label = f"{other} against {base}"
    check = make(label, source.ratio(base, other))
    return check.known_within(source.error_of_ratio(base, other, precision("F12").runs))


def _across(
    source: Source,
    pairs: Iterable[Pair],
    make: MakeCheck,
    *,
    primaries: Iterable[float] = PRIMARY,
    alternates: Iterable[float] = LOSSES,
) -> list[Check]:
    """The checks at all points of the panels that have runs."""
    there = set(source.settings)
    alternates = tuple(alternates)
    checks = []
    for primary in primaries:
        for alternate in alternates:
            both = [pair(primary, alternate) for pair in pairs]
            checks += [_against(source, *pair, make) for pair in both if there.issuperset(pair)]
    return checks


def _stating(share: float) -> MakeCheck:
    return lambda label, quotient: change(label, quotient, share)


def _no_worse(label: str, quotient: Interval) -> Check:
    """Not slower by more than what the papers call similar."""
    return at_most(label, quotient, SIMILAR)


def _thresholds(others: Sequence[int], base: int, **more: Any) -> list[Pair]:
    """Pairs of the base threshold and each of the others."""
    return [
        lambda p, a, k=pmr: (Transfer(p, a, base, **more), Transfer(p, a, k, **more))  # type: ignore[misc]
        for pmr in others
    ]


def _f01(source: Source) -> Finding:
    """The paper's four digits have to match: without loss nothing is random."""
    measured = source.mean(OPTIMAL, TIME)
    check = Check("0 % loss", measured, 122.25, 122.35, Unit.SECONDS, exact=True)
    return Finding((check,))


def _of_panels(
    source: Source,
    pairs: Sequence[Pair],
    make: MakeCheck,
    choose: Callable[[Sequence[Check]], Check],
    primaries: Sequence[float],
) -> tuple[Check, ...]:
    """The deciding point of each panel with runs."""
    checks = [_across(source, pairs, make, primaries=(primary,)) for primary in primaries]
    found = tuple(choose(panel) for panel in checks if panel)
    if not found:
        raise NotThereError("none of the points")
    return found


def _f11(source: Source) -> Finding:
    """In each panel, the threshold and loss rate that differ most from PMR 5."""
    return Finding(_of_panels(source, _thresholds(PMR[:-1], 5), similar, widest, (3, 5)))


def _f12(source: Source) -> Finding:
    (pair,) = _thresholds((0,), 5)
    return Finding((_against(source, *pair(8, 10), _stating(-0.04)),))


def _f13(source: Source) -> Finding:
    """PMR 0 against each other threshold, and against itself with a short alternate path."""
    checks = []
    for other in PMR[1:]:
        checks += _across(source, _thresholds((0,), other, alternate_rtt=CELLULAR), _no_worse)
    alike = _across(
        source,
        [lambda p, a: (Transfer(p, a, 0), Transfer(p, a, 0, alternate_rtt=CELLULAR))],
        similar,
    )
    note = (
        "with PMR 0 the data of a failover crosses the alternate path at its round trip: the more "
        "timeouts, the more of it"
    )
    return Finding((greatest(checks), widest(alike)), (note,))


def _f14(source: Source) -> Finding:
    """As with two paths: similar below 8 % loss; from 8 % on PMR 0 is no worse than any other."""
    checks: list[Check] = []
    below = _across(source, _thresholds(PMR[:-1], 5, paths=3), similar, primaries=(3, 5))
    checks += [widest(below)] if below else []
    for primary in (8, 10):
        above = []
        for other in PMR[1:]:
            pairs = _thresholds((0,), other, paths=3)
            above += _across(source, pairs, _no_worse, primaries=(primary,))
        checks += [greatest(above)] if above else []
    if not checks:
        raise NotThereError("no points with three paths")
    return Finding(tuple(checks))


def _f15(source: Source) -> Finding:
    hop, *others = DORMANT.values()
    checks = []
    for other in others:
        pair: Pair = lambda p, a, f=other: (  # type: ignore[misc]  # noqa: E731
            Transfer(p, a, 0, hop),
            Transfer(p, a, 0, f),
        )
        checks.append(widest(_across(source, [pair], similar)))
    return Finding(tuple(checks))


def _lower(base: int, other: int, rtts: dict[str, Any]) -> list[Pair]:
    """A Change Primary Threshold against a higher one."""
    return [lambda p, a: (permanent(base, p, a, **rtts), permanent(other, p, a, **rtts))]


def _f17(source: Source) -> Finding:
    (pair,) = _lower(5, 0, SYMMETRIC)
    shares = zip(precision("F17").at, (-0.88, 0.09), strict=True)
    return Finding(tuple(_against(source, *pair(5, at), _stating(share)) for at, share in shares))


def _f18(source: Source) -> Finding:
    (pair,) = _lower(5, 0, LONGER_ALTERNATE)
    return Finding(
        tuple(
            _against(source, *pair(5, alternate), _stating(share))
            for alternate, share in ((0, -0.76), (1, -0.23))
        )
    )


def _f19(source: Source) -> Finding:
    (pair,) = _lower(5, 0, LONGER_ALTERNATE)
    (at,) = precision("F19").at
    return Finding((_against(source, *pair(5, at), _stating(0.54)),))


def _f20(source: Source) -> Finding:
    """Each threshold against the next higher one, and 0 against 5, at the worst point."""
    checks = []
    for lower, higher in ((0, 5), *itertools.pairwise(range(6))):
        there = _across(source, _lower(higher, lower, LONGER_PRIMARY), _no_worse)
        checks += [greatest(there)] if there else []
    if not checks:
        raise NotThereError("no points of Figure 12")
    return Finding(tuple(checks))


def _f21(source: Source) -> Finding:
    """The model against the best fixed threshold of each point: the worst point of each figure."""
    checks, notes = [], []
    for rtts in (SYMMETRIC, LONGER_ALTERNATE, LONGER_PRIMARY):
        points = []
        for primary in PRIMARY:
            for alternate in LOSSES:
                by_model = Transfer(primary, alternate, 0, "model", **rtts)
                if by_model not in source.settings:
                    continue
                best = best_threshold(source, by_model)
                points.append(_against(source, best, by_model, _no_worse))
        if points:
            checks.append(greatest(points))
            near = sum(check.measured.mean <= SIMILAR for check in points)
            place = f"{rtts['primary_rtt']} / {rtts['alternate_rtt']} ms"
            share = f"{near} of {len(points)} points within {100 * SIMILAR:g} %"
            notes.append(f"{place}: {share} of their best fixed threshold, known afterwards only")
    if not checks:
        raise NotThereError("no points of the model")
    return Finding(tuple(checks), tuple(notes))


def _f22(source: Source) -> Finding:
    """Transfer times against PMR 0; spurious failovers as a share of those with PMR 0."""
    pair: Pair = lambda p, a: (Transfer(p, a, 0), Transfer(p, a, 5, "two-phase"))  # noqa: E731
    checks = list(_of_panels(source, [pair], _no_worse, greatest, PRIMARY))
    for primary in PRIMARY:
        aggressive, usual, proposed = (
            [Transfer(primary, a, pmr, failover) for a in LOSSES]
            for pmr, failover in ((0, "dormant-hop"), (5, "dormant-hop"), (5, "two-phase"))
        )
        there = [
            three
            for three in zip(aggressive, usual, proposed, strict=True)
            if set(source.settings).issuperset(three)
        ]
        if there:
            base, plain, early = zip(*there, strict=True)
            allowed = _failovers(source, base, plain).mean + NO_MORE
            label = f"two-phase, PMR 5, {primary:g} %: spurious failovers, of those of PMR 0"
            measured = _failovers(source, base, early)
            checks.append(Check(label, measured, high=allowed, unit=Unit.SHARE))
    return Finding(tuple(checks))


#: Additional spurious failovers that do not count as lower accuracy, as a share of PMR 0's.
NO_MORE = 0.01


def _failovers(source: Source, base: Sequence[Transfer], points: Sequence[Transfer]) -> Interval:
    """Spurious failovers of `points` as a multiple of those of `base`, over the same seeds."""
    below, above = (
        pd.concat([source.frame(one) for one in own]).groupby("seed")[FAILURES].sum()
        for own in (base, points)
    )
    pairs = pd.concat([below, above], axis="columns", join="inner").astype(float)
    first, second = pairs.to_numpy().T
    return ratio(first, second)


def _f23(source: Source) -> Finding:
    times = delaware.detection_times(source.results(FAILOVERS[3]))
    return Finding((about("PMR 3", interval(times), 15.0, exact=True),))


_CLAIMS = (
    Claim("F01", ("III.3",), _f01),
    *SPURIOUS,
    Claim("F11", ("5",), _f11),
    Claim("F12", ("5",), _f12),
    Claim("F13", ("5", "6"), _f13),
    Claim("F14", ("III.5",), _f14),
    Claim("F15", ("III.6",), _f15),
    LADDERS,
    Claim("F17", ("10",), _f17),
    Claim("F18", ("11",), _f18),
    Claim("F19", ("11",), _f19),
    Claim("F20", ("12",), _f20),
    Claim("F21", ("10", "11", "12", "IV.2"), _f21),
    Claim("F22", ("V",), _f22),
    Claim("F23", ("III.2",), _f23),
)

CLAIMS = tuple(replace(claim, remark=REMARKS.get(claim.id, "")) for claim in _CLAIMS)
