"""Compares points of the figures, for the judgement of several statements.

A quotient is a transfer time as a multiple of another: AllRtxAlt "improves on AllRtxSame by 21 %"
if its time is 0.79 of AllRtxSame's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from polypath.papers.caro2006_retransmission.settings import BEST, Transfer, point
from polypath.papers.runs import NotThereError, Source
from polypath.papers.verdict import ROUNDED, Check, change
from polypath.statistics import Interval

#: A check of one point's quotient.
MakeCheck = Callable[[str, Interval], Check]


#: Section 3.1: "Each parameter set is simulated with 60 different seeds."
PAPERS_RUNS = 60


def against(source: Source, base: Transfer, other: Transfer, make: MakeCheck) -> Check:
    """Applies `make` to the transfer time of `other` as a multiple of that of `base`.

    A stated number has the error that the paper's runs give it.
    """
    label = f"{other} against {short(base, other)}"
    check = make(label, source.ratio(base, other))
    return check.known_within(source.error_of_ratio(base, other, PAPERS_RUNS))


def short(base: Transfer, other: Transfer) -> str:
    """Names the base by its policy alone, unless both have the same policy."""
    if (base.policy, base.extensions) == (other.policy, other.extensions):
        return str(base)
    return base.policy if base.extensions == "none" else f"{base.policy}+{base.extensions}"


def alternates(source: Source, like: Transfer) -> list[float]:
    """The losses of the alternate path that have such a point, percent."""
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


def across(
    source: Source,
    base: Callable[[float], Transfer],
    other: Callable[[float], Transfer],
    make: MakeCheck,
    within: tuple[float, float] = (0, 100),
) -> list[Check]:
    """The checks at every loss of the alternate path within these limits."""
    losses = [a for a in alternates(source, other(0)) if within[0] <= a <= within[1]]
    return [against(source, base(a), other(a), make) for a in losses]


def plain(policy: str, primary: float, alternate: float) -> Transfer:
    """The policy without extensions."""
    return point(policy, "none", primary, alternate)


def best(policy: str, primary: float, alternate: float = 0, **more: Any) -> Transfer:
    """The policy with its best extensions."""
    return point(policy, BEST[policy], primary, alternate, **more)


def stating(share: float, rounded: float = ROUNDED) -> MakeCheck:
    """Checks a change against a stated one."""
    return lambda label, quotient: change(label, quotient, share, rounded=rounded)


def best_against(
    source: Source,
    base: str,
    other: str,
    primary: float,
    make: MakeCheck,
    within: tuple[float, float] = (0, 100),
    **more: Any,
) -> list[Check]:
    """Two policies with their best extensions, over the alternate path's loss."""
    return across(
        source,
        partial(best, base, primary, **more),
        partial(best, other, primary, **more),
        make,
        within,
    )
