"""`cross_traffic` of a path: single-homed nodes at both ends of its middle link, as in ns-2.

Each node has Pareto sources that send to the node opposite, in both directions
(caro2006-retransmission 2.1, natarajan2009 3). ns-2's sources begin with a pause; in our simulator
a source is on at its beginning with the probability with which it is on later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from polypath._core import quantity
from polypath.ns2.network import Link, refuse

#: The defaults of our simulator: the papers' values, and values that the papers leave open.
_LOAD, _NODES, _SOURCES = "80 %", 4, 8
_SIZES = ("44 B", "44 B", "576 B", "1500 B")
_SHAPE, _ON, _OFF, _DELAY = 1.5, "500 ms", "500 ms", "5 ms .. 20 ms"


@dataclass(frozen=True)
class CrossTraffic:
    """Background traffic over the middle link of a path."""

    path: str
    #: The routers at the sender's and at the receiver's end, by number.
    routers: tuple[int, int]
    #: Template of the nodes' links to the routers, and their delays in seconds at both ends.
    edge: Link
    delays: tuple[tuple[float, ...], tuple[float, ...]]
    #: Sources of a node, by direction: packet size in bytes, and rate during bursts in bit/s.
    sources: tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]
    shape: float
    #: Mean length of bursts and of pauses, seconds.
    on: float
    off: float


def cross_traffic(
    spec: Mapping[str, Any], path: str, middle: tuple[Link, Link], edge: Link, seed: int
) -> CrossTraffic:
    """The background traffic of a path with edges; `middle` is forward, then back."""
    on, off = (quantity(str(spec.get(key, usual))) for key, usual in (("on", _ON), ("off", _OFF)))
    nodes, count = int(spec.get("nodes", _NODES)), int(spec.get("sources", _SOURCES))
    sizes = [int(quantity(size)) for size in spec.get("packet_sizes", _SIZES)]
    own = [sizes[n % len(sizes)] for n in range(count)]
    directions = []
    for way, link in zip(("forward", "back"), middle, strict=True):
        load = spec.get(way, spec)
        if "rate" in load:
            rate = quantity(load["rate"])
        else:
            rate = quantity(str(load.get("load", _LOAD))) * link.rate
        # All sources send the same number of packets, and only while they are on.
        burst = rate / nodes / sum(own) * (on + off) / on
        directions.append(tuple((size, size * burst) for size in own if rate > 0))
    low, _, high = str(spec.get("delay", _DELAY)).partition("..")
    span = quantity(low.strip()), quantity((high or low).strip())
    return CrossTraffic(
        path=path,
        routers=middle[0].ends,
        edge=edge,
        delays=(
            tuple(_uniform(span, f"{seed}/{path}/cross{n}-near") for n in range(nodes)),
            tuple(_uniform(span, f"{seed}/{path}/cross{n}-far") for n in range(nodes)),
        ),
        sources=(directions[0], directions[1]),
        shape=float(spec.get("shape", _SHAPE)),
        on=on,
        off=off,
    )


def check_no_traffic(traffic: list[Any]) -> None:
    """Rejects `[[traffic]]`: its nodes may be anywhere in the network."""
    if traffic:
        raise refuse("[[traffic]]", len(traffic), "cross_traffic of a [[path]]")


def random_seed(name: str) -> int:
    """A seed of ns-2's generator for each component: a new component changes no other's numbers."""
    digest = hashlib.sha256(name.encode()).digest()
    return 1 + int.from_bytes(digest[:4]) % (2**31 - 2)


def _uniform(span: tuple[float, float], name: str) -> float:
    low, high = span
    return low + (high - low) * random_seed(name) / 2**31


def nodes_and_sources(traffic: CrossTraffic, seed: int) -> list[str]:
    """Tcl for the nodes, their links, and their sources, which start at once."""
    lines = []
    for n, delays in enumerate(zip(*traffic.delays, strict=True)):
        for end, router, delay in zip(("near", "far"), traffic.routers, delays, strict=True):
            link = replace(traffic.edge, delay=delay)
            lines += [
                f"set cross({end}) [$ns node]",
                *link.tcl(f"$cross({end})", f"$node({router})"),
                *link.tcl(f"$node({router})", f"$cross({end})"),
            ]
        for way, sources in zip(("forward", "back"), traffic.sources, strict=True):
            start, goal = ("near", "far") if way == "forward" else ("far", "near")
            for number, (size, rate) in enumerate(sources):
                name = f"{seed}/{traffic.path}/{way}/cross{n}/{number}"
                lines.append(
                    f"background $cross({start}) $cross({goal}) {size} {rate!r} "
                    f"{traffic.shape!r} {traffic.on!r} {traffic.off!r} {random_seed(name)}"
                )
    return lines


#: A source of background packets.
PROCEDURE = """proc background {from to size rate shape on off seed} {
    global ns
    set agent [new Agent/UDP]
    $agent set packetSize_ $size
    set goal [new Agent/Null]
    $ns attach-agent $from $agent
    $ns attach-agent $to $goal
    $ns connect $agent $goal
    set source [new Application/Traffic/Pareto]
    $source set packetSize_ $size
    $source set rate_ $rate
    $source set shape_ $shape
    $source set burst_time_ $on
    $source set idle_time_ $off
    set dice [new RNG]
    $dice seed $seed
    $source use-rng $dice
    $source attach-agent $agent
    $ns at 0.0 "$source start"
}"""
