"""What the paper reads off single transfers: RTOs (Figure 4), detection times (Section 6)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.figures import COLOURS
from polypath.papers import charts, delaware
from polypath.papers.caro2006_retransmission.figures import EARLY
from polypath.papers.caro2006_retransmission.settings import (
    BEST,
    FULL_SEEDS,
    QUICK_SEEDS,
    point,
)
from polypath.papers.registry import Figure
from polypath.papers.runs import Grid, Runs
from polypath.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: The transfer of Figure 4.
STALE = point("AllRtxAlt", "none", 8, 5)
#: The transfer of Section 6.3 whose outstanding packets are counted.
BROKEN = point("FrSameRtoAlt", BEST["FrSameRtoAlt"], 0, 0, breaks_at=EARLY)
#: Section 6.1: every timeout takes the smallest RTO and its doublings, or the largest.
QUICKEST = BROKEN
SLOWEST = replace(BROKEN, rto=60.0)


def _grid_4(full: bool) -> Grid:
    return Grid((), FULL_SEEDS if full else QUICK_SEEDS, traced=(STALE,))


def _draw_4(runs: Runs, _wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    results = runs.results(STALE)
    figure, graphs = charts.blank(2, "RTO dynamics of one transfer, AllRtxAlt")
    for axes, path, title in zip(
        graphs, (0, 1), ("primary path, 8 % loss", "alternate path, 5 % loss"), strict=True
    ):
        for series in results[0].series:
            if series.side == "sender" and series.path == path:
                axes.step(series.time, series.rto, where="post", color=COLOURS[path])
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("time [s]")
        axes.set_ylim(bottom=0)
    graphs[0].set_ylabel("RTO [s]")
    return pd.DataFrame([stale(result) for result in results]), figure


def stale(result: Result) -> dict[str, Any]:
    """A transfer of Figure 4: average RTO of each path (s), chunks sent first and again."""
    paths = delaware.counts(result)
    lost = {link["name"]: link["counts"]["lost"] for link in result.outcome["links"]}
    return {
        "seed": result.seed,
        "rto_primary": delaware.average_rto([result], 0).mean,
        "rto_alternate": delaware.average_rto([result], 1).mean,
        "transmissions": sum(path["data_chunks_sent"] for path in paths),
        "retransmissions_alternate": paths[1]["fast_retransmissions"]
        + paths[1]["timeout_retransmissions"],
        "lost_alternate": lost["alternate/forward"],
    }


def _draw_6_1(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    rows = []
    for setting, case in zip(wanted.traced, ("best case", "worst case"), strict=True):
        results = runs.results(setting)
        rows.append(
            {
                "case": case,
                "rto": getattr(setting, "rto", None) or 1.0,
                "detection_time": delaware.detection_times(results)[0],
                "outstanding": outstanding(results[0]),
            }
        )
    frame = pd.DataFrame(rows)
    figure, (axes,) = charts.blank(1, "From the last restart of T3-rtx to the path being inactive")
    axes.barh(frame["case"], frame["detection_time"], color=COLOURS[0])
    for place, value in enumerate(frame["detection_time"]):
        axes.text(value, place, f" {value:.1f} s", va="center")
    axes.set_xlim(0, 1.2 * float(frame["detection_time"].max()))
    axes.set_xlabel("failure detection time [s]")
    return frame, figure


def outstanding(result: Result) -> int:
    """Packets that were outstanding when the path broke: all that is sent again over the alternate.

    These are the chunks lost in the break, and one for each further timeout of the primary path
    until it is given up: what was sent to it in the meantime.
    """
    _primary, alternate = delaware.counts(result)
    return int(alternate["timeout_retransmissions"])


figure_4 = Figure(
    "4",
    "Example RTO dynamics with 8 % primary path loss and 5 % alternate path loss",
    _grid_4,
    _draw_4,
)
section_6_1 = Figure(
    "6.1",
    "Failure detection time, and what is outstanding when the path breaks",
    lambda _full: Grid((), 1, traced=(QUICKEST, SLOWEST)),
    _draw_6_1,
)
