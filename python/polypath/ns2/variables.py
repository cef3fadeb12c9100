"""Converts ns-2's traces of an agent's variables to the series of our simulator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from polypath.ns2.mapping import Setup

#: The trace of one destination's variables.
# The agent for concurrent multipath transfer leaves out rwnd and isPrimary; agents with multiple
# fast retransmit add mfrCount.
_LINE = re.compile(
    r"time: (?P<time>[\d.]+)\s+saddr: \d+\s+sport: \d+\s+daddr: (?P<to>\d+)\s+dport: \d+\s+"
    r"cwnd: (?P<cwnd>\d+) pba: \d+ out: (?P<out>\d+) ssthresh: (?P<ssthresh>\d+) "
    r"(?:rwnd: \d+ )?peerRwnd: (?P<peer>\d+) rto: (?P<rto>[\d.]+)\s+srtt: (?P<srtt>[\d.]+)\s+"
    r"rttvar: [\d.]+\s+assocErrors: \d+ pathErrors: (?P<errors>\d+) dstatus: (?P<state>\w+) "
    r"(?:isPrimary: \w+ )?frCount: \d+ (?:mfrCount: \d+ )?timeoutCount: (?P<timeouts>\d+)"
)
#: States as numbers, and their names in our simulator.
_ACTIVE, _INACTIVE = 1, 3
_STATES = {"UNCONFIRMED": 0, "ACTIVE": _ACTIVE, "PF": 2, "INACTIVE": _INACTIVE}
STATES = ("unconfirmed", "active", "potentially failed", "inactive", "removed")
#: An expiry of T3-rtx with the error count before it; only CMT's agent writes this line.
_TIMEOUT = re.compile(
    r"time: (?P<time>[\d.]+)\s+saddr: \d+\s+sport: \d+\s+daddr: (?P<to>\d+)\s+dport: \d+\s+"
    r"DataTimeout, peerRwnd: \d+ rto: [\d.]+\s+errCnt: (?P<errors>\d+)"
)


@dataclass(frozen=True)
class PathSeries:
    """The variables of one path over time, as in :class:`polypath._core.PathSeries`.

    Times have ns-2's resolution of 10 microseconds, rto and srtt that of a millisecond.
    """

    COLUMNS: ClassVar[list[str]] = [
        "time",
        "cwnd",
        "ssthresh",
        "in_flight",
        "rto",
        "srtt",
        "peer_rwnd",
        "state",
        "error_count",
    ]
    association: str
    side: str
    path: int
    time: NDArray[np.float64]
    cwnd: NDArray[np.uint64]
    ssthresh: NDArray[np.uint64]
    in_flight: NDArray[np.uint64]
    rto: NDArray[np.float64]
    srtt: NDArray[np.float64]
    peer_rwnd: NDArray[np.uint64]
    state: NDArray[np.uint64]
    error_count: NDArray[np.uint64]
    #: Timeouts so far, those of HEARTBEATs included.
    timeouts: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.time)


def read(setup: Setup, text: str, end: float) -> list[PathSeries]:
    """The series of each path of the sender, until `end` in seconds: a sample for each change."""
    paths = {path.receiver: number for number, path in enumerate(setup.paths)}
    samples: list[list[tuple[float, ...]]] = [[] for _ in paths]
    for found in _LINE.finditer(text):
        path = paths.get(int(found["to"]))
        time = float(found["time"])
        if path is None or time > end:
            continue
        state = _STATES[found["state"]]
        # A SACK first clears the errors, which writes a line, and then makes the path active.
        if state == _INACTIVE and int(found["errors"]) == 0:
            state = _ACTIVE
        names = ("cwnd", "ssthresh", "out", "rto", "srtt", "peer")
        values = [float(found[name]) for name in names]
        sample = (time, *values, float(state), float(found["errors"]), float(found["timeouts"]))
        if not samples[path] or samples[path][-1][1:] != sample[1:]:
            samples[path].append(sample)
    return [_series(path, rows) for path, rows in enumerate(samples) if rows]


def timeouts_in_a_row(setup: Setup, text: str, end: float) -> list[list[int]] | None:
    """The position in a row of each expiry of T3-rtx, by path, until `end`.

    Expirations are in a row if no answer arrived in between.

    None if the agent does not trace them.
    """
    if "CMT" not in setup.agent:
        return None
    paths = {path.receiver: number for number, path in enumerate(setup.paths)}
    found: list[list[int]] = [[] for _ in paths]
    for one in _TIMEOUT.finditer(text):
        path = paths.get(int(one["to"]))
        if path is None or float(one["time"]) > end:
            continue
        own = found[path]
        own.append(own[-1] + 1 if own and int(one["errors"]) else 1)
    return found


def _series(path: int, rows: list[tuple[float, ...]]) -> PathSeries:
    columns = np.array(rows, dtype=float).T
    for column in columns:
        column.flags.writeable = False

    def whole(index: int) -> NDArray[np.uint64]:
        own: NDArray[np.uint64] = columns[index].astype(np.uint64)
        return own

    return PathSeries(
        association="main",
        side="sender",
        path=path,
        time=columns[0],
        cwnd=whole(1),
        ssthresh=whole(2),
        in_flight=whole(3),
        rto=columns[4],
        srtt=columns[5],
        peer_rwnd=whole(6),
        state=whole(7),
        error_count=whole(8),
        timeouts=whole(9),
    )
