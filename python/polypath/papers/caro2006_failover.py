"""Caro, Amer, Stewart: Rethinking end-to-end failover with transport layer multihoming.

How small may Path.Max.Retrans be, and should a failover
be permanent? So far: the yardstick of its transfer times, and the time that a failover takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.figures import COLOURS
from polypath.papers import charts, delaware
from polypath.papers.registry import Claim, Figure, Paper, not_yet
from polypath.papers.runs import Grid, Runs, Source
from polypath.papers.tables import points_frame
from polypath.papers.verdict import Check, Finding, Unit, about
from polypath.scenario import Scenario
from polypath.statistics import interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: The paper's transfer time: from the first DATA to the last byte (80 MB at 0 % loss: 122.3 s).
_TIME = "time_from_first_data"


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer of 80 MB with FrSameRtoAlt. Breakage in seconds.

    The paper adds multiple fast retransmits; where nothing is lost at random they change nothing.
    """

    pmr: int = 5
    breaks_at: float | None = None

    def scenario(self) -> Scenario:
        """The scenario of this point."""
        broken = {"at": f"{self.breaks_at} s", "path": "primary", "kind": "down"}
        return delaware.transfer(
            80,
            delaware.uniform_loss(0, 0),
            delaware.policy("FrSameRtoAlt", "none"),
            transport={"path_confirmation": "off", "path_max_retrans": self.pmr},
            fault=[] if self.breaks_at is None else [broken],
        )

    def labels(self) -> dict[str, Any]:
        """The columns that say which point it is."""
        return {"pmr": self.pmr, "breaks_at": self.breaks_at}


#: Section III.3: nothing is lost.
OPTIMAL = Transfer()
#: Section III.2: how long a failover takes, for each Path.Max.Retrans.
FAILOVERS = tuple(Transfer(pmr, breaks_at=10) for pmr in range(6))


def _draw_optimal(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    frame = points_frame(runs, wanted.settings, metric=_TIME)
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


section_3_3 = Figure(
    "III.3",
    "Optimal transfer time of an 80 MB file",
    lambda _full: Grid((OPTIMAL,), 1),
    _draw_optimal,
)
section_3_2 = Figure(
    "III.2",
    "Failover time of each Path.Max.Retrans",
    lambda _full: Grid((), 1, traced=FAILOVERS),
    _draw_failovers,
)


def _f01(source: Source) -> Finding:
    """The paper has four digits, and nothing of it is random: so do we."""
    measured = source.mean(OPTIMAL, _TIME)
    check = Check("0 % loss", measured, 122.25, 122.35, Unit.SECONDS, exact=True)
    return Finding((check,))


def _f23(source: Source) -> Finding:
    times = delaware.detection_times(source.results(FAILOVERS[3]))
    check = about("PMR 3", interval(times), 15.0, exact=True)
    return Finding((check,))


PAPER = Paper(
    key="caro2006-failover",
    source="caro2006-failover",
    title="Rethinking end-to-end failover with transport layer multihoming "
    "(Caro, Amer, Stewart 2006)",
    figures=(section_3_2, section_3_3),
    claims=(
        Claim("F01", ("III.3",), _f01),
        *not_yet([f"F{number:02}" for number in range(2, 23)]),
        Claim("F23", ("III.2",), _f23),
    ),
)
