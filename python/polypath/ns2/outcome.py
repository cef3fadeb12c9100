"""Derives a run's outcome from ns-2's packets, in the form of the simulator's outcome.

Values that the packets do not show are NaN (numbers) or None. ns-2 has no shutdown: "closed" means
that everything was acknowledged.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypath.ns2.mapping import Setup
from polypath.ns2.trace import Trace
from polypath.ns2.variables import STATES, PathSeries
from polypath.packets import DATA, FATES, HEARTBEAT, HEARTBEAT_ACK, SACK

#: Counters of a link, in the order of the simulator's.
_COUNTERS = (
    "offered",
    "offered_bytes",
    "duplicated",
    "delivered",
    "delivered_bytes",
    "dropped_queue",
    "dropped_mtu",
    "dropped_middlebox",
    "lost",
    "lost_outage",
    "in_flight",
    "reordered",
    "corrupted",
)


def table(
    setup: Setup,
    trace: Trace,
    series: list[PathSeries],
    timeouts: list[list[int]] | None = None,
) -> dict[str, Any]:
    """The outcome of a run as nested dicts and lists, as in `Result.outcome`.

    `timeouts` has a list for each path: of each expiry of T3-rtx, its position in a row.
    """
    complete = trace.acknowledged
    forward = _flow(setup, trace)
    return {
        "scenario": setup.scenario,
        "seed": setup.seed,
        "end": "closed" if complete else "time-limit" if trace.end >= setup.limit else "idle",
        "ended_at": trace.end,
        "events": math.nan,
        "unroutable_packets": 0,
        "associations": [
            {
                "name": "main",
                "complete": complete,
                "started_at": setup.start,
                "forward": forward,
                "back": _nothing(),
                "sender": _side(setup, trace, series, timeouts, 0),
                "receiver": _side(setup, trace, [], None, 1),
                "changes": _changes(series),
            }
        ],
        "links": [
            {"name": name, "counts": _link(trace, link), "background": _background(trace, link)}
            for link, name in enumerate(trace.links)
        ],
        "endpoints": [],
    }


def _delivered(trace: Trace) -> NDArray[np.float64]:
    """The times of in-order delivery, up to the first message that is missing."""
    missing = np.isnan(trace.received)
    known = int(missing.argmax()) if missing.any() else len(missing)
    return np.maximum.accumulate(trace.received[:known])


def _flow(setup: Setup, trace: Trace) -> dict[str, Any]:
    times = np.sort(trace.received[~np.isnan(trace.received)])
    if setup.sender["unordered_"] == 0:
        times = _delivered(trace)
    sizes = np.array(setup.messages)
    first_data = _first_data(trace)
    last = float(times[-1]) if len(times) else None
    total = None if last is None else last - setup.start
    bytes_ = int(sizes[: len(times)].sum())
    gaps = []
    if first_data is not None and len(times):
        starts = np.concatenate([[first_data], times[:-1]])
        gaps = list(zip(starts.tolist(), (times - starts).tolist(), strict=True))
    if first_data is not None and len(times) < len(sizes):
        start = last if last is not None else first_data
        gaps.append((start, trace.end - start))
    longest = max(gaps, key=lambda gap: gap[1], default=None)
    return {
        "messages_sent": len(sizes),
        "bytes_sent": int(sizes.sum()),
        "messages_delivered": len(times),
        "bytes_delivered": bytes_,
        "messages_abandoned": 0,
        "first_send": setup.start,
        "first_data": first_data,
        "first_delivered": float(times[0]) if len(times) else None,
        "last_delivered": last,
        "time_from_start": total,
        "time_from_first_data": None if last is None or first_data is None else last - first_data,
        "goodput": bytes_ / total if total else 0.0,
        "longest_gap": longest and {"start": longest[0], "length": longest[1]},
        "blackouts": [
            {"start": start, "length": length}
            for start, length in gaps
            if length >= setup.blackout > 0
        ],
    }


def _nothing() -> dict[str, Any]:
    """The flow of the back direction, which carries no data."""
    numbers = (
        "messages_sent",
        "bytes_sent",
        "messages_delivered",
        "bytes_delivered",
        "messages_abandoned",
    )
    times = ("first_send", "first_data", "first_delivered", "last_delivered")
    spans = ("time_from_start", "time_from_first_data", "longest_gap")
    return {
        **dict.fromkeys(numbers, 0),
        **dict.fromkeys(times + spans),
        "goodput": 0.0,
        "blackouts": [],
    }


def _first_data(trace: Trace) -> float | None:
    packets = _packets_with(trace, DATA)
    hops = np.isin(trace.hop_packet, packets)
    return float(trace.hop_time[hops][0]) if hops.any() else None


def _chunk_packets(trace: Trace) -> NDArray[np.int64]:
    """The packet of each chunk."""
    firsts = trace.first_chunk.astype(np.int64)
    return np.repeat(np.arange(len(firsts) - 1), firsts[1:] - firsts[:-1])


def _packets_with(trace: Trace, kind: int) -> NDArray[np.int64]:
    packets: NDArray[np.int64] = _chunk_packets(trace)[trace.chunk_kind == kind]
    return packets


def _changes(series: list[PathSeries]) -> list[dict[str, Any]]:
    """Changes of the sender's paths, in the order of time."""
    changes: list[dict[str, Any]] = []
    for one in series:
        for place in np.flatnonzero(np.diff(one.state.astype(np.int64))) + 1:
            before, after = (STATES[int(one.state[at])] for at in (place - 1, place))
            change = {"at": float(one.time[place]), "side": "sender", "path": one.path}
            changes.append({**change, "what": "state", "from": before, "to": after})
    return sorted(changes, key=lambda change: float(change["at"]))


def _side(
    setup: Setup,
    trace: Trace,
    series: list[PathSeries],
    timeouts: list[list[int]] | None,
    direction: int,
) -> dict[str, Any]:
    sacks = _packets_with(trace, SACK)
    nan = math.nan
    return {
        "host": ("sender", "receiver")[direction],
        "established_at": None,
        "closed_at": None,
        "close": None,
        "close_reason": None,
        "counts": {
            "messages_sent": len(setup.messages) if direction == 0 else 0,
            "messages_received": len(_delivered(trace)) if direction else 0,
            "bytes_received": sum(setup.messages[: len(_delivered(trace))]) if direction else 0,
            "duplicates_received": trace.duplicates if direction else 0,
            "sacks_sent": len(sacks) if direction else 0,
            "sacks_received": nan,
            "dropped": nan,
            "reneged": 0,
            "dropped_no_buffer": nan,
            "nanoseconds_blocked": nan,
        },
        # For each path; the packets do not show the cause of a retransmission.
        "retransmissions": [_again(trace, direction, number) for number in range(len(setup.paths))],
        "data_sent": [_data_sent(trace, direction, number) for number in range(len(setup.paths))],
        "paths": [
            _path(setup, trace, series, timeouts, direction, number)
            for number in range(len(setup.paths))
        ],
    }


def _again(trace: Trace, direction: int, path: int) -> int:
    """DATA chunks that a side retransmitted over a path, first sent over any path."""
    own = ((trace.direction == direction) & (trace.path == path))[_chunk_packets(trace)]
    return int((own & trace.chunk_retransmission).sum())


def _data_sent(trace: Trace, direction: int, path: int) -> int:
    """DATA chunks that a side sent over a path, retransmissions included."""
    own = ((trace.direction == direction) & (trace.path == path))[_chunk_packets(trace)]
    return int((own & (trace.chunk_kind == DATA)).sum())


def _path(
    setup: Setup,
    trace: Trace,
    series: list[PathSeries],
    timeouts: list[list[int]] | None,
    direction: int,
    path: int,
) -> dict[str, Any]:
    own = (trace.direction == direction) & (trace.path == path)
    packets = _chunk_packets(trace)
    mine = own[packets] if len(packets) else np.zeros(0, dtype=bool)
    data = mine & (trace.chunk_kind == DATA)
    new = trace.chunk_tsn[data & ~trace.chunk_retransmission]
    sizes = np.array(setup.messages)
    last = next((one for one in series if one.path == path), None)
    received = _received(setup, trace, direction, path)
    packets_with_data = _packets_with(trace, DATA)
    nan = math.nan
    nodes = setup.paths[path]
    ends = (nodes.sender, nodes.receiver)
    return {
        "path": path,
        "local": f"node {ends[direction]}",
        "remote": f"node {ends[1 - direction]}",
        "state": STATES[int(last.state[-1])] if last else None,
        "cwnd": int(last.cwnd[-1]) if last else nan,
        "ssthresh": int(last.ssthresh[-1]) if last else nan,
        "rto": float(last.rto[-1]) if last else nan,
        "srtt": float(last.srtt[-1]) if last else nan,
        "bandwidth": nan,
        "pair_bandwidth": nan,
        "rtt_min": nan,
        "rtt_max": nan,
        "error_count": int(last.error_count[-1]) if last else nan,
        "counts": {
            "packets_sent": int(own.sum()),
            "packets_received": len(received),
            "bytes_sent": int(trace.size[own].sum()) - 20 * int(own.sum()),
            "bytes_received": nan,
            "data_chunks_sent": len(new),
            "data_bytes_sent": int(sizes[new - 1].sum()) if len(new) else 0,
            "data_chunks_received": int(np.isin(packets_with_data, received).sum()),
            "data_bytes_received": nan,
            "fast_retransmissions": nan,
            "timeout_retransmissions": nan,
            "copies_sent": 0,
            "copy_bytes_sent": 0,
            **_timeouts(last, None if timeouts is None else timeouts[path]),
            "recoveries_undone": nan,
            "heartbeats_sent": int((mine & (trace.chunk_kind == HEARTBEAT)).sum()),
            "heartbeats_acked": int(np.isin(_packets_with(trace, HEARTBEAT_ACK), received).sum()),
            "heartbeats_lost": nan,
            "failures": _failures(last),
            "rtt_samples": nan,
        },
    }


def _received(setup: Setup, trace: Trace, direction: int, path: int) -> NDArray[np.int64]:
    """Packets that a side received over a path."""
    own = setup.paths[path]
    last = trace.links.index((own.back if direction == 0 else own.forward)[-1].name)
    over = np.zeros(len(trace.direction), dtype=bool)
    over[trace.hop_packet[(trace.hop_link == last) & ~np.isnan(trace.hop_arrival)]] = True
    return np.flatnonzero(over & (trace.direction != direction) & (trace.path == path))


def _timeouts(series: PathSeries | None, in_a_row: list[int] | None) -> dict[str, float]:
    """Expirations of T3-rtx, in total and in a row; without `in_a_row` HEARTBEATs count too."""
    names = ("second_timeouts", "third_timeouts", "fourth_timeouts", "fifth_timeouts")
    if in_a_row is None:
        known = int(series.timeouts[-1]) if series else math.nan
        return {"timeouts": known, **dict.fromkeys(names, math.nan)}
    rows = {name: in_a_row.count(number) for number, name in enumerate(names, start=2)}
    return {"timeouts": len(in_a_row), **rows}


def _failures(series: PathSeries | None) -> float:
    """Times that the path became inactive."""
    if series is None:
        return math.nan
    inactive = series.state == STATES.index("inactive")
    return int((inactive[1:] & ~inactive[:-1]).sum())


def _background(trace: Trace, link: int) -> dict[str, int]:
    """The counters of background packets."""
    counts = trace.background[link]
    fates = ("delivered", "lost", "lost_outage", "dropped_queue")
    own = {name: counts[name] for name in _COUNTERS}
    return {**own, "in_flight": counts["offered"] - sum(counts[fate] for fate in fates)}


def _link(trace: Trace, link: int) -> dict[str, int]:
    """The counters of all packets."""
    own = trace.hop_link == link
    fates = trace.hop_fate[own]
    sizes = trace.size[trace.hop_packet[own]]
    count = {name: int((fates == number).sum()) for number, name in enumerate(FATES)}
    counts = {
        "offered": int(own.sum()),
        "offered_bytes": int(sizes.sum()),
        "delivered": count["delivered"],
        "delivered_bytes": int(sizes[fates == FATES.index("delivered")].sum()),
        "dropped_queue": count["queue"],
        "dropped_mtu": count["mtu"],
        "lost": count["lost"],
        "lost_outage": count["down"],
        "in_flight": count["sent"],
    }
    background = _background(trace, link)
    return {name: counts.get(name, 0) + background[name] for name in _COUNTERS}
