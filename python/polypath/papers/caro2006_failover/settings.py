"""The paper's parameters: loss, round trip, thresholds, dormant behaviour, number of paths."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from polypath.papers import delaware
from polypath.papers.reference import RELEASE_36, Sample, pooled, reference, release_36
from polypath.papers.runs import Grid, Setting
from polypath.scenario import Scenario

#: The paper's transfer time: from the first DATA to the last byte (80 MB at 0 % loss: 122.3 s).
TIME = "time_from_first_data"
#: The paper's Path.Max.Retrans and Change Primary Thresholds; None is infinity, as in Figure 9.
PMR = (0, 1, 2, 3, 4, 5)
CPT = (0, 1, 2, 3, 4, 5, None)
#: Primary loss of the panels of Figures 5, 6 and 10 to 12, percent.
PRIMARY = (3, 5, 8, 10)
#: Both axes of loss, percent.
LOSSES = tuple(range(11))
#: Round trips of the alternate path in Figures 6 and 11, milliseconds.
CELLULAR, LONGER = 1040, 210
#: Transfers per point; the paper does not state its own number.
FULL_SEEDS, QUICK_SEEDS = 10, 10


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer of 80 MB with FrSameRtoAlt+MFR (III.1). Loss in percent, round trips in ms."""

    primary_loss: float = 0
    alternate_loss: float = 0
    #: Path.Max.Retrans.
    pmr: int = 5
    #: `policy.failover`; all of Section III has Dormant Hop (III.6).
    failover: str = "dormant-hop"
    #: Change Primary Threshold of "permanent".
    cpt: int | None = None
    alternate_rtt: float = delaware.RTT
    primary_rtt: float = delaware.RTT
    paths: int = 2
    #: Time when the primary path goes down, seconds.
    breaks_at: float | None = None

    def scenario(self) -> Scenario:
        """The scenario of this point."""
        alternates = [self.alternate_loss] * (self.paths - 1)
        transport: dict[str, Any] = {"path_confirmation": "off", "path_max_retrans": self.pmr}
        if self.cpt is not None:
            transport["change_primary_threshold"] = self.cpt
        # A run has sixty thousand packets: checksums would be a fifth of its time.
        sections: dict[str, Any] = {"run": {"check_content": False, "check_checksums": False}}
        if self.breaks_at is not None:
            sections["fault"] = [delaware.broken("primary", self.breaks_at)]
        return delaware.transfer(
            80,
            delaware.uniform_loss(
                self.primary_loss,
                *alternates,
                alternate_rtt=self.alternate_rtt,
                primary_rtt=self.primary_rtt,
            ),
            {**delaware.policy("FrSameRtoAlt", "MFR"), "failover": self.failover},
            transport=transport,
            **sections,
        )

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point; an infinite `cpt` is "off"."""
        return {
            "failover": self.failover,
            "pmr": self.pmr,
            "cpt": "off" if self.cpt is None else str(self.cpt),
            "primary_loss": self.primary_loss,
            "alternate_loss": self.alternate_loss,
            "primary_rtt": self.primary_rtt,
            "alternate_rtt": self.alternate_rtt,
            "paths": self.paths,
            "breaks_at": self.breaks_at,
        }

    @property
    def mechanism(self) -> str:
        """The threshold or the mechanism that is compared."""
        if self.failover == "permanent":
            return f"CPT {self.cpt}"
        name = "" if self.failover == "dormant-hop" else f"{self.failover}, "
        return f"{name}PMR {self.pmr}"

    @property
    def place(self) -> str:
        """The position in the figures: losses, round trips, number of paths."""
        text = f"{self.primary_loss:g} % / {self.alternate_loss:g} %"
        if (self.primary_rtt, self.alternate_rtt) != (delaware.RTT, delaware.RTT):
            text += f", {self.primary_rtt:g} / {self.alternate_rtt:g} ms"
        return text if self.paths == 2 else f"{text}, {self.paths} paths"

    def __str__(self) -> str:
        return f"{self.mechanism}, {self.place}"


def permanent(cpt: int | None, primary_loss: float, alternate_loss: float, **more: Any) -> Transfer:
    """A point of Figures 10 to 12; an infinite threshold is the same as Dormant Hop."""
    failover = "dormant-hop" if cpt is None else "permanent"
    return Transfer(primary_loss, alternate_loss, 0, failover, cpt, **more)


def grid(
    settings: Iterable[Transfer], seeds: int, more: Mapping[Transfer, int] | None = None
) -> Grid:
    """A grid of these points, each once; `more` has the number of seeds of some of them."""
    points = dict.fromkeys(settings)
    own = tuple((one, count) for one, count in (more or {}).items() if one in points)
    return Grid(tuple(points), seeds, more=own)


#: The paper's thresholds, by their names in each set of the file.
_CPT: Mapping[str, Mapping[str, int | None]] = {
    "a": {"raw0": 0, "raw5": 5},
    "b": {"0": 0, "1": 1, "5": 5, "1000000": None},
}
_DORMANT = {"hop": "dormant-hop", "primary": "dormant-primary", "lastdest": "dormant-last-dest"}


@cache
def samples() -> Mapping[str, Mapping[Setting, Sample]]:
    """ns-2's results, pooled over the sets of a point.

    Within a set all experiments (except that of spurious failovers) have the same seeds: of several
    rows of a point, the one with the most runs includes the others.
    """
    most: dict[tuple[Transfer, str], Sample] = {}
    for row in reference("caro2006-failover").to_dict("records"):
        setting = _setting(row)
        if setting is None:
            continue
        n, share = row["n"], row["failover_share"]
        failed_over = (0, 0) if math.isnan(share) else (round(share * n), n)
        same_seeds = "spurious" if row["experiment"] == "spurious" else row["set"]
        known = most.get((setting, same_seeds))
        if known is None or known.n < n:
            most[setting, same_seeds] = Sample(n, row["mean"], row["sd"], failed_over)
    found: defaultdict[Setting, list[Sample]] = defaultdict(list)
    for (setting, _), sample in most.items():
        found[setting].append(sample)
    of_release: dict[Setting, Sample] = {
        Transfer(
            row["primary_loss"], row["alternate_loss"], int(row["pmr"]), paths=int(row["paths"])
        ): Sample(row["n"], row["mean"], row["sd"])
        for row in release_36("caro2006-failover").to_dict("records")
    }
    return {
        delaware.WITH_THE_PAPERS_CONSTANTS: {s: pooled(own) for s, own in found.items()},
        RELEASE_36: of_release,
    }


def _setting(row: Mapping[Any, Any]) -> Transfer | None:
    losses_and_rtts = {
        name: row[name]
        for name in ("primary_loss", "alternate_loss", "primary_rtt", "alternate_rtt")
    }
    if row["experiment"] == "cpt":
        known = _CPT[row["set"]]
        if row["cpt"] not in known:
            return None
        return permanent(known[row["cpt"]], **losses_and_rtts)
    failover = _DORMANT.get(row["dormant"], "dormant-hop")
    return Transfer(pmr=int(row["pmr"]), failover=failover, **losses_and_rtts)


def nearest(setting: Setting, known: Collection[Setting]) -> tuple[Setting, str] | None:
    """The reference result of the same point with the closest loss of the alternate path."""
    assert isinstance(setting, Transfer)

    def apart(one: Transfer) -> float:
        return abs(one.alternate_loss - setting.alternate_loss)

    like = replace(setting, alternate_loss=0)
    candidates = [
        one for one in known if isinstance(one, Transfer) and replace(one, alternate_loss=0) == like
    ]
    if not candidates:
        return None
    best = min(candidates, key=apart)
    if apart(best) == 0:
        return best, ""
    return best, f"alternate {best.alternate_loss:g} % in place of {setting.alternate_loss:g} %"


def cause(setting: Setting) -> str:
    """Explains the difference between polypath's and ns-2's mean at a point; empty if it cannot."""
    assert isinstance(setting, Transfer)
    if setting.cpt == 1:
        return (
            "with CPT 1 a lost heartbeat ends the wait: exponential times, of which ns-2 has four "
            "(docs/ns2-differences.md)"
        )
    return ""
