"""Section 4, future work: paths that share a bottleneck, against a single-path competitor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.figures import COLOURS
from polypath.papers import charts
from polypath.papers.registry import Figure, Summary
from polypath.papers.runs import Grid, Runs
from polypath.result import Result
from polypath.scenario import Scenario
from polypath.statistics import interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: The senders: profile, congestion control, paths. The first one, with one path, is the reference.
SENDERS: dict[str, tuple[str, str, int]] = {
    "one path": ("cmt", "rfc9260", 1),
    "CMT": ("cmt", "rfc9260", 2),
    "CMT-PF": ("cmt-pf", "rfc9260", 2),
    "CMT, coupled": ("cmt", "coupled", 2),
    "CMT-PF, coupled": ("cmt-pf", "coupled", 2),
    "CMT, resource pooling": ("cmt", "resource-pooling", 2),
}
SHARED, OWN = "shared", "own"
_MBIT = 8 / 1e6
_PATHS = ("primary", "alternate")


@dataclass(frozen=True, slots=True)
class Meeting:
    """A transfer that never ends: over one bottleneck with a competitor, or over paths of its own.

    The links have 10 Mbit/s and round trips of 90 ms; 10 % of the bottlenecks is cross-traffic, by
    which the seeds differ.
    """

    sender: str
    bottleneck: str
    #: Length of a run, seconds.
    seconds: float

    def scenario(self) -> Scenario:
        """The scenario of this point."""
        profile, congestion, paths = SENDERS[self.sender]
        flow = {"from": "sender", "to": "receiver", "workload": {"size": "1 GB"}}
        own = {
            **flow,
            "name": "sender",
            "paths": list(_PATHS[:paths]),
            "transport": {"profile": profile},
            "policy": {"congestion": congestion},
        }
        network: dict[str, Any]
        if self.bottleneck == SHARED:
            competitor = {**flow, "name": "competitor", "paths": ["competitor"]}
            network = {
                "topology": "shared-bottleneck",
                "path": [{"name": "primary", "cross_traffic": {"load": "10 %"}}],
                "association": [own, competitor],
            }
        else:
            loaded = [{"name": name, "cross_traffic": {"load": "10 %"}} for name in _PATHS]
            network = {"topology": "dual-dumbbell", "path": loaded, "association": [own]}
        return Scenario.from_dict(
            {
                "schema": 1,
                **network,
                "transport": {"receive_buffer": "1 MB", "send_buffer": "4 MB"},
                "run": {"limit": f"{self.seconds:g} s", "check_content": False},
            }
        )

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""
        return {"sender": self.sender, "bottleneck": self.bottleneck}

    def __str__(self) -> str:
        return f"{self.sender}, bottleneck {self.bottleneck}"


def jain(*goodputs: float) -> float:
    """Jain's fairness index, from 1/n (one takes all) to 1 (all alike)."""
    return sum(goodputs) ** 2 / (len(goodputs) * sum(goodput**2 for goodput in goodputs))


def _goodputs(result: Result) -> list[float]:
    """Mbit/s of each association; the competitor's last."""
    return [float(goodput) * _MBIT for goodput in result.associations["goodput"]]


def _points(seconds: float) -> tuple[Meeting, ...]:
    return tuple(Meeting(sender, place, seconds) for place in (SHARED, OWN) for sender in SENDERS)


def _grid(full: bool) -> Grid:
    return Grid((), 20 if full else 3, traced=_points(120 if full else 30))


def _draw(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    rows: list[dict[str, Any]] = []
    single: dict[str, list[float]] = {}
    for setting in wanted.traced:
        assert isinstance(setting, Meeting)
        found = [_goodputs(result) for result in runs.results(setting)]
        own = [goodputs[0] for goodputs in found]
        base = single.setdefault(setting.bottleneck, own)
        columns = {"goodput": own, "more": [a - b for a, b in zip(own, base, strict=True)]}
        if setting.bottleneck == SHARED:
            columns |= {
                "competitor": [goodputs[1] for goodputs in found],
                "jain": [jain(*goodputs) for goodputs in found],
            }
        row = {**setting.labels(), "n": len(found)}
        for name, values in columns.items():
            mean = interval(values)
            row |= {name: mean.mean, f"{name}_half_width": mean.half_width}
        rows.append(row)
    frame = pd.DataFrame(rows)
    figure, graphs = charts.blank(2, "Section 4: a shared bottleneck, and paths of one's own")
    for axes, place in zip(graphs, (SHARED, OWN), strict=True):
        shown = frame[frame["bottleneck"] == place].reset_index(drop=True)
        for offset, (column, label) in enumerate(
            (("goodput", "sender"), ("competitor", "competitor"))
        ):
            axes.barh(
                shown.index + 0.2 - 0.4 * offset,
                shown[column],
                xerr=shown[f"{column}_half_width"],
                height=0.36,
                color=COLOURS[offset],
                label=label,
            )
        axes.set_yticks(range(len(shown)), list(shown["sender"]), fontsize="small")
        axes.set_title(f"bottleneck {place}", fontsize="medium")
        axes.set_xlabel("goodput [Mbit/s]")
    charts.legend(figure, graphs[0], ["sender", "competitor"])
    return frame, figure


def _summary(frame: pd.DataFrame) -> Summary:
    shared = frame[(frame["bottleneck"] == SHARED) & (frame["sender"] != "one path")]
    says = [
        f"{row['sender']}: {row['more']:+.2f} ± {row['more_half_width']:.2f} Mbit/s against one "
        f"path in its place (Jain {row['jain']:.3f}, n = {row['n']})."
        for _, row in shared.iterrows()
    ]
    own = frame[frame["bottleneck"] == OWN].set_index("sender")["goodput"]
    says += [
        f"Over paths of its own {sender} takes {own[sender] / own['one path']:.2f} times "
        "what one path does."
        for sender in own.index[1:]
    ]
    return Summary(tuple(says))


section_4 = Figure(
    "section-4", "Paths that share a bottleneck: goodput and fairness", _grid, _draw, _summary
)
