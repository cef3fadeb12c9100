"""Scripts that lose the n-th packet of a kind, where ns-2 only counts packets.

Which number the n-th DATA packet of a link has depends on what else crosses it: a first guess is
tried, and corrected from the trace until the packets that were lost are those of the script.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
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

    They are what the script takes of the packets of this run. Up to the first packet whose fate was
    wrong it was the run that it should be, so each correction makes it right for longer.
    """
    kinds = _kinds(trace)
    better = dict(drops)
    for number, link in enumerate(plan.links):
        if all(kind == "packets" for kind, _ in link.script):
            continue
        packets = trace.hop_packet[trace.hop_link == number].tolist()
        own = tuple(sorted(_taken(dict(link.script), [kinds[packet] for packet in packets])))
        given = drops.get(link.name, ())
        # What nobody has sent was not lost, whatever was guessed for it.
        if any((n in own) != (n in given) for n in range(1, len(packets) + 1)):
            better[link.name] = own
    return better


def _taken(script: Mapping[str, tuple[int, ...]], packets: list[list[str]]) -> Iterator[int]:
    """Numbers of the packets that a script takes, given the kinds of each packet in turn."""
    counts: Counter[str] = Counter()
    for number, kinds in enumerate(packets, 1):
        counts.update(["packets", *kinds])
        if any(counts[kind] in script.get(kind, ()) for kind in ("packets", *kinds)):
            yield number
    # Of what was not seen: as if only packets of its kind were still to come.
    for kind, numbers in script.items():
        yield from (len(packets) + n - counts[kind] for n in numbers if n > counts[kind])


def _kinds(trace: Trace) -> list[list[str]]:
    """Of each packet: the names by which scripts count it, but for "packets"."""
    names = {kind: name for name, kind in SCRIPTED.items() if kind is not None}
    firsts, kinds = trace.first_chunk.tolist(), trace.chunk_kind.tolist()
    return [
        sorted({names[kind] for kind in kinds[first:end] if kind in names})
        for first, end in itertools.pairwise(firsts)
    ]
