"""The paper's parameters: retransmission policy, loss of path 2, SRTT heuristic; and others."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from polypath.papers import delaware
from polypath.papers.reference import Sample, pooled, reference
from polypath.papers.runs import Grid, Setting
from polypath.scenario import Scenario

#: The paper's retransmission policies (II), and polypath's names.
POLICIES = {
    "RTX-SAME": "same",
    "RTX-ASAP": "asap",
    "RTX-CWND": "cwnd",
    "RTX-SSTHRESH": "ssthresh",
    "RTX-LOSSRATE": "loss-rate",
}
#: The ideal application over one association per path (III).
APP_STRIPE = "AppStripe"
#: The profile for real hosts (RTX-CWND by the procedures of RFC 9260) with two schedulers: one
#: sends data ahead of its turn so that it arrives in order, one in the order of TSNs as in the
#: paper.
PROFILE = {"profile cmt": "delay-aware", "profile cmt, in order": "concurrent"}
#: The policies that depend on the losses of paths.
LOSS_AWARE = ("RTX-CWND", "RTX-SSTHRESH", "RTX-LOSSRATE")
#: Loss of path 2 in all figures, percent; that of path 1 is 1 %.
LOSSES = tuple(range(1, 11))
LOSS_1 = 1
#: "Averaged over 30 simulation runs per point" (V); more here, as all policies have the same
#: losses, which moves their means together.
FULL_SEEDS, QUICK_SEEDS = 120, 10
#: Seeds of the figures beyond the paper.
FURTHER_SEEDS = 20
#: A receive buffer that does not limit the sender: more than the file.
UNCONSTRAINED = "16 MiB"

#: The algorithms of CMT, each with the policy that replaces it if it is off.
ALGORITHMS = {
    "SFR": {"loss": "ns2"},
    "CUC": {"cwnd_update": "ns2"},
    "DAC": {"ack": "ns2"},
}
#: Variants of CMT, with the policies that they change.
VARIANTS: Mapping[str, Mapping[str, str]] = {
    "": {},
    "CUC of 2003": {"cwnd_update": "cuc"},
    "over MFR": {"loss": "split-multiple-fast-retransmit"},
    **{f"without {name}": answers for name, answers in ALGORITHMS.items()},
}

#: Networks beyond the paper's: rate in Mbit/s and round trip in ms of each path.
NETWORKS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "two paths": ((10, 90), (10, 90)),
    "three paths": ((10, 90), (10, 90), (10, 90)),
    "path 2 slower": ((10, 90), (2, 90)),
    "path 2 longer": ((10, 90), (10, 290)),
    "path 2 slower and longer": ((10, 90), (2, 290)),
}


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer of 8 MB (2**20 bytes). Loss in percent."""

    policy: str
    #: Loss of path 2, and of a third path.
    loss_2: float
    #: Whether packets to the sender are lost, too.
    reverse_loss: bool = True
    delayed_ack: bool = True
    #: A timeout does not mark chunks that were sent within the last smoothed round trip (IV.B).
    heuristic: bool = False
    #: One of `VARIANTS`.
    variant: str = ""
    network: str = "two paths"
    receive_buffer: str = UNCONSTRAINED
    loss_1: float = LOSS_1

    def scenario(self) -> Scenario:
        """The scenario of this point."""
        striped = self.policy == APP_STRIPE
        transport: dict[str, Any] = {
            "path_confirmation": "off",
            "receive_buffer": self.receive_buffer,
            "send_buffer": "32 MiB",
        }
        if not self.delayed_ack:
            transport["sack_every"] = 1
        if self.heuristic:
            transport["srtt_heuristic"] = True
        policy: dict[str, Any] = {"retransmission": "same"}
        if self.policy in PROFILE:
            transport |= {"profile": "cmt"}
            del transport["path_confirmation"]
            policy = {"scheduler": PROFILE[self.policy]}
        elif not striped:
            policy = {
                **delaware.CMT,
                **VARIANTS[self.variant],
                "retransmission": POLICIES[self.policy],
            }
        # A run has six thousand packets: checksums would be a fifth of its time.
        sections: dict[str, Any] = {"run": {"check_content": False, "check_checksums": False}}
        plain = delaware.transfer(8, self._network(), policy, transport=transport, **sections)
        return plain.with_({"workload.striped": True}) if striped else plain

    def _network(self) -> dict[str, Any]:
        paths = NETWORKS[self.network]
        losses = [self.loss_1] + [self.loss_2] * (len(paths) - 1)
        table = delaware.uniform_loss(*losses)
        for path, (rate, rtt) in zip(table["path"], paths, strict=True):
            path |= {"rate": f"{rate:g} Mbit/s", "delay": f"{delaware.one_way(rtt):g} ms"}
            if not self.reverse_loss:
                path["back"] = {"loss": "0 %"}
        return table

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""
        return {
            "policy": self.policy,
            "loss_1": self.loss_1,
            "loss_2": self.loss_2,
            "reverse_loss": self.reverse_loss,
            "delayed_ack": self.delayed_ack,
            "heuristic": self.heuristic,
            "variant": self.variant,
            "network": self.network,
            "receive_buffer": self.receive_buffer,
        }

    def __str__(self) -> str:
        parts = [self.policy, f"{self.loss_1:g} % / {self.loss_2:g} %"]
        parts += ["SRTT heuristic"] * self.heuristic + [self.variant] * bool(self.variant)
        parts += ["no reverse loss"] * (not self.reverse_loss)
        parts += ["no delayed acks"] * (not self.delayed_ack)
        parts += [self.network] * (self.network != "two paths")
        parts += [self.receive_buffer] * (self.receive_buffer != UNCONSTRAINED)
        return ", ".join(parts)


def grid(settings: Iterable[Transfer], seeds: int) -> Grid:
    """A grid of these points, each once."""
    return Grid(tuple(dict.fromkeys(settings)), seeds)


@cache
def samples() -> Mapping[str, Mapping[Setting, Sample]]:
    """ns-2's results, pooled over the two sets of a point."""
    found: defaultdict[Setting, list[Sample]] = defaultdict(list)
    for row in reference("iyengar2004").to_dict("records"):
        name = row["policy"].removeprefix("CMT-")
        setting = Transfer(
            APP_STRIPE if name == APP_STRIPE else f"RTX-{name}",
            row["loss_2"],
            reverse_loss=bool(row["reverse_loss"]),
            delayed_ack=bool(row["delayed_ack"]),
            loss_1=row["loss_1"],
        )
        found[setting].append(Sample(row["n"], row["mean"], row["sd"]))
    return {delaware.WITH_THE_PAPERS_CONSTANTS: {one: pooled(own) for one, own in found.items()}}


def nearest(setting: Setting, known: Collection[Setting]) -> tuple[Setting, str] | None:
    """The reference result of the same point with the closest loss of path 2."""
    assert isinstance(setting, Transfer)
    like = replace(setting, loss_2=0)
    candidates = [
        one for one in known if isinstance(one, Transfer) and replace(one, loss_2=0) == like
    ]
    best = min(candidates, key=lambda one: abs(one.loss_2 - setting.loss_2), default=None)
    if best is None:
        return None
    if math.isclose(best.loss_2, setting.loss_2):
        return best, ""
    return best, f"path 2 with {best.loss_2:g} % in place of {setting.loss_2:g} %"
