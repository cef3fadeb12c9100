"""Converts ns-2's packet trace, line by line, to the columns of our simulator.

With ``show_sctphdr_`` each event of a packet (enqueued ``+``, dropped ``d``, received ``r``) has a
line for each chunk with its TSN, or the cumulative ack of a SACK. The trace lacks gap ack blocks
and duplicate TSNs: they are derived from the DATA that reached the receiver before it sent the
SACK, and their number is checked against the size of the packet.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from polypath.ns2.mapping import Setup
from polypath.packets import (
    COOKIE_ACK,
    COOKIE_ECHO,
    DATA,
    FATES,
    HEARTBEAT,
    HEARTBEAT_ACK,
    INIT,
    INIT_ACK,
    SACK,
)
from polypath.parameters import NS2_VARIABLES

#: Bytes of a SACK without blocks (IP included), of a block, and of a timestamp chunk.
_BARE_SACK, _BLOCK, _TIMESTAMP = 48, 4, 12
#: The TSN that a timestamp agent reads from a timestamp chunk of zeros: DATA with a TSN before 1.
_BEFORE_FIRST = 0
#: Resolution of the times, seconds.
_RESOLUTION = 1e-6
_FATE = {name: number for number, name in enumerate(FATES)}
#: The chunk of the timestamp extension has no type in RFC 9260.
_KINDS = {"D": DATA, "S": SACK, "H": HEARTBEAT, "B": HEARTBEAT_ACK}

_Number = TypeVar("_Number", np.uint8, np.uint32)


class TraceError(RuntimeError):
    """ns-2's trace is inconsistent or has an unknown chunk."""


@dataclass(frozen=True)
class Trace:
    """The columns of :class:`polypath.packets.PacketTrace`, and the arrivals at the receiver."""

    associations: list[str]
    links: list[str]
    hop_time: NDArray[np.float64]
    hop_packet: NDArray[np.uint32]
    hop_link: NDArray[np.uint32]
    hop_fate: NDArray[np.uint8]
    hop_arrival: NDArray[np.float64]
    association: NDArray[np.uint32]
    direction: NDArray[np.uint8]
    path: NDArray[np.uint8]
    size: NDArray[np.uint32]
    first_chunk: NDArray[np.uint32]
    chunk_kind: NDArray[np.uint8]
    chunk_tsn: NDArray[np.uint32]
    chunk_retransmission: NDArray[np.bool_]
    chunk_a_rwnd: NDArray[np.uint32]
    first_gap: NDArray[np.uint32]
    gap_first: NDArray[np.uint32]
    gap_last: NDArray[np.uint32]
    first_duplicate: NDArray[np.uint32]
    duplicate: NDArray[np.uint32]
    #: First arrival of each TSN at the receiver in seconds, from TSN 1.
    received: NDArray[np.float64]
    #: DATA chunks that reached the receiver again.
    duplicates: int
    #: Counters of background packets, by link.
    background: list[Counter[str]]
    #: Whether the sender received the acknowledgement of everything; the trace's end in seconds.
    acknowledged: bool
    end: float


@dataclass
class _Receiver:
    """The TSNs that the receiver has stored."""

    #: Chunks out of order that the receive buffer has room for.
    room: int
    cumulative: int = 0
    above: set[int] = field(default_factory=set)
    duplicates: set[int] = field(default_factory=set)
    repeated: int = 0
    first: dict[int, float] = field(default_factory=dict)

    def take(self, tsn: int, at: float) -> None:
        if tsn in self.first:
            self.repeated += 1
            self.duplicates.add(tsn)
            return
        if len(self.above) >= self.room:
            # The module drops a chunk that its receive buffer has no room for, and sends a SACK.
            return
        self.first[tsn] = at
        self.above.add(tsn)
        while self.cumulative + 1 in self.above:
            self.cumulative += 1
            self.above.remove(self.cumulative)

    def gaps(self) -> list[tuple[int, int]]:
        blocks: list[tuple[int, int]] = []
        for tsn in sorted(self.above):
            if blocks and blocks[-1][1] == tsn - 1:
                blocks[-1] = (blocks[-1][0], tsn)
            else:
                blocks.append((tsn, tsn))
        return blocks

    def reported(self) -> list[int]:
        told = sorted(self.duplicates)
        self.duplicates.clear()
        return told


class Reader:
    """Reads lines until the sender has received the acknowledgement of all messages."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._links = {link.ends: number for number, link in enumerate(setup.links)}
        # The direction and the path of each link.
        self._where = [
            (direction, number)
            for number, path in enumerate(setup.paths)
            for direction, links in enumerate((path.forward, path.back))
            for _ in links
        ]
        last = {path.forward[-1].ends: 0 for path in setup.paths}
        last |= {path.back[-1].ends: 1 for path in setup.paths}
        self._last = last
        # The module charges a chunk with its header.
        window = setup.receiver[NS2_VARIABLES["receive_buffer"]]
        self._receiver = _Receiver(int(window // setup.receiver["dataChunkSize_"]))
        self._total = len(setup.messages)
        self._packets: dict[str, int] = {}
        self._at_link: dict[tuple[int, int], int] = {}
        self._hops: list[tuple[float, int, int]] = []
        self._fates: list[int] = []
        self._arrivals: list[float] = []
        self._heads: list[tuple[int, int, int]] = []
        self._chunks: list[list[tuple[int, int]]] = []
        self._blocks: dict[int, tuple[list[tuple[int, int]], list[int]]] = {}
        self._highest = 0
        self._retransmitted: set[tuple[int, int]] = set()
        self._counts: list[Counter[str]] = [Counter() for _ in setup.links]
        self._queued: list[set[str]] = [set() for _ in setup.links]
        self._end = 0.0
        self._finished = False

    def read(self, lines: Iterable[str]) -> bool:
        """Reads lines; returns true as soon as everything is acknowledged."""
        chunks: list[tuple[str, int]] = []
        for line in lines:
            fields = line.split()
            if len(fields) < 12 or fields[0] == "-":
                continue
            link = self._links.get((int(fields[2]), int(fields[3])))
            if link is None:
                continue
            if fields[4] != "sctp":
                self._background(fields, link)
                continue
            chunks.append((fields[6][7], int(fields[11])))
            if len(chunks) < int(fields[10]):
                continue
            self._event(fields, link, chunks)
            chunks = []
            if self._finished:
                return True
        return False

    def _event(self, fields: Sequence[str], link: int, chunks: list[tuple[str, int]]) -> None:
        what, at = fields[0], float(fields[1])
        self._end = at
        packet = self._packets.get(fields[12])
        if packet is None:
            packet = self._packets[fields[12]] = len(self._heads)
            self._new(packet, at, int(fields[5]), link, chunks)
        place = (packet, link)
        hop = self._at_link.get(place)
        if hop is None:
            hop = self._at_link[place] = len(self._hops)
            self._hops.append((at, packet, link))
            self._fates.append(_FATE["sent"])
            self._arrivals.append(math.nan)
            offered = False
        else:
            offered = True
        if what == "d":
            down = self._down(at, link)
            reason = "down" if down else "queue" if offered else "lost"
            self._fates[hop] = _FATE[reason]
        elif what == "r":
            self._fates[hop] = _FATE["delivered"]
            self._arrivals[hop] = at
            direction = self._last.get((int(fields[2]), int(fields[3])))
            if direction is not None:
                self._arrived(packet, direction, at)

    def _background(self, fields: Sequence[str], link: int) -> None:
        """Counts a background packet."""
        counts, size = self._counts[link], int(fields[5])
        if fields[0] == "r":
            counts["delivered"] += 1
            counts["delivered_bytes"] += size
            self._queued[link].discard(fields[11])
            return
        known = fields[11] in self._queued[link]
        if not known:
            counts["offered"] += 1
            counts["offered_bytes"] += size
        if fields[0] == "+":
            self._queued[link].add(fields[11])
        elif self._down(float(fields[1]), link):
            counts["lost_outage"] += 1
        else:
            counts["dropped_queue" if known else "lost"] += 1

    def _new(
        self, packet: int, at: float, size: int, link: int, chunks: list[tuple[str, int]]
    ) -> None:
        direction, path = self._where[link]
        self._heads.append((direction, path, size))
        own: list[tuple[int, int]] = []
        for letter, tsn in chunks:
            kind = _KINDS.get(letter)
            if letter == "I":
                # The trace has the same letter for all four packets of the handshake.
                first, then = ((INIT, COOKIE_ECHO), (INIT_ACK, COOKIE_ACK))[direction]
                kind = then if self._is_second(direction, size) else first
            if kind is None:
                raise TraceError(f"ns-2's trace has a chunk of an unknown kind, {letter!r}")
            if kind == DATA:
                if tsn <= self._highest:
                    self._retransmitted.add((packet, len(own)))
                self._highest = max(self._highest, tsn)
            elif kind == SACK and direction == 1:
                self._sack(packet, at, size, tsn)
            elif kind == SACK:
                self._stray(packet, at, size, tsn)
            own.append((kind, tsn if kind in (DATA, SACK) else 0))
        self._chunks.append(own)

    def _is_second(self, direction: int, size: int) -> bool:
        """Whether this is a COOKIE ECHO or COOKIE ACK: smaller than the INIT of its direction."""
        first = next((s for d, _, s in self._heads if d == direction), size)
        return size < first

    def _sack(self, packet: int, at: float, size: int, cumulative: int) -> None:
        receiver = self._receiver
        gaps, duplicates = receiver.gaps(), receiver.reported()
        bare = _BARE_SACK + (_TIMESTAMP if self._setup.timestamps else 0)
        found = (size - bare) // _BLOCK
        if self._setup.timestamps and found == len(gaps) + len(duplicates) + 1:
            duplicates.insert(0, _BEFORE_FIRST)
        wrong = found != len(gaps) + len(duplicates)
        if cumulative != receiver.cumulative or wrong:
            raise TraceError(
                f"ns-2's SACK at {at} s has cumulative ack {cumulative} and {found} blocks, but "
                f"what had arrived makes {receiver.cumulative} and {gaps} with {duplicates} twice"
            )
        self._blocks[packet] = gaps, duplicates

    def _stray(self, packet: int, at: float, size: int, cumulative: int) -> None:
        """A SACK of the sender of a timestamp agent, which has received no data."""
        found = (size - _BARE_SACK - _TIMESTAMP) // _BLOCK
        if cumulative != 0 or found > 1:
            raise TraceError(f"the sender's SACK at {at} s has {cumulative} and {found} blocks")
        self._blocks[packet] = [], [_BEFORE_FIRST] * found

    def _arrived(self, packet: int, direction: int, at: float) -> None:
        for kind, tsn in self._chunks[packet]:
            if kind == DATA and direction == 0:
                self._receiver.take(tsn, at)
            elif kind == SACK and direction == 1 and tsn >= self._total:
                self._finished = True

    def _down(self, at: float, link: int) -> bool:
        """Whether the link is down, or went down at this time."""
        _, path = self._where[link]
        setup = self._setup
        middle = setup.paths[path].middle
        if self._setup.links[link] not in (
            setup.paths[path].forward[middle],
            setup.paths[path].back[middle],
        ):
            return False
        at += _RESOLUTION
        own = [c for c in setup.changes if c.path == path and c.at <= at and c.kind != "loss"]
        return bool(own) and own[-1].kind == "down"

    def finish(self) -> Trace:
        """The trace of all lines that were read."""
        chunks = [
            (packet, index, kind, tsn)
            for packet, own in enumerate(self._chunks)
            for index, (kind, tsn) in enumerate(own)
        ]
        lengths = [len(own) for own in self._chunks]
        blocks = [
            self._blocks.get(packet, ([], [])) if kind == SACK else ([], [])
            for packet, _, kind, _ in chunks
        ]
        gaps = [gap for own, _ in blocks for gap in own]
        count = len(chunks)
        received = self._receiver.first
        return Trace(
            associations=["main"],
            links=[link.name for link in self._setup.links],
            hop_time=np.array([at for at, _, _ in self._hops], dtype=float),
            hop_packet=_column([packet for _, packet, _ in self._hops], np.uint32),
            hop_link=_column([link for _, _, link in self._hops], np.uint32),
            hop_fate=_column(self._fates, np.uint8),
            hop_arrival=np.array(self._arrivals, dtype=float),
            association=np.zeros(len(self._heads), dtype=np.uint32),
            direction=_column([direction for direction, _, _ in self._heads], np.uint8),
            path=_column([path for _, path, _ in self._heads], np.uint8),
            size=_column([size for _, _, size in self._heads], np.uint32),
            first_chunk=_offsets(lengths),
            chunk_kind=_column([kind for _, _, kind, _ in chunks], np.uint8),
            chunk_tsn=_column([tsn for _, _, _, tsn in chunks], np.uint32),
            chunk_retransmission=np.array(
                [(packet, index) in self._retransmitted for packet, index, _, _ in chunks],
                dtype=bool,
            ),
            chunk_a_rwnd=np.zeros(count, dtype=np.uint32),
            first_gap=_offsets([len(own) for own, _ in blocks]),
            gap_first=_column([first for first, _ in gaps], np.uint32),
            gap_last=_column([last for _, last in gaps], np.uint32),
            first_duplicate=_offsets([len(own) for _, own in blocks]),
            duplicate=_column([tsn for _, own in blocks for tsn in own], np.uint32),
            received=np.array(
                [received.get(tsn, math.nan) for tsn in range(1, self._total + 1)], dtype=float
            ),
            duplicates=self._receiver.repeated,
            background=self._counts,
            acknowledged=self._finished,
            end=self._end,
        )


def _column(values: list[int], kind: type[_Number]) -> NDArray[_Number]:
    return np.array(values, dtype=kind)


def _offsets(lengths: list[int]) -> NDArray[np.uint32]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
