"""The part of a run that the differential test compares.

Packets at links from the first DATA to the last acknowledgement; times count from the first DATA.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from polypath._core import PathSeries
from polypath.ns2.variables import PathSeries as Ns2Series
from polypath.packets import (
    ABORT,
    DATA,
    FATES,
    HEARTBEAT,
    HEARTBEAT_ACK,
    KINDS,
    SACK,
    TIMESTAMP,
    PacketTrace,
    duplicate_tsns,
    gap_blocks,
)

#: Packets with one of these chunks are compared; setup and shutdown of an association differ.
_COMPARED = {DATA, SACK, HEARTBEAT, HEARTBEAT_ACK}


@dataclass(frozen=True)
class Content:
    """The content of a packet that both traces show."""

    direction: int
    path: int
    size: int
    kinds: tuple[int, ...]
    tsns: tuple[int, ...]
    retransmission: bool
    cumulative: int | None
    gaps: tuple[tuple[int, int], ...]
    duplicates: tuple[int, ...]

    def __str__(self) -> str:
        parts = [f"p{self.path} {'<' if self.direction else '>'}"]
        for kind in self.kinds:
            parts.append(KINDS.get(kind, f"chunk {kind}"))
            if kind == DATA:
                parts.append(",".join(map(str, self.tsns)) + (" again" * self.retransmission))
            elif kind == SACK:
                parts.append(str(self.cumulative))
                parts += [f"{a}-{b}" if a != b else str(a) for a, b in self.gaps]
                parts += ["twice " + ",".join(map(str, self.duplicates))] * bool(self.duplicates)
        return " ".join(parts)


@dataclass(frozen=True)
class Hop:
    """A packet at a link; times in seconds from the first DATA."""

    time: float
    link: str
    content: Content
    fate: str
    arrival: float
    #: Whether this is the packet's first link.
    leaves: bool

    def __str__(self) -> str:
        fate = "" if self.fate in ("delivered", "sent") else f" {self.fate}"
        return f"{self.time:10.6f} {self.content}{fate}"


@dataclass(frozen=True)
class State:
    """The variables of a path at a time."""

    path: int
    cwnd: int
    ssthresh: int
    in_flight: int
    rto: float
    srtt: float
    errors: int


@dataclass(frozen=True)
class View:
    """The part of a run that is compared."""

    hops: list[Hop]
    #: Arrival of the last acknowledgement, or the end of the trace.
    end: float
    #: Time of the first DATA, in seconds from the beginning of the run.
    start: float
    complete: bool
    series: Sequence[PathSeries | Ns2Series]

    @property
    def sent(self) -> list[Hop]:
        """The packets at their first link."""
        return [hop for hop in self.hops if hop.leaves]

    def state(self, time: float, *, after: bool) -> list[State]:
        """The variables just before a time, or just after it."""
        at = time + self.start + (1e-4 if after else -2e-5)
        states = []
        for one in self.series:
            if one.side != "sender":
                continue
            known = int((one.time <= at).sum()) - 1
            if known >= 0:
                states.append(
                    State(
                        path=one.path,
                        cwnd=int(one.cwnd[known]),
                        ssthresh=int(one.ssthresh[known]),
                        in_flight=int(one.in_flight[known]),
                        rto=float(one.rto[known]),
                        srtt=float(one.srtt[known]),
                        errors=int(one.error_count[known]),
                    )
                )
        return states


def view(
    trace: PacketTrace,
    series: Sequence[PathSeries | Ns2Series],
    messages: int,
    ended_at: float,
) -> View:
    """The part of a trace that is compared; `messages` is the highest TSN."""
    contents = _contents(trace)
    times, arrivals = trace.hop_time.tolist(), trace.hop_arrival.tolist()
    packets, fates = trace.hop_packet.tolist(), trace.hop_fate.tolist()
    links = [trace.links[link] for link in trace.hop_link.tolist()]
    first = next((i for i, p in enumerate(packets) if DATA in contents[p].kinds), None)
    start = times[first] if first is not None else math.inf
    end, complete = ended_at, False
    last_back = {name for name in trace.links if name.endswith("/back/last")} or {
        name for name in trace.links if name.endswith("/back")
    }
    for index, packet in enumerate(packets):
        if ABORT in contents[packet].kinds:
            # The sender gave up; ns-2's sender does so without a packet to the receiver.
            end = times[index]
            break
        cumulative = contents[packet].cumulative
        if cumulative is not None and cumulative >= messages and links[index] in last_back:
            arrival = arrivals[index]
            if not math.isnan(arrival):
                end, complete = arrival, True
                break
    seen: set[int] = set()
    hops = []
    for index, packet in enumerate(packets):
        leaves = packet not in seen
        seen.add(packet)
        time, content = times[index], contents[packet]
        if not start <= time < end or not _COMPARED.intersection(content.kinds):
            continue
        if FATES[fates[index]] == "down":
            # ns-2's trace does not show packets that are offered to a link that is down.
            continue
        arrival = arrivals[index]
        hops.append(
            Hop(
                time=time - start,
                link=links[index],
                content=content,
                fate=FATES[fates[index]],
                arrival=math.nan if arrival > end else arrival - start,
                leaves=leaves,
            )
        )
    return View(hops, end - start, start, complete, series)


def _contents(trace: PacketTrace) -> list[Content]:
    kinds, tsns = trace.chunk_kind.tolist(), trace.chunk_tsn.tolist()
    again, firsts = trace.chunk_retransmission.tolist(), trace.first_chunk.tolist()
    heads = zip(trace.direction.tolist(), trace.path.tolist(), trace.size.tolist(), strict=True)
    contents = []
    for packet, (direction, path, size) in enumerate(heads):
        # ns-2's trace does not show timestamps; the sizes of the packets do.
        every = range(firsts[packet], firsts[packet + 1])
        own = [chunk for chunk in every if kinds[chunk] != TIMESTAMP]
        data = [c for c in own if kinds[c] == DATA]
        sack = next((c for c in own if kinds[c] == SACK), None)
        contents.append(
            Content(
                direction=direction,
                path=path,
                size=size,
                kinds=tuple(kinds[c] for c in own),
                tsns=tuple(tsns[c] for c in data),
                retransmission=any(again[c] for c in data),
                cumulative=None if sack is None else tsns[sack],
                gaps=() if sack is None else gap_blocks(trace, sack),
                duplicates=() if sack is None else duplicate_tsns(trace, sack),
            )
        )
    return contents
