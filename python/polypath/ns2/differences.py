"""Accepted classes of differences between polypath and ns-2, as predicates over the two traces.

Each is explained in ``docs/ns2-differences.md`` under the same name. A class is decided from what
the traces show at the first packet that differs, never by which scenario it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polypath.ns2.mapping import Setup
from polypath.packets import HEARTBEAT, HEARTBEAT_ACK

if TYPE_CHECKING:
    from polypath.ns2.compare import Comparison


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


CLASSES = (
    Accepted(
        name="heartbeat-jitter",
        why="RFC 9260 8.3 shifts each heartbeat by a random share of the RTO; the dice differ",
        holds=_heartbeat_jitter,
    ),
)


def accepted(plan: Setup, comparison: Comparison) -> str | None:
    """Name of the class that the first difference belongs to, if one."""
    return next((one.name for one in CLASSES if one.holds(plan, comparison)), None)
