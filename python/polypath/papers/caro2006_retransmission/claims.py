"""How each statement of the paper is judged, in the order of the paper.

A quotient is a transfer time as a multiple of another: AllRtxAlt "improves on AllRtxSame by 21 %"
if its time is 0.79 of AllRtxSame's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

from polypath.papers import delaware
from polypath.papers.caro2006_retransmission.cross_traffic import CLAIMS as CROSS_TRAFFIC
from polypath.papers.caro2006_retransmission.figures import EARLY, LATE, PRIMARY_WITH_BREAK
from polypath.papers.caro2006_retransmission.settings import BEST, PRIMARY, Transfer, point
from polypath.papers.caro2006_retransmission.traces import (
    BROKEN,
    QUICKEST,
    SLOWEST,
    STALE,
    outstanding,
    stale,
)
from polypath.papers.registry import Claim, Judge
from polypath.papers.runs import NotThereError, Source
from polypath.papers.verdict import (
    SIMILAR,
    Check,
    Finding,
    Unit,
    about,
    at_most,
    change,
    faster,
    greatest,
    least,
    similar,
    slower,
    typical,
    widest,
)
from polypath.statistics import Interval, interval

#: A check of one point's quotient.
MakeCheck = Callable[[str, Interval], Check]


def _against(source: Source, base: Transfer, other: Transfer, make: MakeCheck) -> Check:
    """What `make` says of the transfer time of `other` as a multiple of that of `base`."""
    label = f"{other} against {_short(base, other)}"
    return make(label, source.ratio(base, other))


def _short(base: Transfer, other: Transfer) -> str:
    """The base by its policy alone, unless that is what both have in common."""
    if (base.policy, base.extensions) == (other.policy, other.extensions):
        return str(base)
    return base.policy if base.extensions == "none" else f"{base.policy}+{base.extensions}"


def _alternates(source: Source, like: Transfer) -> list[float]:
    """The losses of the alternate path at which there is such a point, percent."""
    found = {
        one.alternate_loss
        for one in source.settings
        if isinstance(one, Transfer)
        and replace(one, alternate_loss=0, confirmation="")
        == replace(like, alternate_loss=0, confirmation="")
    }
    if not found:
        raise NotThereError(f"no points like {like}")
    return sorted(found)


def _across(
    source: Source,
    base: Callable[[float], Transfer],
    other: Callable[[float], Transfer],
    make: MakeCheck,
    within: tuple[float, float] = (0, 100),
) -> list[Check]:
    """The checks at every loss of the alternate path between these."""
    losses = [a for a in _alternates(source, other(0)) if within[0] <= a <= within[1]]
    return [_against(source, base(a), other(a), make) for a in losses]


def _plain(policy: str, primary: float, alternate: float) -> Transfer:
    return point(policy, "none", primary, alternate)


def _best(policy: str, primary: float, alternate: float = 0, **more: Any) -> Transfer:
    return point(policy, BEST[policy], primary, alternate, **more)


def _stating(share: float) -> MakeCheck:
    return lambda label, quotient: change(label, quotient, share)


def _changes(*points: tuple[str, float, float, float]) -> Judge:
    """Plain policies against AllRtxSame: policy, primary and alternate loss, and the share."""

    def judge(source: Source) -> Finding:
        return Finding(
            tuple(
                _against(
                    source,
                    _plain("AllRtxSame", primary, alternate),
                    _plain(policy, primary, alternate),
                    _stating(share),
                )
                for policy, primary, alternate, share in points
            )
        )

    return judge


def _largest_improvement(policy: str, extensions: Iterable[str], *shares: float) -> Judge:
    """The best that an extension does at any loss of the alternate path, in each panel."""

    def judge(source: Source) -> Finding:
        checks = []
        for primary, share in zip(PRIMARY, shares, strict=True):
            there = [
                check
                for extension in extensions
                for check in _across(
                    source,
                    partial(point, policy, "none", primary),
                    partial(point, policy, extension, primary),
                    _stating(share),
                )
            ]
            checks.append(least(there))
        return Finding(tuple(checks))

    return judge


def _r05(source: Source) -> Finding:
    results = source.results(STALE)
    averages = [delaware.average_rto([result], path).mean for path in (0, 1) for result in results]
    primary, alternate = averages[: len(results)], averages[len(results) :]
    quotient = interval([b / a for a, b in zip(primary, alternate, strict=True)])
    return Finding(
        (
            Check(
                "RTO of the alternate as a multiple of the primary's",
                quotient,
                2.0,
                unit=Unit.RATIO,
            ),
            typical("average RTO of the primary", primary, 2.3, Unit.SECONDS),
            typical("average RTO of the alternate", alternate, 5.9, Unit.SECONDS),
        )
    )


def _r06(source: Source) -> Finding:
    rows = [stale(result) for result in source.results(STALE)]
    first = interval([row["transmissions"] for row in rows])
    return Finding(
        (
            Check("original transmissions", first, 2889, 2889, Unit.COUNT, exact=True),
            typical(
                "retransmissions on the alternate",
                [row["retransmissions_alternate"] for row in rows],
                229,
                Unit.COUNT,
            ),
            typical("of them lost", [row["lost_alternate"] for row in rows], 14, Unit.COUNT),
        )
    )


def _r10(source: Source) -> Finding:
    base, other = (_plain(policy, 8, 10) for policy in ("AllRtxSame", "FrSameRtoAlt"))
    return Finding((_against(source, base, other, lambda text, q: at_most(text, q, 0.03)),))


def _r12(source: Source) -> Finding:
    return Finding(
        tuple(
            _against(source, _plain("AllRtxSame", p, p), _plain("AllRtxAlt", p, p), slower)
            for p in PRIMARY
        )
    )


def _r13(source: Source) -> Finding:
    checks = _across(
        source,
        partial(_plain, "AllRtxSame", 3),
        partial(_plain, "FrSameRtoAlt", 3),
        similar,
    )
    return Finding((widest(checks),))


def _same(source: Source, extensions: str, base: str, primary: float, make: MakeCheck) -> Check:
    first, second = (point("AllRtxSame", e, primary) for e in (base, extensions))
    return _against(source, first, second, make)


def _r16(source: Source) -> Finding:
    pairs = zip(PRIMARY, (-0.08, -0.10, -0.11), strict=True)
    return Finding(tuple(_same(source, "MFR", "none", p, _stating(share)) for p, share in pairs))


def _r17(source: Source) -> Finding:
    return Finding(
        (
            _same(source, "TS", "none", 8, _stating(-0.07)),
            *(_same(source, "TS", "none", primary, similar) for primary in (3, 5)),
        )
    )


def _r18(source: Source) -> Finding:
    """Nowhere worse than another, as far as one can tell, and best where losses are many."""
    checks = []
    for other in ("none", "TS", "MFR"):
        checks.append(_same(source, "MFR+TS", other, 8, faster))
        checks += [
            _same(source, "MFR+TS", other, p, lambda text, q: at_most(text, q, 0, error=SIMILAR))
            for p in (3, 5)
        ]
    return Finding(tuple(checks))


def _r21(source: Source) -> Finding:
    base = point("FrSameRtoAlt", "MFR", 8, 10)
    return Finding(
        tuple(
            _against(source, base, point("FrSameRtoAlt", more, 8, 10), _stating(-0.045))
            for more in ("MFR+HAR", "MFR+TS")
        )
    )


def _best_against(
    source: Source,
    base: str,
    other: str,
    primary: float,
    make: MakeCheck,
    within: tuple[float, float] = (0, 100),
    **more: Any,
) -> list[Check]:
    """Two policies with their best extensions, over the alternate path's loss."""
    return _across(
        source,
        partial(_best, base, primary, **more),
        partial(_best, other, primary, **more),
        make,
        within,
    )


def _r22(source: Source) -> Finding:
    pairs = (
        ("AllRtxSame", "AllRtxAlt"),
        ("AllRtxSame", "FrSameRtoAlt"),
        ("FrSameRtoAlt", "AllRtxAlt"),
    )
    return Finding(
        tuple(widest(_best_against(source, *pair, 3, similar, (0, 4))) for pair in pairs)
    )


def _r23(source: Source) -> Finding:
    checks = _best_against(source, "AllRtxSame", "AllRtxAlt", 3, _stating(0.20), (5, 100))
    return Finding((greatest(checks),))


def _r24(source: Source) -> Finding:
    def over(share: float) -> list[Check]:
        return _best_against(source, "AllRtxSame", "AllRtxAlt", 5, _stating(share))

    return Finding((least(over(-0.10)), greatest(over(0.14))))


def _r25(source: Source) -> Finding:
    """Nearly all loss rates: those up to 6 %, where the curves have not met yet."""
    checks = []
    for policy in ("AllRtxAlt", "FrSameRtoAlt"):
        better = _best_against(source, "AllRtxSame", policy, 8, faster, (0, 6))
        alike = _best_against(source, "AllRtxSame", policy, 8, _within_two, (8.5, 100))
        checks += [greatest(better), *([widest(alike)] if alike else [])]
    return Finding(tuple(checks))


def _within_two(label: str, quotient: Interval) -> Check:
    return similar(label, quotient, 0.02)


def _r26(source: Source) -> Finding:
    def against_short(policy: str, make: MakeCheck) -> list[Check]:
        return _across(
            source,
            partial(_best, policy, 3),
            partial(_best, policy, 3, alternate_rtt=1040),
            make,
        )

    return Finding(
        (
            widest(against_short("FrSameRtoAlt", similar)),
            least(against_short("AllRtxAlt", _clearly_slower)),
            widest(against_short("AllRtxSame", similar)),
        )
    )


def _clearly_slower(label: str, quotient: Interval) -> Check:
    """More than what the paper calls similar."""
    return replace(slower(label, quotient), low=SIMILAR)


def _r27(source: Source) -> Finding:
    checks = _best_against(
        source, "AllRtxSame", "FrSameRtoAlt", 8, _stating(0.24), alternate_rtt=1040
    )
    return Finding((greatest(checks),))


def _r28(source: Source) -> Finding:
    """Each policy with three paths against itself with two: similar, so the relations stay."""
    checks = []
    for policy, primary in ((p, loss) for p in BEST for loss in PRIMARY):
        three = _across(
            source,
            partial(_best, policy, primary),
            partial(_best, policy, primary, paths=3),
            similar,
        )
        checks.append(widest(three))
    return Finding(tuple(checks))


def _r29(source: Source) -> Finding:
    counted = interval([outstanding(result) for result in source.results(BROKEN)])
    label = "chunks sent again after the break at 4 s"
    return Finding((about(label, counted, 30, unit=Unit.COUNT, exact=True),))


def _r30(source: Source) -> Finding:
    """The pair that differs most, in each panel."""
    checks = []
    for primary in PRIMARY_WITH_BREAK:
        apart: list[Check] = []
        for first, second in combinations(BEST, 2):
            try:
                apart += _best_against(
                    source,
                    first,
                    second,
                    primary,
                    lambda text, quotient: similar(text, quotient, 0.09),
                    breaks_at=EARLY,
                )
            except NotThereError:
                continue
        if apart:
            checks.append(widest(apart))
    if not checks:
        raise NotThereError("no points of Figure 15")
    return Finding(tuple(checks))


def _r31(source: Source) -> Finding:
    checks = []
    for policy in BEST:
        low, high = (70.0, 70.0) if policy == "AllRtxSame" else (8.0, 18.0)
        for alternate in _alternates(source, _best(policy, 0, 0, breaks_at=LATE)):
            setting = _best(policy, 0, alternate, breaks_at=LATE)
            measured = source.mean(setting)
            exact = alternate == 0
            checks.append(Check(str(setting), measured, 0.9 * low, 1.1 * high, Unit.SECONDS, exact))
    return Finding(tuple(checks))


def _r32(source: Source) -> Finding:
    cases = ((QUICKEST, "best case", 63.0), (SLOWEST, "worst case", 360.0))
    return Finding(
        tuple(
            about(
                label,
                interval(delaware.detection_times(source.results(setting)[:1])),
                seconds,
                exact=True,
            )
            for setting, label, seconds in cases
        )
    )


CLAIMS = (
    *CROSS_TRAFFIC,
    Claim("R05", ("4",), _r05),
    Claim("R06", ("4",), _r06),
    Claim("R07", ("6",), _changes(("AllRtxAlt", 5, 0, -0.21))),
    Claim("R08", ("6",), _changes(("AllRtxAlt", 5, 10, 1.08))),
    Claim("R09", ("6",), _changes(("FrSameRtoAlt", 8, 0, -0.13))),
    Claim("R10", ("6",), _r10),
    Claim("R11", ("6",), _changes(("AllRtxAlt", 8, 0, -0.36), ("AllRtxAlt", 8, 10, 0.68))),
    Claim("R12", ("6",), _r12),
    Claim("R13", ("6",), _r13),
    Claim("R14", ("8",), _largest_improvement("AllRtxAlt", ["HAR"], -0.38, -0.43, -0.45)),
    Claim("R15", ("8",), _largest_improvement("AllRtxAlt", ["TS"], -0.45, -0.51, -0.50)),
    Claim("R16", ("9",), _r16),
    Claim("R17", ("9",), _r17),
    Claim("R18", ("9",), _r18),
    Claim("R19", ("10",), _largest_improvement("FrSameRtoAlt", ["HAR", "TS"], -0.02, -0.05, -0.09)),
    Claim("R20", ("10",), _largest_improvement("FrSameRtoAlt", ["MFR"], -0.10, -0.16, -0.14)),
    Claim("R21", ("10",), _r21),
    Claim("R22", ("12",), _r22),
    Claim("R23", ("12",), _r23),
    Claim("R24", ("12",), _r24),
    Claim("R25", ("12",), _r25),
    Claim("R26", ("12", "13"), _r26),
    Claim("R27", ("13",), _r27),
    Claim("R28", ("12", "5.4"), _r28),
    Claim("R29", ("6.1",), _r29),
    Claim("R30", ("15",), _r30),
    Claim("R31", ("16",), _r31),
    Claim("R32", ("6.1",), _r32),
)
