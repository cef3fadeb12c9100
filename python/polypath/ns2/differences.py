"""Accepted classes of differences between polypath and ns-2, as predicates over the two traces.

Each is explained in ``docs/ns2-differences.md`` under the same name. A class is decided from what
the traces show at the first packet that differs, never by which scenario it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polypath.ns2.mapping import Setup
from polypath.ns2.view import Content
from polypath.packets import HEARTBEAT, HEARTBEAT_ACK, SACK

if TYPE_CHECKING:
    from polypath.ns2.compare import Comparison


#: Seconds within which two events are simultaneous: ns-2's traces have microseconds.
_INSTANT = 2e-6


@dataclass(frozen=True)
class Accepted:
    """A class of differences that is accepted."""

    name: str
    why: str
    holds: Callable[[Setup, Comparison], bool]


def _heartbeat_jitter(_plan: Setup, comparison: Comparison) -> bool:
    """The first difference is the time of a heartbeat, or of its answer."""
    found = comparison.difference
    assert found is not None
    kinds = {HEARTBEAT, HEARTBEAT_ACK}
    return any(
        hop is not None and kinds.issuperset(hop.content.kinds)
        for hop in (found.ours, found.theirs)
    )


def _sack_timer_tie(plan: Setup, comparison: Comparison) -> bool:
    """A delayed SACK is due in the instant in which DATA arrives: one has taken it in, one not."""
    found = comparison.difference
    assert found is not None
    if found.ours is None or found.theirs is None:
        return False
    pair = (found.ours, found.theirs)
    if abs(found.ours.time - found.theirs.time) > _INSTANT:
        return False
    if any(hop.content.kinds != (SACK,) for hop in pair):
        return False
    due = found.time - plan.receiver["sackDelay_"]
    if not _arrived(comparison, due):
        return False
    arrived = _arrived(comparison, found.time)
    covered = [{tsn for tsn in arrived if _covers(hop.content, tsn)} for hop in pair]
    return covered[0] != covered[1]


def _arrived(comparison: Comparison, time: float) -> set[int]:
    """TSNs of the DATA that reached the end of a link at a time."""
    hops = comparison.ours.hops
    return {t for hop in hops if abs(hop.arrival - time) <= _INSTANT for t in hop.content.tsns}


def _covers(sack: Content, tsn: int) -> bool:
    cumulative = sack.cumulative or 0
    return tsn <= cumulative or any(first <= tsn <= last for first, last in sack.gaps)


CLASSES = (
    Accepted(
        name="heartbeat-jitter",
        why="RFC 9260 8.3 shifts each heartbeat by a random share of the RTO; the dice differ",
        holds=_heartbeat_jitter,
    ),
    Accepted(
        name="sack-timer-tie",
        why="the delayed SACK's timer expires in the instant in which DATA arrives; which of the "
        "two is first is the order of two event queues",
        holds=_sack_timer_tie,
    ),
)


def accepted(plan: Setup, comparison: Comparison) -> str | None:
    """Name of the class that the first difference belongs to, if one."""
    return next((one.name for one in CLASSES if one.holds(plan, comparison)), None)
