"""Figures of transfer times in the paper's layout, and of results that the paper only states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.figures import COLOURS
from polypath.papers import charts, delaware
from polypath.papers.caro2006_failover.settings import (
    CELLULAR,
    CPT,
    FULL_SEEDS,
    LONGER,
    LOSSES,
    PMR,
    PRIMARY,
    QUICK_SEEDS,
    TIME,
    Transfer,
    grid,
    permanent,
    samples,
)
from polypath.papers.further import Further, FurtherPoint, mean_of
from polypath.papers.registry import Figure
from polypath.papers.runs import Grid, Runs
from polypath.papers.tables import points_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: Makes the point of a curve from primary and alternate loss.
Point = Callable[[float, float], Transfer]
#: Losses of primary and alternate path.
Place = tuple[float, float]
#: Round trips of primary and alternate path in Figures 10, 11 and 12, milliseconds.
SYMMETRIC, LONGER_ALTERNATE, LONGER_PRIMARY = (
    {"primary_rtt": primary, "alternate_rtt": alternate}
    for primary, alternate in (
        (delaware.RTT, delaware.RTT),
        (delaware.RTT, LONGER),
        (LONGER, delaware.RTT),
    )
)

#: Section III.3: nothing is lost.
OPTIMAL = Transfer()
#: Section III.2: the duration of a failover, for each Path.Max.Retrans.
FAILOVERS = tuple(Transfer(pmr=pmr, breaks_at=10) for pmr in PMR)


def _draw_optimal(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    frame = points_frame(runs, wanted.settings, metric=TIME)
    figure, (axes,) = charts.blank(1, "80 MB without loss", height=2.0)
    mean = float(frame["mean"].iloc[0])
    axes.barh(["0 % loss"], [mean], color=COLOURS[0])
    axes.text(mean, 0, f" {mean:.3f} s", va="center")
    axes.set_xlim(0, 1.25 * mean)
    axes.set_xlabel("time from the first DATA sent to the last received [s]")
    return frame, figure


def _draw_failovers(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    rows = [
        {**one.labels(), "failover_time": delaware.detection_times(runs.results(one))[0]}
        for one in wanted.traced
    ]
    frame = pd.DataFrame(rows)
    figure, (axes,) = charts.blank(1, "Failover time, RTO of 1 s at first")
    axes.plot(frame["pmr"], frame["failover_time"], marker="o", color=COLOURS[0])
    for pmr, seconds in zip(frame["pmr"], frame["failover_time"], strict=True):
        axes.annotate(
            f"{seconds:.1f} s",
            (pmr, seconds),
            (0, 6),
            textcoords="offset points",
            ha="center",
            fontsize="small",
        )
    axes.set_xlabel("Path.Max.Retrans")
    axes.set_ylabel("time from the last restart of T3-rtx [s]")
    axes.set_ylim(0, 1.15 * float(frame["failover_time"].max()))
    return frame, figure


def _further_optimal(
    runs: Runs, points: Sequence[FurtherPoint], chart: Chart, style: dict[str, Any]
) -> tuple[list[dict[str, Any]], Any]:
    means = [runs.mean(point, TIME) for point in points]
    drawn = chart.axes[0].plot([one.mean for one in means], [0] * len(means), **style)
    return [{"n": one.n, "mean": one.mean} for one in means], drawn[0]


section_3_3 = Figure(
    "III.3",
    "Optimal transfer time of an 80 MB file",
    lambda _full: Grid((OPTIMAL,), 1),
    _draw_optimal,
    further=Further(lambda _one: True, "failover", "mean", lines=_further_optimal),
)
section_3_2 = Figure(
    "III.2",
    "Failover time of each Path.Max.Retrans",
    lambda _full: Grid((), 1, traced=FAILOVERS),
    _draw_failovers,
    further=Further(
        lambda _one: True,
        "failover",
        "pmr",
        values=mean_of(lambda result: delaware.detection_times([result])[0]),
        traced=True,
    ),
)


def over_losses(
    id: str,  # noqa: A002 - what it is called
    title: str,
    full: dict[str, Point],
    quick: dict[str, Sequence[Place]],
    *,
    more: Mapping[Transfer, int] | None = None,
) -> Figure:
    """A panel for each primary loss, over the alternate's; the small grid has single points.

    `more` has points that decide a statement, with their number of seeds.
    """

    def points(whole: bool) -> Grid:
        if whole:
            wanted = [make(p, a) for make in full.values() for p in PRIMARY for a in LOSSES]
        else:
            wanted = [full[label](*place) for label, places in quick.items() for place in places]
        return grid(wanted, FULL_SEEDS if whole else QUICK_SEEDS, more)

    def draw(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
        frame = points_frame(runs, wanted.settings, samples()[delaware.WITH_THE_PAPERS_CONSTANTS])
        curves = [charts.Curve(label, _where(make(0, 0))) for label, make in full.items()]
        primaries = sorted({float(one) for one in frame["primary_loss"]})
        panels = [
            charts.Panel(f"primary path loss {p:g} %", {"primary_loss": p}) for p in primaries
        ]
        chart = charts.transfer_times(
            frame,
            panels,
            curves,
            x="alternate_loss",
            x_label="alternate path loss rate [%]",
            title=title,
        )
        return frame, chart

    def base(one: Any) -> bool:
        return isinstance(one, Transfer) and one == last(one.primary_loss, one.alternate_loss)

    last = full[next(reversed(quick))]
    further = Further(base, "failover", "alternate_loss", panel="primary_loss")
    return Figure(id, title, points, draw, further=further)


def _where(point: Transfer) -> dict[str, Any]:
    """The columns that identify a curve."""
    labels = point.labels()
    names = ("failover", "pmr", "cpt", "primary_rtt", "alternate_rtt", "paths")
    return {name: labels[name] for name in names}


def _thresholds(**more: Any) -> dict[str, Point]:
    return {
        f"PMR {pmr}": lambda p, a, pmr=pmr: Transfer(p, a, pmr, **more)  # type: ignore[misc]
        for pmr in PMR
    }


def _ends(curves: Iterable[str], *places: Place) -> dict[str, Sequence[Place]]:
    return dict.fromkeys(curves, places)


figure_5 = over_losses(
    "5",
    "Path.Max.Retrans, 90 ms primary path RTT, 90 ms alternate path RTT",
    _thresholds(),
    _ends(("PMR 0", "PMR 5"), (3, 5), (8, 10)),
)
figure_6 = over_losses(
    "6",
    "Path.Max.Retrans, 90 ms primary path RTT, 1040 ms alternate path RTT",
    _thresholds(alternate_rtt=CELLULAR),
    _ends(("PMR 0", "PMR 5"), (8, 10)),
)
section_3_5 = over_losses(
    "III.5",
    "Path.Max.Retrans with three paths, both alternates alike",
    _thresholds(paths=3),
    _ends(("PMR 0", "PMR 5"), (8, 10)),
    more={Transfer(5, 0, pmr, paths=3): 20 for pmr in (0, 5)},
)

#: Behaviours in the dormant state (Section III.6), by the paper's names.
DORMANT = {
    "Dormant Hop": "dormant-hop",
    "Dormant Primary": "dormant-primary",
    "Dormant LastDest": "dormant-last-dest",
}


def using(failover: str, pmr: int, **more: Any) -> Point:
    """The points of a failover mechanism."""
    return lambda p, a: Transfer(p, a, pmr, failover, **more)


section_3_6 = over_losses(
    "III.6",
    "Behaviours in the dormant state, PMR 0",
    {label: using(failover, 0) for label, failover in DORMANT.items()},
    _ends(DORMANT, (8, 10)),
)


def _change_primary(rtts: dict[str, Any]) -> dict[str, Point]:
    def curve(cpt: int | None) -> Point:
        return lambda p, a: permanent(cpt, p, a, **rtts)

    return {"CPT infinite" if cpt is None else f"CPT {cpt}": curve(cpt) for cpt in CPT}


figure_10 = over_losses(
    "10",
    "Change Primary Threshold, PMR 0, 90 ms primary path RTT, 90 ms alternate path RTT",
    _change_primary(SYMMETRIC),
    _ends(("CPT 0", "CPT 5"), (5, 0), (5, 8)),
    more={permanent(cpt, 5, 0): 20 for cpt in (0, 5)},
)
figure_11 = over_losses(
    "11",
    "Change Primary Threshold, PMR 0, 90 ms primary path RTT, 210 ms alternate path RTT",
    _change_primary(LONGER_ALTERNATE),
    _ends(("CPT 0", "CPT 5"), (5, 0), (5, 1), (5, 5)),
)
figure_12 = over_losses(
    "12",
    "Change Primary Threshold, PMR 0, 210 ms primary path RTT, 90 ms alternate path RTT",
    _change_primary(LONGER_PRIMARY),
    _ends(("CPT 0", "CPT 5"), (5, 8)),
)

section_5 = over_losses(
    "V",
    "The mechanism that the paper proposes (Figure 13) and plain failover",
    {
        "PMR 0": using("dormant-hop", 0),
        "PMR 5": using("dormant-hop", 5),
        "redirect at once, PMR 5": using("two-phase", 5),
    },
    _ends(("PMR 0", "PMR 5", "redirect at once, PMR 5"), (8, 10)),
)
