"""Scripts that lose the n-th packet of a kind, where ns-2 only counts packets.

Which number the n-th DATA packet of a link has depends on what else crosses it: a first guess is
tried, and corrected from the trace until the packets that were lost are those of the script.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TypeAlias

from polypath.ns2.mapping import Setup
from polypath.ns2.network import SCRIPTED
from polypath.ns2.trace import Trace

#: Of a link: the packets that it loses, counted from 1.
Drops: TypeAlias = Mapping[str, tuple[int, ...]]

#: Packets before the first DATA and the first SACK: INIT, COOKIE ECHO and HEARTBEAT, or their
#: answers, on the first path; a HEARTBEAT or its answer on any other.
_OPENING = (3, 1)


def first_guess(plan: Setup) -> Drops:
    """As if on each link nothing came between packets of the kinds that its script names."""
    drops = {}
    for number, path in enumerate(plan.paths):
        before = _OPENING[min(number, 1)]
        for link in (*path.forward, *path.back):
            guess = {
                n + (before if kind in ("data", "sack") else 0)
                for kind, numbers in link.script
                for n in numbers
                if kind in ("packets", "data", "sack")
            }
            if guess:
                drops[link.name] = tuple(sorted(guess))
    return drops


def corrected(plan: Setup, trace: Trace, drops: Drops) -> Drops:
    """Better drops, after a run with `drops`; the same if these are right.

    Up to the first packet whose fate was wrong the run was what it should be, so each correction
    makes it right for longer.
    """
    scripts = {
        number: {kind: set(numbers) for kind, numbers in link.script}
        for number, link in enumerate(plan.links)
        if any(kind != "packets" for kind, _ in link.script)
    }
    if not scripts:
        return drops
    kinds = _kinds(trace)
    seen: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for link, packet in zip(trace.hop_link.tolist(), trace.hop_packet.tolist(), strict=True):
        if link not in scripts:
            continue
        script, counts = scripts[link], seen[link]
        counts["packets"] += 1
        counts.update(kinds[packet])
        number = counts["packets"]
        lost = any(counts[kind] in script.get(kind, ()) for kind in ("packets", *kinds[packet]))
        name = plan.links[link].name
        given = drops.get(name, ())
        if lost != (number in given):
            return {**drops, name: _moved(given, number, lost)}
    return drops


def _moved(drops: tuple[int, ...], at: int, lost: bool) -> tuple[int, ...]:
    """A packet is to be lost after all, or not: the guesses behind it move along."""
    before = tuple(n for n in drops if n < at)
    after = tuple(n for n in drops if n > at)
    if lost:
        # The next guess was meant for this packet.
        early = after[0] - at if after else 0
        return (*before, at, *(n - early for n in after[1:]))
    return tuple(sorted({*before, *(n + 1 for n in (at, *after))}))


def _kinds(trace: Trace) -> list[list[str]]:
    """Of each packet: the names by which scripts count it, but for "packets"."""
    names = {kind: name for name, kind in SCRIPTED.items() if kind is not None}
    firsts, kinds = trace.first_chunk.tolist(), trace.chunk_kind.tolist()
    return [
        sorted({names[kind] for kind in kinds[first:end] if kind in names})
        for first, end in itertools.pairwise(firsts)
    ]
