"""Scripts that drop the n-th packet of a kind, although ns-2 only counts packets.

The number of the n-th DATA packet on a link depends on the other packets there: the first run uses
a guess, which is corrected from the trace until exactly the packets of the script are lost.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from polypath.ns2.mapping import Setup
from polypath.ns2.network import SCRIPTED
from polypath.ns2.trace import Trace

#: The packets that each link drops, by its name; packets count from 1.
Drops: TypeAlias = Mapping[str, tuple[int, ...]]

#: Packets before the first DATA and the first SACK: INIT, COOKIE ECHO and HEARTBEAT, or their
#: answers, on the first path; a HEARTBEAT or its answer on any other.
_OPENING = (3, 1)


def first_guess(plan: Setup) -> Drops:
    """Assumes that each link only carries packets of the kinds in its script, after the opening."""
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
    """Corrects `drops` after a run with them; returns the same if they were right.

    The result is the script applied to the packets of this run. The run was right up to the first
    packet with a wrong fate, so each correction extends the part that is right.
    """
    kinds = _kinds(trace)
    better = dict(drops)
    for number, link in enumerate(plan.links):
        if all(kind == "packets" for kind, _ in link.script):
            continue
        packets = trace.hop_packet[trace.hop_link == number].tolist()
        own = tuple(sorted(_taken(dict(link.script), [kinds[packet] for packet in packets])))
        given = drops.get(link.name, ())
        # A guess beyond the last packet that was sent had no effect.
        if any((n in own) != (n in given) for n in range(1, len(packets) + 1)):
            better[link.name] = own
    return better


def _taken(script: Mapping[str, tuple[int, ...]], packets: list[list[str]]) -> Iterator[int]:
    """Numbers of the packets that a script drops, given the kinds of each packet in turn."""
    counts: Counter[str] = Counter()
    for number, kinds in enumerate(packets, 1):
        counts.update(["packets", *kinds])
        if any(counts[kind] in script.get(kind, ()) for kind in ("packets", *kinds)):
            yield number
    # Beyond the trace: assume that only packets of the same kind follow.
    for kind, numbers in script.items():
        yield from (len(packets) + n - counts[kind] for n in numbers if n > counts[kind])


def _kinds(trace: Trace) -> list[list[str]]:
    """The kinds by which scripts count each packet, except "packets"."""
    names = {kind: name for name, kind in SCRIPTED.items() if kind is not None}
    firsts, kinds = trace.first_chunk.tolist(), trace.chunk_kind.tolist()
    return [
        sorted({names[kind] for kind in kinds[first:end] if kind in names})
        for first, end in itertools.pairwise(firsts)
    ]
