"""The network, names and constants that the papers of the University of Delaware share.

Two hosts with two or three paths between them, each: interface - 100 Mbit/s, 10 ms - router -
10 Mbit/s, 25 ms or more - router - 100 Mbit/s, 10 ms - interface; uniform loss on the middle link,
in each direction (caro2006-retransmission, Figures 2, 5 and 11; caro2006-failover, Figure 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polypath.result import Result
from polypath.scenario import Scenario
from polypath.statistics import Interval, interval

#: The papers' names of the retransmission policies, and polypath's.
POLICIES = {"AllRtxAlt": "alternate", "AllRtxSame": "same", "FrSameRtoAlt": "hybrid"}
#: The papers' extensions: heartbeat after RTO, timestamps, multiple fast retransmit.
EXTENSIONS = {
    "HAR": {"probing": "after-rto"},
    "TS": {"rtt_sampling": "timestamps"},
    "MFR": {"loss": "multiple-fast-retransmit"},
    #: Future work of Section 4.2 of caro2006-retransmission: flags instead of timestamps.
    "flag": {"rtt_sampling": "retransmission-flag"},
}
#: SFR, CUCv2 and DAC: the module's CMT.
CMT = {
    "scheduler": "concurrent",
    "loss": "split-fast-retransmit",
    "cwnd_update": "cuc-v2",
    "ack": "delayed-cmt",
}
#: Name of the reference results in a report.
WITH_THE_PAPERS_CONSTANTS = "ns-2, the papers' constants"
#: User data of a full packet, bytes: timestamps take 12 of them.
CHUNK, CHUNK_WITH_TIMESTAMPS = 1452, 1440
#: Round trip of a path whose middle link has 25 ms, milliseconds.
RTT = 90
#: Part of a round trip on the 100 Mbit/s links at both ends of a path, milliseconds.
_EDGES = 40
_NAMES = ("primary", "alternate", "second-alternate")
#: The engine's names of these networks, by their number of paths.
_NETWORKS = {2: "two-paths", 3: "three-paths"}


def uniform_loss(
    *losses: float, alternate_rtt: float = RTT, primary_rtt: float = RTT
) -> dict[str, Any]:
    """The network with these loss rates of its paths (percent, in each direction), primary first.

    Round trips of the alternates and of the primary are in milliseconds.
    """
    paths: list[dict[str, Any]] = []
    for name, loss in zip(_NAMES, losses, strict=False):
        rtt = alternate_rtt if paths else primary_rtt
        paths.append({"name": name, "loss": f"{loss:g} %", "delay": f"{one_way(rtt):g} ms"})
    return {"topology": _NETWORKS[len(losses)], "path": paths}


def one_way(rtt: float) -> float:
    """The delay of the middle link of a path with this round trip, both in milliseconds."""
    return (rtt - _EDGES) / 2


#: Queues of the dual dumbbell. "Each link has a buffer size twice the link's bandwidth-delay
#: product": of 10 Mbit/s and the round trip of 90 ms, in packets of 1500 bytes. With the module of
#: 2006 this reading gives the papers' times (``polypath/data/ns2/README.md``); twice the product
#: with the delay of the link alone, 62,500 bytes, does not.
QUEUES = {"queue": "150 packets", "edge": {"queue": "1000 packets"}}


def cross_traffic(*loads: float) -> dict[str, Any]:
    """The dual dumbbell with these loads of cross-traffic on its paths, each direction (Mbit/s).

    Only full queues drop packets.
    """
    paths = [
        {"name": name, "cross_traffic": {"rate": f"{load:g} Mbit/s"}, **QUEUES}
        for name, load in zip(_NAMES, loads, strict=False)
    ]
    return {"topology": "dual-dumbbell", "path": paths}


def broken(path: str, at: float, lasts: float | None = None) -> dict[str, str]:
    """A `[[fault]]`: the path goes down, for `lasts` seconds or for good."""
    fault = {"at": f"{at:g} s", "path": path, "kind": "down"}
    return fault if lasts is None else {**fault, "for": f"{lasts:g} s"}


def policy(name: str, extensions: str) -> dict[str, Any]:
    """The section `[policy]`: "FrSameRtoAlt" with "MFR+TS", or "none"."""
    table: dict[str, Any] = {"retransmission": POLICIES[name]}
    for extension in extensions.split("+"):
        table |= EXTENSIONS.get(extension, {})
    return table


def transfer(
    megabytes: int,
    network: dict[str, Any],
    policy: dict[str, Any],
    *,
    transport: dict[str, Any] | None = None,
    start: float = 0,
    **sections: Any,
) -> Scenario:
    """A transfer of a file of `megabytes` (of 2**20 bytes), with the papers' constants.

    It begins `start` seconds after the cross-traffic.

    Raises:
        ScenarioError: The engine has no such network, profile or policy.
    """
    stamped = policy.get("rtt_sampling") == "timestamps"
    table = {
        "schema": 1,
        **network,
        "transport": {"profile": "paper-2006", "receive_buffer": "64 KiB", **(transport or {})},
        "policy": policy,
        "workload": {
            "kind": "bulk",
            "size": f"{megabytes} MiB",
            "message_size": f"{CHUNK_WITH_TIMESTAMPS if stamped else CHUNK} B",
            "start": f"{start:g} s",
        },
        "run": {"check_content": False},
        **sections,
    }
    return Scenario.from_dict(table)


def counts(result: Result) -> list[dict[str, int]]:
    """The sender's counters of each path, the primary's first."""
    return [path["counts"] for path in result.outcome["associations"][0]["sender"]["paths"]]


def average_rto(results: Sequence[Result], path: int) -> Interval:
    """The sender's RTO on a path, averaged over the time from the first data to the last, seconds.

    A path without samples, whose RTO never changes, is left out.
    """
    return interval([_average_rto(result, path) for result in results])


def _average_rto(result: Result, path: int) -> float:
    for series in result.samples:
        if series.side == "sender" and series.path == path:
            # The RTO is constant from one sample to the next.
            spans = np.diff(series.time)
            return float(np.average(series.rto[:-1], weights=spans)) if spans.sum() else math.nan
    return math.nan


def rto_above_floor(result: Result, path: int, floor: float = 1.0) -> float:
    """The mean of the values above RTO.Min that the sender's RTO on a path took, seconds."""
    for series in result.samples:
        if series.side == "sender" and series.path == path:
            changed = np.flatnonzero(np.diff(series.rto)) + 1
            values = series.rto[np.r_[0, changed]]
            above = values[values > floor]
            return float(np.mean(above)) if len(above) else math.nan
    return math.nan


def detection_times(results: Sequence[Result]) -> list[float]:
    """Seconds from the last start of T3-rtx before the failure to the primary being inactive."""
    return [_detection_time(result) for result in results]


def _detection_time(result: Result) -> float:
    changes = result.changes
    primary = changes[(changes["side"] == "sender") & (changes["path"] == 0)]
    inactive = primary.loc[primary["to"] == "inactive", "at"]
    for series in result.samples:
        if series.side == "sender" and series.path == 0 and len(inactive):
            first = int(np.argmax(series.error_count > 0))
            # The first timeout is one RTO (its value before it) after the start of the timer.
            before = max(int(np.searchsorted(series.time, series.time[first])) - 1, 0)
            started = series.time[first] - series.rto[before]
            return float(inactive.iloc[0] - started)
    return math.nan
