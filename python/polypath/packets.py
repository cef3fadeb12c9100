"""Packets of a run: a row for each packet at each link, from our simulator or from ns-2."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

#: Fates of a packet at a link; "sent" was still in transit when the run ended.
FATES = ("sent", "delivered", "lost", "queue", "down", "mtu", "middlebox")

#: Names of chunk types (RFC 9260 3.2 and the extensions' own), and of the timestamp extension's.
KINDS = {
    0: "DATA",
    1: "INIT",
    2: "INIT ACK",
    3: "SACK",
    4: "HEARTBEAT",
    5: "HEARTBEAT ACK",
    6: "ABORT",
    7: "SHUTDOWN",
    8: "SHUTDOWN ACK",
    9: "ERROR",
    10: "COOKIE ECHO",
    11: "COOKIE ACK",
    12: "ECNE",
    13: "CWR",
    14: "SHUTDOWN COMPLETE",
    15: "AUTH",
    16: "NR-SACK",
    64: "I-DATA",
    128: "ASCONF-ACK",
    130: "RE-CONFIG",
    132: "PAD",
    190: "TIMESTAMP",
    192: "FORWARD TSN",
    193: "ASCONF",
    194: "I-FORWARD TSN",
}
DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT = range(7)
COOKIE_ECHO, COOKIE_ACK, TIMESTAMP = 10, 11, 190

#: The description and unit of every column of :meth:`polypath.Result.packets`.
COLUMNS = {
    "time": "when the packet was offered to the link, seconds from the beginning of the run",
    "link": "the link, of this direction, by its name",
    "association": "the association, by its name",
    "direction": "'forward' from the side that opened the association, 'back' to it",
    "path": "number of the accepting side's address that it goes to or comes from",
    "packet": "number of the packet, in the order in which they were sent",
    "size": "bytes on the wire, IP header included",
    "fate": "'delivered', 'lost' (loss model), 'queue' (full), 'down' (link broken), 'mtu', 'sent'",
    "arrival": "when it reached the far end of the link, seconds; NaN if it did not",
    "chunks": "names of its chunks in their order, such as 'SACK+DATA'",
    "tsns": "TSNs of its DATA chunks; the first of a direction is 1",
    "retransmission": "whether one of its DATA chunks was sent before",
    "cumulative_ack": "SACK: cumulative TSN ack; NaN without",
    "gaps": "SACK: gap ack blocks as pairs of first and last TSN",
    "duplicates": "SACK: duplicate TSNs",
    "a_rwnd": "SACK, INIT, INIT ACK: window announced, bytes; NaN without, and from ns-2",
}


class PacketTrace(Protocol):
    """The columns of a trace: of hops, of packets, and of their chunks.

    ``first_chunk``, ``first_gap`` and ``first_duplicate`` have a row for each packet or chunk and
    one for the end.
    """

    @property
    def associations(self) -> list[str]:
        """Names of the associations."""

    @property
    def links(self) -> list[str]:
        """Names of the links, one for each direction."""

    @property
    def hop_time(self) -> NDArray[np.float64]:
        """Time at which the packet was offered to the link, in seconds."""

    @property
    def hop_packet(self) -> NDArray[np.uint32]:
        """Number of the packet."""

    @property
    def hop_link(self) -> NDArray[np.uint32]:
        """Number of the link."""

    @property
    def hop_fate(self) -> NDArray[np.uint8]:
        """Fate of the packet at the link: a place in `FATES`."""

    @property
    def hop_arrival(self) -> NDArray[np.float64]:
        """Time of arrival at the far end, in seconds; NaN if it did not arrive."""

    @property
    def association(self) -> NDArray[np.uint32]:
        """Number of the packet's association."""

    @property
    def direction(self) -> NDArray[np.uint8]:
        """0 from the side that opened the association, 1 to it."""

    @property
    def path(self) -> NDArray[np.uint8]:
        """Number of the accepting side's address."""

    @property
    def size(self) -> NDArray[np.uint32]:
        """Bytes on the wire, IP header included."""

    @property
    def first_chunk(self) -> NDArray[np.uint32]:
        """Row of its first chunk."""

    @property
    def chunk_kind(self) -> NDArray[np.uint8]:
        """Type of the chunk."""

    @property
    def chunk_tsn(self) -> NDArray[np.uint32]:
        """DATA: TSN, counted from 1; SACK: cumulative TSN ack; otherwise 0."""

    @property
    def chunk_retransmission(self) -> NDArray[np.bool_]:
        """DATA: whether its TSN was sent before."""

    @property
    def chunk_a_rwnd(self) -> NDArray[np.uint32]:
        """The window announced, in bytes."""

    @property
    def first_gap(self) -> NDArray[np.uint32]:
        """Row of its first gap ack block."""

    @property
    def gap_first(self) -> NDArray[np.uint32]:
        """First TSN of each gap ack block."""

    @property
    def gap_last(self) -> NDArray[np.uint32]:
        """Last TSN of each gap ack block."""

    @property
    def first_duplicate(self) -> NDArray[np.uint32]:
        """Row of its first duplicate TSN."""

    @property
    def duplicate(self) -> NDArray[np.uint32]:
        """Each duplicate TSN that a SACK reports."""


def frame(trace: PacketTrace) -> pd.DataFrame:
    """A row for each packet at each link, in the order of time; see :data:`COLUMNS`."""
    hops = trace.hop_packet
    content = pd.DataFrame(_contents(trace)).iloc[hops].reset_index(drop=True)
    at_links = pd.DataFrame(
        {
            "time": trace.hop_time,
            "link": _named(trace.hop_link, trace.links),
            "packet": hops,
            "fate": _named(trace.hop_fate, FATES),
            "arrival": trace.hop_arrival,
        }
    )
    return pd.concat([at_links, content], axis="columns")[list(COLUMNS)]


def data_arrivals(trace: PacketTrace) -> pd.DataFrame:
    """A row for each DATA chunk at each link whose far end it reached.

    Columns as in :data:`COLUMNS`: link, arrival, `tsn`. Much faster than :func:`frame`.
    """
    arrived = np.flatnonzero(~np.isnan(trace.hop_arrival))
    firsts = trace.first_chunk.astype(np.int64)
    begins = firsts[trace.hop_packet[arrived]]
    counts = firsts[trace.hop_packet[arrived] + 1] - begins
    # The hop and the row of each chunk of these packets.
    hops = np.repeat(arrived, counts)
    within = np.arange(len(hops)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = np.repeat(begins, counts) + within
    data = trace.chunk_kind[rows] == DATA
    return pd.DataFrame(
        {
            "link": _named(trace.hop_link[hops[data]], trace.links),
            "arrival": trace.hop_arrival[hops[data]],
            "tsn": trace.chunk_tsn[rows[data]],
        }
    )


def _named(codes: NDArray[np.integer[Any]], names: Sequence[str]) -> pd.Categorical[str]:
    return pd.Categorical.from_codes(codes.astype(np.int64), pd.Index(names))


def _contents(trace: PacketTrace) -> dict[str, object]:
    """The columns on a packet's content, with a row for each packet."""
    names = trace.associations
    directions = np.array(["forward", "back"], dtype=object)
    chunks, tsns, again, cumulative, gaps, duplicates, windows = [], [], [], [], [], [], []
    kinds, chunk_tsns = trace.chunk_kind.tolist(), trace.chunk_tsn.tolist()
    retransmissions, a_rwnds = trace.chunk_retransmission.tolist(), trace.chunk_a_rwnd.tolist()
    firsts = trace.first_chunk.tolist()
    for first, end in itertools.pairwise(firsts):
        own = range(first, end)
        chunks.append("+".join(KINDS.get(kinds[c], str(kinds[c])) for c in own))
        data = [c for c in own if kinds[c] == DATA]
        tsns.append(tuple(chunk_tsns[c] for c in data))
        again.append(any(retransmissions[c] for c in data))
        sack = next((c for c in own if kinds[c] == SACK), None)
        cumulative.append(math.nan if sack is None else chunk_tsns[sack])
        gaps.append(() if sack is None else gap_blocks(trace, sack))
        duplicates.append(() if sack is None else duplicate_tsns(trace, sack))
        windows.append(next((a_rwnds[c] for c in own if a_rwnds[c]), math.nan))
    return {
        "association": [names[index] for index in trace.association.tolist()],
        "direction": directions[trace.direction],
        "path": trace.path,
        "size": trace.size,
        "chunks": chunks,
        "tsns": tsns,
        "retransmission": again,
        "cumulative_ack": np.array(cumulative, dtype=float),
        "gaps": gaps,
        "duplicates": duplicates,
        "a_rwnd": np.array(windows, dtype=float),
    }


def gap_blocks(trace: PacketTrace, sack: int) -> tuple[tuple[int, int], ...]:
    """The gap ack blocks of a chunk, as pairs of first and last TSN."""
    rows = slice(trace.first_gap[sack], trace.first_gap[sack + 1])
    return tuple(zip(trace.gap_first[rows].tolist(), trace.gap_last[rows].tolist(), strict=True))


def duplicate_tsns(trace: PacketTrace, sack: int) -> tuple[int, ...]:
    """The duplicate TSNs that a chunk reports."""
    rows = slice(trace.first_duplicate[sack], trace.first_duplicate[sack + 1])
    return tuple(trace.duplicate[rows].tolist())
