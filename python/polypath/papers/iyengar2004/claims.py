"""Judges the paper's statements, most of them over the whole range of loss on path 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from polypath.papers.iyengar2004 import measures
from polypath.papers.iyengar2004.figures import curve
from polypath.papers.iyengar2004.remarks import REMARKS
from polypath.papers.iyengar2004.settings import (
    APP_STRIPE,
    LOSS_1,
    LOSS_AWARE,
    LOSSES,
    POLICIES,
    Transfer,
)
from polypath.papers.registry import Claim, Judge
from polypath.papers.runs import NotImplementedYetError, NotThereError, Source
from polypath.papers.verdict import (
    SIMILAR,
    Check,
    Finding,
    Unit,
    faster,
    minus_one,
    similar,
    slower,
    widest,
)
from polypath.statistics import Interval, interval

#: Retransmissions "fairly evenly" over two paths: the share of either.
EVEN = (0.4, 0.6)


def _there(source: Source, settings: Sequence[Transfer]) -> list[Transfer]:
    return [one for one in settings if one in source.settings]


def _curves(
    source: Source, policies: Sequence[str], *, unequal: bool = False, **more: Any
) -> list[list[Transfer]]:
    """The curves of these policies at the losses that all of them have."""
    losses = [
        loss
        for loss in LOSSES
        if not (unequal and loss == LOSS_1)
        and all(Transfer(policy, loss, **more) in source.settings for policy in policies)
    ]
    if not losses:
        raise NotThereError("no point to look at")
    return [curve(policy, losses, **more) for policy in policies]


def _per_drop(source: Source, policy: str, *, heuristic: bool) -> Interval:
    (own,) = _curves(source, [policy], heuristic=heuristic)
    lost = measures.together(source, own, measures.drops)
    return measures.quotient(lost, measures.together(source, own, measures.retransmissions))


def _c01(source: Source) -> Finding:
    """Well above 1 means above it by more than the papers call similar."""
    return Finding(
        tuple(
            Check(policy, _per_drop(source, policy, heuristic=False), 1 + SIMILAR, unit=Unit.RATIO)
            for policy in POLICIES
        )
    )


def _c02(source: Source) -> Finding:
    checks = []
    for policy in POLICIES:
        estimate = _per_drop(source, policy, heuristic=True)
        checks.append(Check(policy, estimate, 1 - SIMILAR, 1 + SIMILAR, Unit.RATIO))
    without, with_it = (
        measures.together(
            source,
            [one for p in POLICIES for own in _curves(source, [p], heuristic=h) for one in own],
            measures.retransmissions,
        )
        for h in (False, True)
    )
    label = "retransmissions of all policies, against those without the heuristic"
    checks.append(Check(label, minus_one(measures.quotient(without, with_it)), high=0))
    return Finding(tuple(checks))


def _gap(source: Source, loss: float) -> tuple[Transfer, Transfer]:
    found = _there(source, [Transfer(APP_STRIPE, loss), Transfer("RTX-CWND", loss)])
    if len(found) < 2:
        raise NotThereError("AppStripe")
    return found[0], found[1]


def _growing(source: Source) -> Check:
    """Whether AppStripe is slower than CMT by more at the highest loss than at the lowest."""
    losses = [loss for loss in LOSSES if Transfer(APP_STRIPE, loss) in source.settings]
    ends = losses[0], losses[-1]
    try:
        low, high = (
            measures.together(source, [stripe], measures.seconds)
            - measures.together(source, [cwnd], measures.seconds)
            for stripe, cwnd in (_gap(source, loss) for loss in ends)
        )
        estimate = interval((high - low).dropna())
    except NotImplementedYetError:
        raise
    except NotThereError:
        means = [source.mean(one) for loss in ends for one in _gap(source, loss)]
        half = sum(one.half_width**2 for one in means) ** 0.5
        value = means[2].mean - means[3].mean - (means[0].mean - means[1].mean)
        estimate = Interval(value, half, means[0].level, min(one.n for one in means))
    label = f"AppStripe beyond RTX-CWND at {ends[1]} %, more than at {ends[0]} %"
    return Check(label, estimate, low=0, unit=Unit.SECONDS)


def _c03(source: Source) -> Finding:
    checks, notes = [], []
    try:
        stripe, same = _curves(source, [APP_STRIPE, "RTX-SAME"])
        checks = [
            slower("AppStripe against RTX-SAME", measures.over_curve(source, same, stripe)),
            _growing(source),
        ]
    except NotImplementedYetError as error:
        notes.append(f"without AppStripe: {error}")
    same, asap = _curves(source, ["RTX-SAME", "RTX-ASAP"])
    ratio = measures.over_curve(source, asap, same)
    checks.append(slower("RTX-SAME against RTX-ASAP", ratio))
    for policy in LOSS_AWARE:
        asap, own = _curves(source, ["RTX-ASAP", policy])
        ratio = measures.over_curve(source, asap, own)
        checks.append(faster(f"{policy} against RTX-ASAP", ratio))
    for policy in LOSS_AWARE[1:]:
        cwnd, own = _curves(source, ["RTX-CWND", policy])
        ratio = measures.over_curve(source, cwnd, own)
        checks.append(similar(f"{policy} against RTX-CWND", ratio))
    return Finding(tuple(checks), tuple(notes))


def _c04(source: Source) -> Finding:
    off = {"reverse_loss": False, "delayed_ack": False}
    same, stripe = _curves(source, ["RTX-SAME", APP_STRIPE], **off)
    pairs = list(zip(same, stripe, strict=True))
    label = "AppStripe against RTX-SAME"
    each = [similar(f"{label}, {a.loss_2:g} %", source.ratio(a, b)) for a, b in pairs]
    whole = similar(f"{label}, all together", measures.over_curve(source, same, stripe))
    return Finding((whole, widest(each)))


def _c05(source: Source) -> Finding:
    """SAME has most timeouts, the loss-aware policies have fewest, ASAP is between."""

    def fewer(one: str, other: str) -> Check:
        base, own = (
            measures.together(source, points, measures.timeouts)
            for points in _curves(source, [other, one])
        )
        return faster(f"timeouts of {one} against {other}", measures.quotient(base, own))

    return Finding(
        (
            fewer("RTX-ASAP", "RTX-SAME"),
            *(fewer(policy, "RTX-ASAP") for policy in LOSS_AWARE),
        )
    )


#: A measure of a single path, by the number of the path.
Part = Callable[[int], measures.Measure]


def _parts(source: Source, points: Sequence[Transfer], part: Part) -> tuple[pd.Series, pd.Series]:
    """The measure on path 1 and on both paths together, for each seed."""
    first, second = (measures.together(source, points, part(path)) for path in (0, 1))
    return first, first + second


def _c06(source: Source) -> Finding:
    """If path 2 loses more, SAME delivers most over path 1, ASAP less, the others least."""

    def share(points: list[Transfer]) -> pd.Series:
        first, both = _parts(source, points, measures.arrived)
        return first / both

    def less(one: str, other: str) -> Check:
        base, own = (share(points) for points in _curves(source, [other, one], unequal=True))
        return faster(f"share of path 1, {one} against {other}", measures.quotient(base, own))

    return Finding(
        (
            less("RTX-ASAP", "RTX-SAME"),
            *(less(policy, "RTX-ASAP") for policy in LOSS_AWARE),
        )
    )


def _c07(source: Source) -> Finding:
    (unequal,) = _curves(source, ["RTX-LOSSRATE"], unequal=True)
    over_2 = measures.together(source, unequal, measures.retransmitted(1))

    def share(points: Sequence[Transfer]) -> Interval:
        first, both = _parts(source, points, measures.retransmitted)
        return measures.quotient(both, first)

    even = share([Transfer("RTX-LOSSRATE", LOSS_1)])
    bounds = {
        "RTX-SSTHRESH": (0.5, 1.0),
        "RTX-CWND": (0.5, 1.0),
        "RTX-SAME": (0.0, 0.5),
        "RTX-ASAP": EVEN,
    }
    return Finding(
        (
            Check(
                "RTX-LOSSRATE, retransmissions over path 2",
                interval([float(over_2.max())]),
                0,
                0,
                Unit.COUNT,
                exact=True,
            ),
            Check(f"RTX-LOSSRATE, share of path 1, {LOSS_1} % on both", even, *EVEN, Unit.SHARE),
            *(
                Check(
                    f"{policy}, share of path 1",
                    share(_curves(source, [policy], unequal=True)[0]),
                    *allowed,
                    Unit.SHARE,
                )
                for policy, allowed in bounds.items()
            ),
        )
    )


def _c08(source: Source) -> Finding:
    """The cost of reverse loss, at the same forward losses, with delayed acks in both cases."""

    def cost(policy: str) -> pd.Series:
        losses = [
            loss
            for loss in LOSSES
            if {Transfer(policy, loss), Transfer(policy, loss, reverse_loss=False)}
            <= set(source.settings)
        ]
        without, with_it = (
            measures.together(source, curve(policy, losses, reverse_loss=loss), measures.seconds)
            for loss in (False, True)
        )
        return with_it / without

    stripe, same = cost(APP_STRIPE), cost("RTX-SAME")
    label = "time with reverse loss, of that without: {} against AppStripe"
    relative = measures.quotient(stripe, same)
    costs = [
        f"{name}: {100 * (measures.mean(own).mean - 1):+.1f} %"
        for name, own in ((APP_STRIPE, stripe), ("RTX-SAME", same))
    ]
    return Finding(
        (faster(label.format("RTX-SAME"), relative),),
        (f"reverse loss changes the time by: {', '.join(costs)}",),
    )


def _claim(name: str, figures: tuple[str, ...], judge: Judge) -> Claim:
    return Claim(name, figures, judge, REMARKS.get(name, ""))


CLAIMS = (
    _claim("C01", ("5a",), _c01),
    _claim("C02", ("5a", "5b"), _c02),
    _claim("C03", ("6",), _c03),
    _claim("C04", ("7a",), _c04),
    _claim("C05", ("7b",), _c05),
    _claim("C06", ("7c",), _c06),
    _claim("C07", ("7d",), _c07),
    _claim("C08", ("6", "V.A"), _c08),
)
