"""The paper's parameters: the variant, thresholds, loss, delays, cross-traffic."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import pandas as pd

from polypath.papers import delaware
from polypath.papers.reference import Sample, pooled, reference
from polypath.papers.runs import Setting
from polypath.result import Result
from polypath.scenario import Scenario

#: The paper's variants: the policy of (fast) retransmissions, and the failover mechanism.
VARIANTS = {
    "CMT-CWND": ("cwnd", "dormant-hop"),
    "CMT-SSTHRESH": ("ssthresh", "dormant-hop"),
    "CMT-PF-CWND": ("cwnd", "cmt-potentially-failed"),
    "CMT-PF-SSTHRESH": ("ssthresh", "cmt-potentially-failed"),
}
#: CMT and CMT-PF with the same policy.
PAIRS = (("CMT-CWND", "CMT-PF-CWND"), ("CMT-SSTHRESH", "CMT-PF-SSTHRESH"))
PMR = (0, 1, 2, 3, 4, 5)
#: Loads of cross-traffic, percent of the core link: of both paths (Figure 4), of path 2 (Figure 6).
LOADS, LOADS_2 = (40, 50, 60, 70, 80, 90, 100), (70, 80, 90, 100)
#: Path 1's load in Figure 6 and the tables.
LOAD_1 = 70
#: One-way delays of path 2 in Figure 5, milliseconds.
DELAYS = (45, 90, 180, 360, 450)
LOSSES = tuple(range(1, 11))
#: Time when path 2 fails, seconds.
FAILS_AT = 10.0
#: Seconds from the start of the cross-traffic to that of the transfer.
WARM_UP = 5.0
_MTU_DATA = delaware.CHUNK
#: The links that end at the receiver.
_LAST_LINKS = ("primary/forward/last", "alternate/forward/last")
#: `transport.path_confirmation` of the releases 3.7 and 3.5 of the module.
RELEASE_37, RELEASE_35 = "before-data", "off"


def policy(variant: str) -> dict[str, str]:
    """The section `[policy]` of a variant."""
    retransmission, failover = VARIANTS[variant]
    return {**delaware.CMT, "retransmission": retransmission, "failover": failover}


def _transport(confirmation: str, **more: Any) -> dict[str, Any]:
    # The module's send buffer is unlimited: its application never waits.
    return {"path_confirmation": confirmation, "send_buffer": "4 MB", **more}


@dataclass(frozen=True, slots=True)
class Failure:
    """A transfer whose path 2 fails after 10 s (Figure 2), 1 % loss on both paths.

    The metric is the goodput during failure detection: user data received between the failure and
    the time when path 2 becomes inactive, in bytes a second; NaN if it does not. With the start-up
    of release 3.5, ns-2's results count data that was cumulatively acknowledged at the sender: at
    PMR 0 half of the data received.
    """

    variant: str
    #: Path.Max.Retrans.
    pmr: int
    confirmation: str = RELEASE_37
    loss: float = 1
    metric: ClassVar[str] = "goodput_detecting"

    def scenario(self) -> Scenario:
        """The scenario of this point: it ends after twice the time that detection should take."""
        doublings = 2 ** (self.pmr + 1) - 1
        return delaware.transfer(
            60,
            delaware.uniform_loss(self.loss, self.loss),
            policy(self.variant),
            transport=_transport(self.confirmation, path_max_retrans=self.pmr),
            fault=[delaware.broken("alternate", FAILS_AT)],
            run={"check_content": False, "limit": f"{FAILS_AT + 2 * doublings + 5:g} s"},
        )

    def observe(self, result: Result) -> dict[str, float]:
        """The goodput during failure detection, and the duration of the detection (seconds)."""
        changes = result.changes
        failed = changes[
            (changes["side"] == "sender") & (changes["path"] == 1) & (changes["to"] == "inactive")
        ]
        until = failed.loc[failed["at"] > FAILS_AT, "at"].min()
        if math.isnan(until):
            return dict.fromkeys((self.metric, "detection_time", "chunks_received"), math.nan)
        if self.confirmation == RELEASE_35:
            packets = result.packets()
            count = int(_acknowledged(packets, until) - _acknowledged(packets, FAILS_AT))
        else:
            data = result.data_arrivals()
            received = data[data["link"].isin(_LAST_LINKS) & (data["arrival"] <= until)]
            first = received.groupby("tsn")["arrival"].min()
            count = int((first > FAILS_AT).sum())
        span = float(until) - FAILS_AT
        return {
            self.metric: count * _MTU_DATA / span,
            "detection_time": span,
            "chunks_received": count,
        }

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""
        return {
            "variant": self.variant,
            "pmr": self.pmr,
            "loss": self.loss,
            "confirmation": self.confirmation,
        }

    def __str__(self) -> str:
        return f"{self.variant}, PMR {self.pmr}"


def _acknowledged(packets: pd.DataFrame, until: float) -> float:
    """The highest cumulative ack that has reached the sender by `until`."""
    ends = packets["link"].isin(["primary/back/last", "alternate/back/last"])
    return float(packets.loc[ends & (packets["arrival"] <= until), "cumulative_ack"].max())


@dataclass(frozen=True, slots=True)
class Alone:
    """SCTP over path 1 alone, 1 % loss: the dashed line of Figure 2b.

    ns-2's transfers took 108.9 s at 193 kB/s: 20 MB.
    """

    loss: float = 1
    confirmation: str = RELEASE_37
    metric: ClassVar[str] = "goodput"

    def scenario(self) -> Scenario:
        """The scenario of this point."""
        network = delaware.uniform_loss(self.loss, self.loss)
        return delaware.transfer(
            20,
            network,
            {"retransmission": "same"},
            transport=_transport(self.confirmation, path_max_retrans=100),
        )

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""
        return {"variant": "SCTP on path 1", "loss": self.loss, "confirmation": self.confirmation}

    def __str__(self) -> str:
        return "SCTP on path 1"


@dataclass(frozen=True, slots=True)
class Lossy:
    """A transfer of 8 MB over two paths with equal loss (Figure 5), percent; delay in ms."""

    variant: str
    loss: float
    delay_2: float = 45
    confirmation: str = RELEASE_37

    def scenario(self) -> Scenario:
        """The scenario of this point."""
        return delaware.transfer(
            8,
            delaware.uniform_loss(self.loss, self.loss, alternate_rtt=2 * self.delay_2),
            policy(self.variant),
            transport=_transport(self.confirmation),
            run={"check_content": False, "check_checksums": False},
        )

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""
        return {
            "variant": self.variant,
            "loss": self.loss,
            "delay_2": self.delay_2,
            "confirmation": self.confirmation,
        }

    def __str__(self) -> str:
        return f"{self.variant}, {self.loss:g} %, {self.delay_2:g} ms"


@dataclass(frozen=True, slots=True)
class Congested:
    """A transfer of 32 MB among cross-traffic (Figures 4 and 6), percent of the core links."""

    variant: str
    load_1: float
    load_2: float
    confirmation: str = RELEASE_37

    def scenario(self) -> Scenario:
        """The scenario of this point."""
        loads = {"primary": self.load_1, "alternate": self.load_2}
        return delaware.transfer(
            32,
            {
                "topology": "dual-dumbbell",
                "path": [
                    {"name": name, "cross_traffic": {"load": f"{load:g} %"}}
                    for name, load in loads.items()
                ],
            },
            policy(self.variant),
            transport=_transport(self.confirmation),
            start=WARM_UP,
            run={"check_content": False, "check_checksums": False},
        )

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""
        return {
            "variant": self.variant,
            "load_1": self.load_1,
            "load_2": self.load_2,
            "confirmation": self.confirmation,
        }

    def __str__(self) -> str:
        return f"{self.variant}, {self.load_1:g} % / {self.load_2:g} %"


_CONFIRMATION = {"rel35": RELEASE_35, "rel37": RELEASE_37}


@cache
def samples() -> Mapping[str, Mapping[Setting, Sample]]:
    """ns-2's results, pooled over the sets of a point."""
    found: defaultdict[Setting, list[Sample]] = defaultdict(list)
    for row in reference("natarajan2009").to_dict("records"):
        setting = _setting(row)
        names = ("goodput", "goodput_sd") if row["experiment"] == "failure" else ("mean", "sd")
        mean, sd = (float(row[name]) for name in names)
        found[setting].append(Sample(row["n"], mean, sd))
    return {delaware.WITH_THE_PAPERS_CONSTANTS: {s: pooled(own) for s, own in found.items()}}


def _setting(row: Mapping[Any, Any]) -> Setting:
    confirmation = _CONFIRMATION[row["variant"]]
    scheme = row["scheme"]
    if row["experiment"] == "failure":
        if scheme not in VARIANTS:
            return Alone(row["loss_1"], confirmation)
        return Failure(scheme, int(row["pmr"]), confirmation, row["loss_1"])
    if row["experiment"] == "bernoulli":
        return Lossy(scheme, row["loss_1"], row["delay_2"], confirmation)
    return Congested(scheme, row["load_1"], row["load_2"], confirmation)


def nearest(setting: Setting, known: Collection[Setting]) -> tuple[Setting, str] | None:
    """The reference result of the same point with the other start-up."""
    if isinstance(setting, Failure):
        # The other release's goodput is counted differently.
        return None
    other = replace(setting, confirmation=RELEASE_35)  # type: ignore[type-var]
    return (other, "with the start-up of release 3.5") if other in known else None


def cause(setting: Setting) -> str:
    """Explains the difference between polypath's and ns-2's mean at a point."""
    if isinstance(setting, Congested):
        return "three runs of ns-2, whose cross-traffic has other dice: its loss differs by more"
    if isinstance(setting, Failure) and setting.confirmation == RELEASE_35:
        return (
            "a dozen runs of ns-2 with the same dice for every threshold (docs/ns2-differences.md)"
        )
    return "within chance: a tenth of all points would lie outside"
