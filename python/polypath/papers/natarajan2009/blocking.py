"""Section 1: blocking of the receive buffer by a failing path, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polypath.figures import COLOURS
from polypath.papers import charts
from polypath.papers.natarajan2009.settings import FAILS_AT, Failure
from polypath.papers.registry import Figure, Summary
from polypath.papers.runs import Grid, Runs
from polypath.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Chart

#: Bytes of a chunk with its header: less room in the receive buffer blocks the sender.
_CHUNK = 1468
#: Time span of the figure, seconds: timeouts occur 1, 3, 7 and 15 s after the failure.
_SHOWN = (FAILS_AT - 2, FAILS_AT + 22)
SHOWN = (Failure("CMT-CWND", 5), Failure("CMT-PF-CWND", 5))
_ACTIVE = 1


def over_time(result: Result) -> pd.DataFrame:
    """The sender's view, a row for each change: time (s), bytes, and whether it is blocked.

    Columns: time; `peer_rwnd`, the room in the receive buffer; `in_flight_0`, `in_flight_1`;
    `blocked`: no room for a chunk, and nothing outstanding on a path that is active.
    """
    own = {one.path: one for one in result.samples if one.side == "sender"}
    times = np.unique(np.concatenate([one.time for one in own.values()]))
    columns: dict[str, NDArray[np.generic]] = {"time": times}
    idle = np.zeros(len(times), dtype=bool)
    latest: list[NDArray[np.intp]] = []
    for path, one in sorted(own.items()):
        place = np.maximum(np.searchsorted(one.time, times, side="right") - 1, 0)
        columns[f"in_flight_{path}"] = one.in_flight[place]
        idle |= (one.state[place] == _ACTIVE) & (one.in_flight[place] == 0)
        latest.append(place)
    # The window belongs to the association: take it from the later sample of both paths.
    stamps = np.stack(
        [one.time[at] for (_, one), at in zip(sorted(own.items()), latest, strict=True)]
    )
    windows = np.stack(
        [one.peer_rwnd[at] for (_, one), at in zip(sorted(own.items()), latest, strict=True)]
    )
    columns["peer_rwnd"] = windows[stamps.argmax(axis=0), np.arange(len(times))]
    frame = pd.DataFrame(columns)
    return frame.assign(blocked=idle & (frame["peer_rwnd"] < _CHUNK).to_numpy())


def periods(frame: pd.DataFrame) -> list[tuple[float, float]]:
    """The blocked periods, from and to, seconds."""
    flags = frame["blocked"].to_numpy()
    times = frame["time"].to_numpy()
    edges = np.flatnonzero(np.diff(flags.astype(int), prepend=0, append=0))
    ends = [float(times[min(edge, len(times) - 1)]) for edge in edges.tolist()]
    return [(begin, end) for begin, end in zip(ends[::2], ends[1::2], strict=True) if end > begin]


def _panel(axes: Axes, frame: pd.DataFrame, title: str) -> None:
    last = frame[frame["time"] <= _SHOWN[1]].iloc[[-1]]
    # Extend the last values to the edge of the figure.
    shown = pd.concat([frame[frame["time"].between(*_SHOWN)], last.assign(time=_SHOWN[1])])
    for column, label, colour in (
        ("peer_rwnd", "room in the receive buffer", "0.4"),
        ("in_flight_0", "in flight on path 1", COLOURS[0]),
        ("in_flight_1", "in flight on path 2", COLOURS[1]),
    ):
        axes.step(
            shown["time"], shown[column] / 1000, where="post", color=colour, lw=0.8, label=label
        )
    for begin, end in periods(frame):
        if end > _SHOWN[0] and begin < _SHOWN[1]:
            axes.axvspan(max(begin, _SHOWN[0]), min(end, _SHOWN[1]), color="0.85", lw=0, zorder=0)
    axes.axvline(FAILS_AT, color="0.2", linestyle=":", lw=1)
    axes.set_title(title, fontsize="medium")
    axes.set_xlabel("time [s]")
    axes.set_xlim(*_SHOWN)


def _draw(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    figure, graphs = charts.blank(
        2, "Receive-buffer blocking while path 2 fails at 10 s (grey: blocked), PMR 5, seed 1"
    )
    rows = []
    for axes, setting in zip(graphs, wanted.traced, strict=True):
        assert isinstance(setting, Failure)
        for seed, result in enumerate(runs.results(setting), start=1):
            frame = over_time(result)
            if seed == 1:
                _panel(axes, frame, setting.variant)
            found = [(max(a, FAILS_AT), b) for a, b in periods(frame) if b > FAILS_AT]
            rows.append(
                {
                    "variant": setting.variant,
                    "seed": seed,
                    "blocked_time": result.metrics["blocked_time"],
                    "blocked_after_failure": sum(b - a for a, b in found),
                    "longest": max((b - a for a, b in found), default=0.0),
                    "ended_at": result.metrics["ended_at"],
                }
            )
    graphs[0].set_ylabel("[kB]")
    charts.legend(
        figure,
        graphs[0],
        ["room in the receive buffer", "in flight on path 1", "in flight on path 2"],
    )
    return pd.DataFrame(rows), figure


def _summary(frame: pd.DataFrame) -> Summary:
    means = frame.groupby("variant", sort=False)[["blocked_time", "longest", "ended_at"]].mean()
    says = tuple(
        f"{variant}: blocked for {row['blocked_time']:.1f} s of {row['ended_at']:.0f} s, at most "
        f"{row['longest']:.1f} s at a time (means of {len(frame) // len(means)} transfers)."
        for variant, row in means.iterrows()
    )
    return Summary(says)


section_1 = Figure(
    "section-1",
    "Receive-buffer blocking while a path fails: window, flight and blocked periods",
    lambda full: Grid((), 5 if full else 1, traced=SHOWN),
    _draw,
    _summary,
)
