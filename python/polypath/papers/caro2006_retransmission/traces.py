"""Results that the paper takes from single transfers: RTOs (Figure 4), detection (Section 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from polypath.papers.further import Further, FurtherPoint
from polypath.papers.registry import Claim, Figure
from polypath.papers.runs import Grid, NotImplementedYetError, Runs, Source
from polypath.papers.verdict import Check, Finding, Unit, about, typical
from polypath.result import Result
from polypath.statistics import interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: The transfer of Figure 4.
STALE = point("AllRtxAlt", "none", 8, 5)
#: The transfer of Section 6.3 whose outstanding packets are counted.
BROKEN = point("FrSameRtoAlt", BEST["FrSameRtoAlt"], 0, 0, breaks_at=EARLY)
#: Section 6.1: every timeout takes the smallest RTO and its doublings, or the largest.
QUICKEST = BROKEN
SLOWEST = replace(BROKEN, rto=60.0)
#: The paper's values of the two, seconds.
STATED = (63.0, 360.0)


def _grid_4(full: bool) -> Grid:
    return Grid((), FULL_SEEDS if full else QUICK_SEEDS, traced=(STALE,))


def _draw_4(runs: Runs, _wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    results = runs.results(STALE)
    figure, graphs = charts.blank(2, "Figure 4: RTO dynamics of one transfer (seed 1), AllRtxAlt")
    for axes, path, title in zip(
        graphs, (0, 1), ("primary path, 8 % loss", "alternate path, 5 % loss"), strict=True
    ):
        for series in results[0].samples:
            if series.side == "sender" and series.path == path:
                axes.step(series.time, series.rto, where="post", color=COLOURS[path])
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("time [s]")
        axes.set_ylim(bottom=0)
    graphs[0].set_ylabel("RTO [s]")
    return pd.DataFrame([stale(result) for result in results]), figure


def stale(result: Result) -> dict[str, Any]:
    """A transfer of Figure 4: average RTO of each path (s), chunks sent and retransmitted."""
    paths = delaware.counts(result)
    lost = {link["name"]: link["counts"]["lost"] for link in result.outcome["links"]}
    return {
        "seed": result.seed,
        "rto_primary": delaware.average_rto([result], 0).mean,
        "rto_alternate": delaware.average_rto([result], 1).mean,
        "transmissions": sum(path["data_chunks_sent"] for path in paths),
        "retransmissions_alternate": _sent_again(result),
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
                "detection_time": _detection_time(results),
                "outstanding": outstanding(results[0]),
            }
        )
    frame = pd.DataFrame(rows)
    figure, (axes,) = charts.blank(
        1, "Section 6.1: from the last restart of T3-rtx to the path being inactive"
    )
    axes.barh(frame["case"], frame["detection_time"], color=COLOURS[0])
    for place, (value, stated) in enumerate(zip(frame["detection_time"], STATED, strict=True)):
        axes.text(value, place, f" {value:.1f} s\n (the paper: {stated:g} s)", va="center")
    axes.set_xlim(0, 1.5 * float(frame["detection_time"].max()))
    axes.set_xlabel("failure detection time [s]")
    return frame, figure


def _detection_time(results: Sequence[Result]) -> float:
    """The detection time of the first transfer, seconds.

    Raises:
        NotImplementedYetError: The simulator (ns-2) does not report when a path becomes inactive.
    """
    (seconds,) = delaware.detection_times(results[:1])
    if math.isnan(seconds):
        raise NotImplementedYetError("the simulator does not tell when a path becomes inactive")
    return seconds


def outstanding(result: Result) -> int:
    """Packets outstanding when the path broke: all that are retransmitted over the alternate.

    Without earlier losses, these are the chunks lost in the break, and for each further timeout of
    the primary path until it is given up the chunk that was sent over it in the meantime.
    """
    return _sent_again(result)


def _sent_again(result: Result) -> int:
    """Retransmissions over the alternate path: counted, or seen in the packets (ns-2)."""
    counts = delaware.counts(result)[1]
    counted = counts["fast_retransmissions"] + counts["timeout_retransmissions"]
    if not math.isnan(counted):
        return int(counted)
    packets = result.packets()
    seen = packets.loc[packets["link"] == "alternate/forward/first", "retransmission"]
    return int(seen.sum())


def _further_4(
    runs: Runs, points: Sequence[FurtherPoint], chart: Chart, style: dict[str, Any]
) -> tuple[list[dict[str, Any]], Any]:
    results = [result for point in points for result in runs.results(point)]
    drawn = None
    for series in results[0].samples:
        if series.side == "sender":
            axes = chart.axes[series.path]
            (drawn,) = axes.step(series.time, series.rto, where="post", **{**style, "marker": ""})
    return [stale(result) for result in results], drawn


figure_4 = Figure(
    "4",
    "Example RTO dynamics with 8 % primary path loss and 5 % alternate path loss",
    _grid_4,
    _draw_4,
    further=Further(
        lambda one: one == STALE, "retransmission", "time", lines=_further_4, traced=True
    ),
)
# It takes no further curves: the time to the inactive state measures no policy that leaves a path
# before.
section_6_1 = Figure(
    "6.1",
    "Failure detection time, and what is outstanding when the path breaks",
    lambda _full: Grid((), 1, traced=(QUICKEST, SLOWEST)),
    _draw_6_1,
)


def _r05(source: Source) -> Finding:
    """The paper's averages are those of the values above the floor of RTO.Min.

    The ratio is of averages over time, which do not depend on how often a value is reported.
    """
    results = source.results(STALE)
    averages = [[delaware.average_rto([one], path).mean for one in results] for path in (0, 1)]
    above = [[delaware.rto_above_floor(one, path) for one in results] for path in (0, 1)]
    quotient = interval([b / a for a, b in zip(*averages, strict=True)])
    ratio = Check(
        "RTO of the alternate as a multiple of the primary's", quotient, 2.0, unit=Unit.RATIO
    )
    shown = " and ".join(
        f"{one.mean:.2f} s ± {one.half_width:.2f}" for one in map(interval, averages)
    )
    return Finding(
        (
            ratio,
            typical("average RTO above 1 s of the primary", above[0], 2.3, Unit.SECONDS),
            typical("average RTO above 1 s of the alternate", above[1], 5.9, Unit.SECONDS),
        ),
        (f"averaged over time, with the floor of 1 s, the RTOs are {shown}",),
    )


def _r06(source: Source) -> Finding:
    rows = [stale(result) for result in source.results(STALE)]
    first = interval([row["transmissions"] for row in rows])
    return Finding(
        (
            Check("original transmissions", first, 2889, 2889, Unit.COUNT, exact=True),
            typical(
                "retransmissions on the alternate",
                [row["retransmissions_alternate"] for row in rows],
                229,
                Unit.COUNT,
            ),
            typical("of them lost", [row["lost_alternate"] for row in rows], 14, Unit.COUNT),
        )
    )


def _r29(source: Source) -> Finding:
    counted = interval([outstanding(result) for result in source.results(BROKEN)])
    label = "chunks sent again after the break at 4 s"
    return Finding((about(label, counted, 30, unit=Unit.COUNT, exact=True),))


def _r32(source: Source) -> Finding:
    cases = zip((QUICKEST, SLOWEST), ("best case", "worst case"), STATED, strict=True)
    return Finding(
        tuple(
            about(
                label,
                interval([_detection_time(source.results(setting))]),
                seconds,
                exact=True,
            )
            for setting, label, seconds in cases
        )
    )


CLAIMS = (
    Claim("R05", ("4",), _r05),
    Claim("R06", ("4",), _r06),
    Claim("R29", ("6.1",), _r29),
    Claim("R32", ("6.1",), _r32),
)
