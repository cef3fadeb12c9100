"""Judges each statement of the paper, in its order.

A quotient is a transfer time as a multiple of another: AllRtxAlt "improves on AllRtxSame by 21 %"
if its time is 0.79 of AllRtxSame's.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from polypath.papers.caro2006_retransmission.compare import (
    MakeCheck,
    across,
    against,
    best,
    best_against,
    plain,
    stating,
)
from polypath.papers.caro2006_retransmission.cross_traffic import CLAIMS as CROSS_TRAFFIC
from polypath.papers.caro2006_retransmission.failure import CLAIMS as FAILURE
from polypath.papers.caro2006_retransmission.remarks import REMARKS
from polypath.papers.caro2006_retransmission.settings import BEST, PRIMARY, point
from polypath.papers.caro2006_retransmission.traces import CLAIMS as TRACES
from polypath.papers.registry import Claim, Judge
from polypath.papers.runs import Source
from polypath.papers.stated import precision
from polypath.papers.verdict import (
    SIMILAR,
    Check,
    Finding,
    at_most,
    faster,
    greatest,
    least,
    similar,
    slower,
    widest,
)
from polypath.statistics import Interval


def _changes(*points: tuple[str, float, float, float]) -> Judge:
    """Plain policies against AllRtxSame: policy, primary and alternate loss, stated share."""

    def judge(source: Source) -> Finding:
        return Finding(
            tuple(
                against(
                    source,
                    plain("AllRtxSame", primary, alternate),
                    plain(policy, primary, alternate),
                    stating(share),
                )
                for policy, primary, alternate, share in points
            )
        )

    return judge


def _largest_improvement(
    id: str,  # noqa: A002 - what it is called everywhere
    policy: str,
    *shares: tuple[str, float],
) -> Judge:
    """Each panel's extension and its improvement, where the alternate path loses most."""
    (at,) = precision(id).at

    def judge(source: Source) -> Finding:
        return Finding(
            tuple(
                against(
                    source,
                    point(policy, "none", primary, at),
                    point(policy, extension, primary, at),
                    stating(share),
                )
                for primary, (extension, share) in zip(PRIMARY, shares, strict=True)
            )
        )

    return judge


def _r10(source: Source) -> Finding:
    base, other = (plain(policy, 8, 10) for policy in ("AllRtxSame", "FrSameRtoAlt"))
    return Finding((against(source, base, other, stating(0.03)),))


def _r12(source: Source) -> Finding:
    return Finding(
        tuple(
            against(source, plain("AllRtxSame", p, p), plain("AllRtxAlt", p, p), slower)
            for p in PRIMARY
        )
    )


def _r13(source: Source) -> Finding:
    checks = across(
        source,
        partial(plain, "AllRtxSame", 3),
        partial(plain, "FrSameRtoAlt", 3),
        similar,
    )
    return Finding((widest(checks),))


def _same(source: Source, extensions: str, base: str, primary: float, make: MakeCheck) -> Check:
    first, second = (point("AllRtxSame", e, primary) for e in (base, extensions))
    return against(source, first, second, make)


def _r16(source: Source) -> Finding:
    pairs = zip(PRIMARY, (-0.08, -0.10, -0.11), strict=True)
    return Finding(tuple(_same(source, "MFR", "none", p, stating(share)) for p, share in pairs))


def _r17(source: Source) -> Finding:
    return Finding(
        (
            _same(source, "TS", "none", 8, stating(-0.07, rounded=0.01)),
            *(_same(source, "TS", "none", primary, similar) for primary in (3, 5)),
        )
    )


def _r18(source: Source) -> Finding:
    """Best at high loss, and elsewhere not measurably worse than another."""
    checks = []
    for other in ("none", "TS", "MFR"):
        checks.append(_same(source, "MFR+TS", other, 8, faster))
        checks += [
            _same(source, "MFR+TS", other, p, lambda text, q: at_most(text, q, SIMILAR))
            for p in (3, 5)
        ]
    return Finding(tuple(checks))


def _r21(source: Source) -> Finding:
    base = point("FrSameRtoAlt", "MFR", 8, 10)
    return Finding(
        tuple(
            against(source, base, point("FrSameRtoAlt", more, 8, 10), stating(-0.045))
            for more in ("MFR+HAR", "MFR+TS")
        )
    )


def _r22(source: Source) -> Finding:
    pairs = (
        ("AllRtxSame", "AllRtxAlt"),
        ("AllRtxSame", "FrSameRtoAlt"),
        ("FrSameRtoAlt", "AllRtxAlt"),
    )
    return Finding(tuple(widest(best_against(source, *pair, 3, similar, (0, 4))) for pair in pairs))


def _r23(source: Source) -> Finding:
    (at,) = precision("R23").at
    return Finding((_best_at(source, "AllRtxAlt", 3, at, stating(0.20)),))


def _best_at(
    source: Source, policy: str, primary: float, at: float, make: MakeCheck, **more: Any
) -> Check:
    """A policy with its best extensions against AllRtxSame, at a loss of the alternate path."""
    base, other = (best(one, primary, at, **more) for one in ("AllRtxSame", policy))
    return against(source, base, other, make)


def _r24(source: Source) -> Finding:
    pairs = zip(precision("R24").at, (-0.10, 0.14), strict=True)
    return Finding(tuple(_best_at(source, "AllRtxAlt", 5, at, stating(s)) for at, s in pairs))


def _r25(source: Source) -> Finding:
    """Nearly all loss rates are those up to 6 %; from there on the curves meet."""
    checks = []
    for policy in ("AllRtxAlt", "FrSameRtoAlt"):
        better = best_against(source, "AllRtxSame", policy, 8, faster, (0, 6))
        alike = best_against(source, "AllRtxSame", policy, 8, _within_two, (8.5, 100))
        checks += [greatest(better), *([widest(alike)] if alike else [])]
    return Finding(tuple(checks))


def _within_two(label: str, quotient: Interval) -> Check:
    return similar(label, quotient, 0.02)


def _r26(source: Source) -> Finding:
    def against_short(policy: str, make: MakeCheck) -> list[Check]:
        return across(
            source,
            partial(best, policy, 3),
            partial(best, policy, 3, alternate_rtt=1040),
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
    """Checks for a slowdown of more than the paper calls similar."""
    return replace(slower(label, quotient), low=SIMILAR)


def _r27(source: Source) -> Finding:
    (at,) = precision("R27").at
    check = _best_at(source, "FrSameRtoAlt", 8, at, stating(0.24), alternate_rtt=1040)
    return Finding((check,))


def _r28(source: Source) -> Finding:
    """Each policy with three paths against itself with two: similar, so their relations are too."""
    checks = []
    for policy, primary in ((p, loss) for p in BEST for loss in PRIMARY):
        three = across(
            source,
            partial(best, policy, primary),
            partial(best, policy, primary, paths=3),
            similar,
        )
        checks.append(widest(three))
    return Finding(tuple(checks))


_R14 = _largest_improvement("R14", "AllRtxAlt", ("HAR", -0.38), ("HAR", -0.43), ("HAR", -0.45))
_R15 = _largest_improvement("R15", "AllRtxAlt", ("TS", -0.45), ("TS", -0.51), ("TS", -0.50))
_R19 = _largest_improvement("R19", "FrSameRtoAlt", ("TS", -0.02), ("TS", -0.05), ("HAR", -0.09))
_R20 = _largest_improvement("R20", "FrSameRtoAlt", ("MFR", -0.10), ("MFR", -0.16), ("MFR", -0.14))

_OTHERS = (
    Claim("R07", ("6",), _changes(("AllRtxAlt", 5, 0, -0.21))),
    Claim("R08", ("6",), _changes(("AllRtxAlt", 5, 10, 1.08))),
    Claim("R09", ("6",), _changes(("FrSameRtoAlt", 8, 0, -0.13))),
    Claim("R10", ("6",), _r10),
    Claim("R11", ("6",), _changes(("AllRtxAlt", 8, 0, -0.36), ("AllRtxAlt", 8, 10, 0.68))),
    Claim("R12", ("6",), _r12),
    Claim("R13", ("6",), _r13),
    Claim("R14", ("8",), _R14),
    Claim("R15", ("8",), _R15),
    Claim("R16", ("9",), _r16),
    Claim("R17", ("9",), _r17),
    Claim("R18", ("9",), _r18),
    Claim("R19", ("10",), _R19),
    Claim("R20", ("10",), _R20),
    Claim("R21", ("10",), _r21),
    Claim("R22", ("12",), _r22),
    Claim("R23", ("12",), _r23),
    Claim("R24", ("12",), _r24),
    Claim("R25", ("12",), _r25),
    Claim("R26", ("12", "13"), _r26),
    Claim("R27", ("13",), _r27),
    Claim("R28", ("12", "5.4"), _r28),
)

CLAIMS = tuple(
    replace(claim, remark=REMARKS.get(claim.id, ""))
    for claim in sorted((*CROSS_TRAFFIC, *TRACES, *_OTHERS, *FAILURE), key=lambda one: one.id)
)
