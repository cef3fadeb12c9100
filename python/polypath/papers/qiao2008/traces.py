"""The case study (Section 4): one transfer with each strategy, packet by packet (Figures 2, 3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from polypath.figures import COLOURS
from polypath.papers import charts
from polypath.papers.qiao2008.settings import Transfer, case_study
from polypath.papers.registry import Figure
from polypath.papers.runs import Grid, Runs
from polypath.queues import queue
from polypath.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Chart

ALT, SAME = case_study("FRtxOnAlt"), case_study("FRtxOnSame")
#: Bytes of a chunk with its header: less room in the peer's window blocks the sender.
_CHUNK = 1468
#: Time span of the figures, seconds.
_SHOWN = (5.9, 9.0)


def data(result: Result, link: str) -> pd.DataFrame:
    """DATA packets offered to a link: time, TSN, whether retransmitted, whether dropped."""
    packets = _packets(result)
    own = packets[(packets["link"] == link) & (packets["chunks"] == "DATA")]
    return pd.DataFrame(
        {
            "time": own["time"],
            "tsn": [tsns[0] for tsns in own["tsns"]],
            "retransmission": own["retransmission"],
            "dropped": own["fate"] == "queue",
        }
    )


@lru_cache(maxsize=4)
def _packets(result: Result) -> pd.DataFrame:
    return result.packets()


def events(result: Result) -> dict[str, float]:
    """The instants that the paper names (seconds), and its counts.

    A, B: the first and the last packet that slow start loses in the primary's queue. C, E: the
    first and the last of the fast retransmissions that follow. D: new data is sent again. F: the
    peer's window, as known to the sender, has no room for a chunk; NaN if that never happens. The
    paper's F is from ns-2's trace of variables, which has a line for each sample of the
    round-trip time: F is the first such sample, `blocked` the instant itself.
    """
    primary = data(result, "primary/forward")
    secondary = data(result, "secondary/forward")
    again = pd.concat([primary, secondary]).query("retransmission").sort_values("time")
    begins = float(again["time"].iloc[0])
    lost = primary[primary["dropped"] & (primary["time"] < begins)]
    # Each of them has one fast retransmission: the burst ends with the last.
    ends = float(again["time"].iloc[len(lost) - 1])
    fresh = primary[~primary["retransmission"] & (primary["time"] > begins)]
    window = _window(result)
    fresh_from = float(primary["time"].iloc[0])
    closed = window[(window["time"] > begins) & (window["peer_rwnd"] < _CHUNK)]
    sampled = closed[closed["sampled"]]
    return {
        "A": float(lost["time"].iloc[0]),
        "B": float(lost["time"].iloc[-1]),
        "C": begins,
        "D": float(fresh["time"].iloc[0]),
        "E": ends,
        "F": _first(sampled, "time"),
        "blocked": _first(closed, "time"),
        "lost_in_slow_start": len(lost),
        "lost_on_secondary": int(secondary["dropped"].sum()),
        "window_at_F": _first(sampled, "peer_rwnd"),
        "least_window": float(window.loc[window["time"] >= fresh_from, "peer_rwnd"].min()),
        "window_at_C": float(window.loc[window["time"] <= begins, "peer_rwnd"].iloc[-1]),
        "cwnd_after_cut": float(window.loc[window["time"] >= begins, "cwnd"].iloc[0]),
    }


def _first(rows: pd.DataFrame, column: str) -> float:
    return float(rows[column].iloc[0]) if len(rows) else np.nan


def _window(result: Result) -> pd.DataFrame:
    """The primary's variables at the sender over time."""
    series = next(one for one in result.samples if (one.side, one.path) == ("sender", 0))
    return pd.DataFrame(
        {
            "time": series.time,
            "cwnd": series.cwnd,
            "peer_rwnd": series.peer_rwnd,
            # A sample of the round-trip time changes SRTT.
            "sampled": np.diff(series.srtt, prepend=0) != 0,
        }
    )


def _sequence(axes: Axes, result: Result, path: str) -> None:
    """Draws the TSNs that are offered to the bottleneck; its queue's drops are crosses."""
    sent = data(result, f"{path}/forward")
    sent = sent[sent["time"].between(*_SHOWN)]
    for kept, label, colour, marker in (
        (~sent["retransmission"] & ~sent["dropped"], "sent", COLOURS[0], "."),
        (sent["retransmission"] & ~sent["dropped"], "sent again", COLOURS[2], "."),
        (sent["dropped"], "dropped", COLOURS[1], "x"),
    ):
        own = sent[kept]
        if len(own):
            axes.plot(own["time"], own["tsn"], marker, color=colour, markersize=3, label=label)
    axes.set_ylabel("TSN")
    axes.legend(fontsize=7, frameon=False)
    axes.set_title(f"{path} path: sequence", fontsize="medium")


def _queue(axes: Axes, result: Result, path: str) -> None:
    waiting = queue(result.scenario, _packets(result), f"{path}/forward")
    waiting = waiting[waiting["time"].between(*_SHOWN)]
    axes.step(waiting["time"], waiting["packets"], where="post", color=COLOURS[3])
    axes.set_ylabel("packets")
    axes.set_title(f"{path} path: queue", fontsize="medium")


def _windows(axes: Axes, result: Result) -> None:
    window = _window(result)
    window = window[window["time"].between(*_SHOWN)]
    axes.step(window["time"], window["cwnd"] / 1e3, where="post", color=COLOURS[0], label="cwnd")
    axes.step(
        window["time"], window["peer_rwnd"] / 1e3, where="post", color=COLOURS[1], label="rwnd"
    )
    axes.set_ylabel("window [kB]")
    axes.legend(fontsize=7, frameon=False)
    axes.set_title("windows at the sender", fontsize="medium")


def _draw(setting: Transfer, title: str) -> Callable[[Runs, Grid], tuple[pd.DataFrame, Chart]]:
    def draw(runs: Runs, _wanted: Grid) -> tuple[pd.DataFrame, Chart]:
        (result,) = runs.results(setting)
        marks = events(result)
        secondary = bool(len(data(result, "secondary/forward")))
        figure, graphs = charts.blank(5 if secondary else 3, title)
        places = iter(graphs)
        for path in ("primary", "secondary") if secondary else ("primary",):
            _sequence(next(places), result, path)
            _queue(next(places), result, path)
        _windows(next(places), result)
        for axes in graphs:
            axes.set_xlim(_SHOWN)
            axes.set_xlabel("time [s]")
            for name in "ABCDEF":
                if np.isfinite(marks[name]):
                    axes.axvline(marks[name], color="0.7", linewidth=0.6)
        row = {**setting.labels(), "time": runs.mean(setting).mean, **marks}
        return pd.DataFrame([row]), figure

    return draw


figure_2 = Figure(
    "2",
    "Retransmission on the secondary path: sequence, queue, cwnd and rwnd",
    lambda _full: Grid((ALT,), 1, traced=(ALT,)),
    _draw(ALT, "FRtxOnAlt, 10 Mbit/s and 36 kbit/s"),
)
figure_3 = Figure(
    "3",
    "Retransmission on the primary path: sequence, queue, cwnd and rwnd",
    lambda _full: Grid((SAME,), 1, traced=(SAME,)),
    _draw(SAME, "FRtxOnSame, 10 Mbit/s and 36 kbit/s"),
)
