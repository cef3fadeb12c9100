"""The paper's parameters: policy, extensions, loss, round trip, number of paths, failures."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from polypath.papers import delaware
from polypath.papers.reference import RELEASE_36, Sample, pooled, reference, release_36
from polypath.papers.runs import Setting
from polypath.scenario import Scenario

#: Primary loss of the figures' panels, percent.
PRIMARY = (3, 5, 8)
#: Seeds of a point; the paper has 60 (Section 3.1).
QUICK_SEEDS, FULL_SEEDS = 10, 60
#: Seeds of the figures whose statements are about differences of a few percent.
MANY_SEEDS = 300
#: Alternate loss on the horizontal axes, percent. The small grid has the ends that the paper quotes
#: and the points of the reference results.
QUICK_ALTERNATE, FULL_ALTERNATE = (0, 4, 8, 10), tuple(range(11))
#: Each policy with its best extensions (Section 5).
BEST = {"AllRtxAlt": "TS", "AllRtxSame": "MFR+TS", "FrSameRtoAlt": "MFR+TS"}
#: Extensions that the paper gives each policy (Figure 7), plain first.
EXTENSIONS = {
    "AllRtxAlt": ("none", "HAR", "TS"),
    "AllRtxSame": ("none", "TS", "MFR", "MFR+TS"),
    "FrSameRtoAlt": ("none", "HAR", "TS", "MFR", "MFR+HAR", "MFR+TS"),
}


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer of 4 MB. Loss in percent, round trip in ms, breakage in seconds."""

    policy: str
    extensions: str
    primary_loss: float
    alternate_loss: float = 0
    alternate_rtt: float = delaware.RTT
    breaks_at: float | None = None
    paths: int = 2
    #: `transport.path_confirmation` of the release that the paper used.
    confirmation: str = "off"
    #: `transport.rto_min` and `rto_initial` in seconds; None for the defaults.
    rto: float | None = None

    def scenario(self) -> Scenario:
        """The scenario of this point."""
        transport: dict[str, Any] = {"path_confirmation": self.confirmation}
        if self.rto is not None:
            transport |= {"rto_min": f"{self.rto:g} s", "rto_initial": f"{self.rto:g} s"}
        alternates = [self.alternate_loss] * (self.paths - 1)
        sections: dict[str, Any] = {}
        if self.breaks_at is not None:
            sections["fault"] = [delaware.broken("primary", self.breaks_at)]
        return delaware.transfer(
            4,
            delaware.uniform_loss(self.primary_loss, *alternates, alternate_rtt=self.alternate_rtt),
            delaware.policy(self.policy, self.extensions),
            transport=transport,
            **sections,
        )

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""
        return {
            "policy": self.policy,
            "extensions": self.extensions,
            "primary_loss": self.primary_loss,
            "alternate_loss": self.alternate_loss,
            "alternate_rtt": self.alternate_rtt,
            "breaks_at": self.breaks_at,
            "paths": self.paths,
            "confirmation": self.confirmation,
        }

    def __str__(self) -> str:
        extensions = "" if self.extensions == "none" else f"+{self.extensions}"
        text = f"{self.policy}{extensions}, {self.primary_loss:g} % / {self.alternate_loss:g} %"
        if self.alternate_rtt != delaware.RTT:
            text += f", {self.alternate_rtt:g} ms"
        if self.breaks_at is not None:
            text += f", break at {self.breaks_at:g} s"
        return text if self.paths == 2 else f"{text}, {self.paths} paths"


def point(
    policy: str, extensions: str, primary_loss: float, alternate_loss: float = 0, **more: Any
) -> Transfer:
    """A point of the paper's figures.

    Without a failure AllRtxSame sends nothing over the alternate path, so all its losses are one
    point.
    The rows without timestamps of the other two policies were run with a release that confirms
    every path before the first DATA (3.7), all others with one that confirms none (3.5).
    """
    if policy == "AllRtxSame" and more.get("breaks_at") is None:
        alternate_loss = 0
    confirms = policy != "AllRtxSame" and "TS" not in extensions
    confirmation = "before-data" if confirms else "off"
    return Transfer(
        policy, extensions, primary_loss, alternate_loss, confirmation=confirmation, **more
    )


#: `transport.path_confirmation` of the releases 3.5 and 3.7.
_CONFIRMATION = {"rel35": "off", "rel37": "before-data"}


@cache
def samples() -> Mapping[str, Mapping[Setting, Sample]]:
    """ns-2's results with the papers' constants, pooled over the sets of a point."""
    found: defaultdict[Setting, list[Sample]] = defaultdict(list)
    for row in reference("caro2006-retransmission").to_dict("records"):
        if row["variant"] not in _CONFIRMATION:
            continue
        setting = point(
            row["policy"],
            row["extensions"],
            row["primary_loss"],
            row["alternate_loss"],
            alternate_rtt=row["alternate_rtt"],
            breaks_at=None if math.isnan(row["breaks_at"]) else row["breaks_at"],
        )
        setting = replace(setting, confirmation=_CONFIRMATION[row["variant"]])
        found[setting].append(Sample(row["n"], row["mean"], row["sd"]))
    return {
        delaware.WITH_THE_PAPERS_CONSTANTS: {s: pooled(own) for s, own in found.items()},
        RELEASE_36: _of_release_36(),
    }


def _of_release_36() -> dict[Setting, Sample]:
    """The rows of the module of the papers' year; it confirms no paths."""
    return {
        point(
            row["policy"],
            row["extensions"],
            row["primary_loss"],
            row["alternate_loss"],
            alternate_rtt=row["alternate_rtt"],
            breaks_at=None if math.isnan(row["breaks_at"]) else row["breaks_at"],
        ): Sample(row["n"], row["mean"], row["sd"])
        for row in release_36("caro2006-retransmission").to_dict("records")
    }


def nearest(setting: Setting, known: Collection[Setting]) -> tuple[Setting, str] | None:
    """The reference result with the closest loss of the alternate path, or the other start-up."""
    assert isinstance(setting, Transfer)
    candidates = [
        one
        for one in known
        if isinstance(one, Transfer)
        and replace(one, alternate_loss=0, confirmation="")
        == replace(setting, alternate_loss=0, confirmation="")
    ]
    if not candidates:
        return None

    def distance(one: Transfer) -> tuple[float, bool]:
        other_start = one.confirmation != setting.confirmation
        return abs(one.alternate_loss - setting.alternate_loss), other_start

    best = min(candidates, key=distance)
    notes = []
    if best.alternate_loss != setting.alternate_loss:
        found, wanted = best.alternate_loss, setting.alternate_loss
        notes.append(f"alternate {found:g} % in place of {wanted:g} %")
    if best.confirmation != setting.confirmation:
        notes.append(f"{best.policy}+{best.extensions} with the other start-up")
    return best, "; ".join(notes)


_SACKS_OF_NOTHING = (
    "SACKs of nothing: fast retransmissions take the place of timeouts (docs/ns2-differences.md)"
)


#: From 2000 transfers each instead of the recorded ones, with the same constants.
_WITH_MANY = (
    "few runs: with 2000 here 86.5 s (-2.5 %) without confirmation of paths and 74.5 s (-4.2 %) "
    "with it"
)
_LATE_STARTS = (
    "2.5 % of the transfers had not begun when the path broke, for the handshake lost packets; "
    "they take minutes, and none is among ns-2's twenty. Without them, 2000 transfers: +2.1 % ± "
    "1.6 (4 %), +2.0 % ± 3.4 (8 %, of 616)"
)


#: AllRtxAlt at 5 % / 4 %, which is outside the interval with both start-ups.
_FEW = Transfer("AllRtxAlt", "none", 5, 4)


def cause(setting: Setting) -> str:
    """Explains the difference between polypath's and ns-2's mean, from traces or more runs."""
    assert isinstance(setting, Transfer)
    if "TS" in setting.extensions and setting.alternate_rtt > delaware.RTT:
        return _SACKS_OF_NOTHING
    if setting.breaks_at is not None:
        return _LATE_STARTS
    if replace(setting, confirmation="off") == _FEW:
        return _WITH_MANY
    return "within chance: a tenth of all points would lie outside"
