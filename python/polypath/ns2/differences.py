"""Accepted classes of differences between polypath and ns-2, as predicates over the two traces.

Each is explained in ``docs/ns2-differences.md`` under the same name. The class follows from the
traces at the first packet that differs, never from the scenario's identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from polypath.ns2.comparison import Comparison
from polypath.ns2.mapping import Setup
from polypath.ns2.view import Content
from polypath.packets import DATA, HEARTBEAT, SACK
from polypath.parameters import NS2_VARIABLES

#: Seconds within which two events are simultaneous: ns-2's traces have a resolution of 1 us.
_INSTANT = 2e-6


@dataclass(frozen=True)
class Accepted:
    """A class of differences that is accepted."""

    name: str
    why: str
    holds: Callable[[Setup, Comparison], bool]


def _heartbeat_jitter(plan: Setup, comparison: Comparison) -> bool:
    """An idle path's HEARTBEAT, which the other side sends earlier or later by at most RTO.Max."""
    found = comparison.difference
    assert found is not None
    for hop, own, other in (
        (found.ours, comparison.ours, comparison.theirs),
        (found.theirs, comparison.theirs, comparison.ours),
    ):
        if hop is None or hop.time > found.time + _INSTANT or hop.content.kinds != (HEARTBEAT,):
            continue
        # A HEARTBEAT after a timeout or a failure leaves together with the retransmission.
        if any(
            one.leaves and DATA in one.content.kinds and abs(one.time - hop.time) <= _INSTANT
            for one in own.hops
        ):
            return False
        latest = plan.sender["maxRto_"]
        return other.end < hop.time + latest or any(
            one.link == hop.link
            and HEARTBEAT in one.content.kinds
            and _INSTANT < abs(one.time - hop.time) <= latest
            for one in other.hops
        )
    return False


def _sack_timer_tie(plan: Setup, comparison: Comparison) -> bool:
    """A delayed SACK is due at the instant when DATA arrives: only one side's SACK covers it.

    What the sender of a timestamp agent receives as DATA is a packet of its peer.
    """
    found = comparison.difference
    assert found is not None
    due = found.time - plan.receiver["sackDelay_"]
    hops = [hop for hop in (found.ours, found.theirs) if hop is not None]
    own = [hop for hop in hops if hop.content.direction == 0 and SACK in hop.content.kinds]
    if any(_same(hop.time, found.time) for hop in own):
        back = {path.back[-1].name for path in plan.paths}
        ends = [hop.arrival for hop in comparison.ours.hops if hop.link in back]
        return all(any(_same(end, at) for end in ends) for at in (due, found.time))
    if found.ours is None or found.theirs is None:
        return False
    pair = (found.ours, found.theirs)
    if abs(found.ours.time - found.theirs.time) > _INSTANT:
        return False
    if any(hop.content.kinds != (SACK,) for hop in pair):
        return False
    if not _arrived(comparison, due):
        return False
    arrived = _arrived(comparison, found.time)
    covered = [{tsn for tsn in arrived if _covers(hop.content, tsn)} for hop in pair]
    return covered[0] != covered[1]


def _arrival_tie(plan: Setup, comparison: Comparison) -> bool:
    """DATA arrives over two paths at the same instant, and the SACKs for it differ."""
    found = comparison.difference
    assert found is not None
    hops = [hop for hop in (found.ours, found.theirs) if hop is not None]
    if any(hop.content.kinds != (SACK,) or hop.content.direction != 1 for hop in hops):
        return False
    last = {path.forward[-1].name for path in plan.paths}
    paths = {
        hop.content.path
        for hop in comparison.ours.hops
        if hop.link in last and DATA in hop.content.kinds
        if abs(hop.arrival - found.time) <= _INSTANT
    }
    return len(paths) > 1


def _arrived(comparison: Comparison, time: float) -> set[int]:
    """TSNs of the DATA that reached the end of a link at a time."""
    hops = comparison.ours.hops
    return {t for hop in hops if abs(hop.arrival - time) <= _INSTANT for t in hop.content.tsns}


def _t3_tie(_plan: Setup, comparison: Comparison) -> bool:
    """T3-rtx expires at the instant when a SACK arrives: only one sender has processed the SACK."""
    found = comparison.difference
    assert found is not None
    if found.ours is None or found.theirs is None:
        return False
    pair = (found.ours, found.theirs)
    if any(DATA not in hop.content.kinds or not hop.leaves for hop in pair):
        return False
    hops = comparison.ours.hops
    passed_on = {hop.content for hop in hops if not hop.leaves and _same(hop.time, found.time)}
    arrives = any(
        SACK in hop.content.kinds
        and hop.content.direction == 1
        and _same(hop.arrival, found.time)
        and hop.content not in passed_on
        for hop in hops
    )
    expires = any(
        _same(hop.time + path.rto, found.time)
        for path in comparison.ours.state(found.time, after=False)
        for hop in hops
        if hop.leaves and DATA in hop.content.kinds and hop.content.path == path.path
    )
    return arrives and expires


def _same(time: float, other: float) -> bool:
    return abs(time - other) <= _INSTANT


def _timer_tie(_plan: Setup, comparison: Comparison) -> bool:
    """The timers of two paths expire at one instant: in one of the runs both count an error."""
    found = comparison.difference
    assert found is not None
    hops = [hop for hop in (found.ours, found.theirs) if hop is not None]
    if any(hop.content.direction != 0 or not hop.leaves for hop in hops):
        return False
    if not any(_same(hop.time, found.time) for hop in hops):
        return False
    for side in (comparison.ours, comparison.theirs):
        before = {one.path: one.errors for one in side.state(found.time, after=False)}
        after = side.state(found.time, after=True)
        if sum(one.errors > before.get(one.path, one.errors) for one in after) > 1:
            return True
    return False


def _queue_tie(plan: Setup, comparison: Comparison) -> bool:
    """A packet is offered to a full queue at the instant when another one leaves it."""
    found = comparison.difference
    assert found is not None
    if found.ours is None or found.theirs is None:
        return False
    fates = {found.ours.fate, found.theirs.fate}
    if found.ours.content != found.theirs.content or "queue" not in fates or len(fates) == 1:
        return False
    delay = next(link.delay for link in plan.links if link.name == found.link)
    return any(
        hop.link == found.link and _same(hop.arrival - delay, found.time)
        for hop in comparison.ours.hops
    )


def _full_buffer(plan: Setup, comparison: Comparison) -> bool:
    """The chunk that is missing arrives at a full receive buffer: the module drops it."""
    found = comparison.difference
    assert found is not None
    if found.ours is None or found.theirs is None:
        return False
    ours, theirs = found.ours.content, found.theirs.content
    if any(one.kinds[-1:] != (SACK,) or one.direction != 1 for one in (ours, theirs)):
        return False
    room = plan.receiver[NS2_VARIABLES["receive_buffer"]] // plan.receiver["dataChunkSize_"]
    stored = sum(last - first + 1 for first, last in theirs.gaps)
    return stored >= room and (ours.cumulative or 0) > (theirs.cumulative or 0)


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
    Accepted(
        name="t3-tie",
        why="T3-rtx expires in the instant in which a SACK arrives; which of the two is first is "
        "the order of two event queues",
        holds=_t3_tie,
    ),
    Accepted(
        name="arrival-tie",
        why="DATA comes over two paths in the same instant, as it does where these are alike; "
        "which is taken first is the order of two event queues",
        holds=_arrival_tie,
    ),
    Accepted(
        name="timer-tie",
        why="the timers of two paths expire in the same instant; which of the two is first is the "
        "rounding of ns-2's doubles",
        holds=_timer_tie,
    ),
    Accepted(
        name="queue-tie",
        why="a packet is offered to a full queue in the instant in which another leaves it; which "
        "of the two is first is the order of two event queues",
        holds=_queue_tie,
    ),
    Accepted(
        name="full-buffer",
        why="the module drops what a full receive buffer waits for, and the transfer never ends; "
        "RFC 9260 6.2 has the highest TSN dropped instead",
        holds=_full_buffer,
    ),
)


def accepted(plan: Setup, comparison: Comparison) -> str | None:
    """Name of the class of the first difference, if any."""
    return next((one.name for one in CLASSES if one.holds(plan, comparison)), None)
