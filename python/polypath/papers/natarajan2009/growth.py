"""Section 3.1: data sent on a path in the round trips after one timeout, by CMT and CMT-PF."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from polypath.figures import COLOURS
from polypath.papers import charts, delaware
from polypath.papers.natarajan2009.settings import RELEASE_37, policy
from polypath.papers.registry import Claim, Figure
from polypath.papers.runs import Grid, NotThereError, Runs, Source
from polypath.papers.verdict import Check, Finding, Unit
from polypath.result import Result
from polypath.scenario import Scenario
from polypath.statistics import interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: Round trips of both paths, milliseconds.
QUICK_RTTS, FULL_RTTS = (90, 900), (90, 180, 360, 720, 900)
#: Number of round trips that are examined; slow start lasts longer.
ROUND_TRIPS = 3
#: Path 2 goes down after this number of round trips, until shortly before its timeout.
LOSES_AT = 40


@dataclass(frozen=True, slots=True)
class Timeout:
    """A transfer with one timeout on path 2: the paper's thought experiment.

    Each packet is acknowledged, so that slow start doubles the window each round trip; the receive
    buffer holds everything; and path 1 is wide enough to carry all chunks at once that path 2 lost.
    Rates are inversely proportional to round trips, so that windows stay the same.
    """

    variant: str
    rtt: float

    def scenario(self) -> Scenario:
        """The scenario of this point."""
        network = delaware.uniform_loss(0, 0, alternate_rtt=self.rtt, primary_rtt=self.rtt)
        links = ((20, 300), (2, 12))
        network["path"] = [
            {**path, "rate": f"{rate * 90 / self.rtt:g} Mbit/s", "queue": f"{queue} packets"}
            for path, (rate, queue) in zip(network["path"], links, strict=True)
        ]
        return delaware.transfer(
            80,
            network,
            policy(self.variant),
            transport={
                "path_confirmation": RELEASE_37,
                "receive_buffer": "8 MB",
                "send_buffer": "16 MB",
                "sack_every": 1,
                "initial_ssthresh": "300 kB",
            },
            fault=[delaware.broken("alternate", self.lost_at, self.lost_for)],
            run={"check_content": False, "limit": f"{self.lost_at + 3 + 0.01 * self.rtt:g} s"},
        )

    @property
    def lost_at(self) -> float:
        """Time when path 2 goes down, seconds."""
        return LOSES_AT * self.rtt / 1000

    @property
    def lost_for(self) -> float:
        """Duration of the outage, seconds: less than the RTO, more than a round trip."""
        return max(0.95, 1.2 * self.rtt / 1000)

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""
        return {"variant": self.variant, "rtt": self.rtt}

    def __str__(self) -> str:
        return f"{self.variant}, {self.rtt:g} ms"


def _grid(full: bool) -> Grid:
    rtts = FULL_RTTS if full else QUICK_RTTS
    points = tuple(Timeout(variant, rtt) for rtt in rtts for variant in ("CMT-CWND", "CMT-PF-CWND"))
    return Grid((), 1, traced=points)


@lru_cache(maxsize=16)
def sent_after(result: Result, setting: Timeout) -> tuple[int, ...]:
    """Data packets sent on path 2 until n round trips (n = 0, 1, ..) after the timeout.

    The timeout is the time of the first packet on path 2 after the outage.

    Raises:
        NotThereError: No packet was sent on path 2 after it.
    """
    packets = result.packets()
    restored = setting.lost_at + setting.lost_for
    own = packets[(packets["link"] == "alternate/forward/first") & (packets["time"] > restored)]
    if own.empty:
        raise NotThereError("nothing leaves on path 2 after the loss")
    times = own.loc[own["chunks"].str.contains("DATA"), "time"].to_numpy()
    begin = float(own["time"].iloc[0])
    # Half a round trip later, all packets that an acknowledgement permits have been sent.
    ends = begin + (np.arange(ROUND_TRIPS + 1) + 0.5) * setting.rtt / 1000
    return tuple(int((times <= end).sum()) for end in ends)


def _draw(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    rows = []
    for setting in wanted.traced:
        assert isinstance(setting, Timeout)
        counts = sent_after(runs.results(setting)[0], setting)
        rows += [{**setting.labels(), "round_trips": n, "sent": c} for n, c in enumerate(counts)]
    frame = pd.DataFrame(rows)
    rtts = sorted(set(frame["rtt"]))
    figure, graphs = charts.blank(len(rtts), "Section 3.1: data packets on path 2 after a timeout")
    for axes, rtt in zip(graphs, rtts, strict=True):
        for index, (variant, own) in enumerate(
            frame[frame["rtt"] == rtt].groupby("variant", sort=False)
        ):
            axes.plot(
                own["round_trips"],
                own["sent"],
                marker=charts.MARKERS[index],
                color=COLOURS[index],
                label=str(variant),
            )
        axes.set_title(f"round trip {rtt:g} ms", fontsize="medium")
        axes.set_xlabel("round trips after the timeout")
    graphs[0].set_ylabel("data packets sent until then")
    charts.legend(figure, graphs[0], ["CMT-CWND", "CMT-PF-CWND"])
    return frame, figure


section_3_1 = Figure(
    "3.1", "What CMT and CMT-PF send in the round trips after one timeout", _grid, _draw
)


def _p10(source: Source) -> Finding:
    checks, notes = [], []
    for rtt in FULL_RTTS:
        try:
            plain, failed = (
                sent_after(source.results(one)[0], one)
                for one in (Timeout("CMT-CWND", rtt), Timeout("CMT-PF-CWND", rtt))
            )
        except NotThereError:
            continue
        more = interval([plain[-1] - failed[-1]])
        label = f"TPDUs that CMT has sent more, {ROUND_TRIPS} round trips of {rtt:g} ms later"
        checks.append(Check(label, more, 1, 1, Unit.COUNT, exact=True))
        notes.append(f"{rtt:g} ms: CMT {plain}, CMT-PF {failed} after 0, 1, .. round trips")
    if not checks:
        raise NotThereError("no transfers with one timeout")
    return Finding(tuple(checks), tuple(notes))


CLAIMS = (Claim("P10", ("3.1",), _p10),)
