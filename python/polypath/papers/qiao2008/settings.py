"""The paper's parameters: the strategy and the rates of two paths; and further links."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from polypath.papers.reference import Sample, reference
from polypath.papers.runs import Setting
from polypath.scenario import Scenario

#: The paper's strategies, the policy that decides by equation (8), and a further variant.
POLICIES = {
    "FRtxOnAlt": "alternate",
    "FRtxOnSame": "hybrid",
    "model": "receive-buffer",
    # FRtxOnAlt, but new data does not wait for chunks that the alternate path's window delays.
    "FRtxOnAlt, decoupled": "alternate",
}
#: When the sender applies Max.Burst. The paper's figures are those of a sender that counts its
#: packets in response to every SACK; Debian's release of the module does so only after a fast
#: retransmission, until the limit has been reached once.
PAPERS_RELEASE, DEBIANS_RELEASE = "packet-count", "after-retransmission"
#: Rates of the primary path in Tables 1 and 2, kbit/s.
TABLE_1 = (30_000, 25_000, 20_000, 15_000, 10_000, 5000, 2000, 1000, 900, 800, 512, 384, 36)
TABLE_2 = (30_000, 25_000, 20_000, 15_000, 10_000, 6000, 5100, 5000, 2000, 1000, 512, 384, 36)
#: Rates of the secondary path, kbit/s, with the primary's.
TABLES = {36: TABLE_1, 384: TABLE_2}
#: Chunks of the paper's 20 MB, 1452 bytes of data each: this number gives its times.
CHUNKS = 13_851
#: Queue limit: the paper's queues of 50 packets drop the packet that would fill them.
QUEUE = 49
RECEIVE_BUFFER = 1_000_000
#: Rate of the edge links, kbit/s: a host sends a packet every 12 us.
EDGE = 1_000_000
#: Start of the transfer, seconds.
START = 5.0


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer of 20 MB. Rates in kbit/s, delays one way in ms, sizes in bytes."""

    strategy: str
    primary_rate: float
    secondary_rate: float
    burst: str = PAPERS_RELEASE
    ssthresh: int = 1_000_000
    primary_delay: float = 50
    secondary_delay: float = 300
    receive_buffer: int = RECEIVE_BUFFER
    edge_rate: float = EDGE

    def scenario(self) -> Scenario:
        """The scenario of this point."""

        def path(name: str, rate: float, delay: float) -> dict[str, Any]:
            return {
                "name": name,
                "rate": f"{rate:g} kbit/s",
                "delay": f"{delay:g} ms",
                "queue": f"{QUEUE} packets",
                "edge": {"rate": f"{self.edge_rate:.10g} kbit/s", "queue": "10000 packets"},
            }

        return Scenario.from_dict(
            {
                "schema": 1,
                "path": [
                    path("primary", self.primary_rate, self.primary_delay),
                    path("secondary", self.secondary_rate, self.secondary_delay),
                ],
                "transport": {
                    "profile": "paper-2006",
                    "burst_rule": self.burst,
                    "initial_ssthresh": f"{self.ssthresh} B",
                    "receive_buffer": f"{self.receive_buffer} B",
                    # The module's send buffer is unlimited: its application never waits.
                    "send_buffer": "4 MB",
                    "new_data_waits": not self.strategy.endswith("decoupled"),
                },
                "policy": {"retransmission": POLICIES[self.strategy]},
                "workload": {
                    "kind": "bulk",
                    "messages": CHUNKS,
                    "message_size": "1452 B",
                    "start": f"{START:g} s",
                },
                "run": {"check_content": False},
            }
        )

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""
        return {
            "strategy": self.strategy,
            "primary_rate": self.primary_rate,
            "secondary_rate": self.secondary_rate,
            "burst": self.burst,
            "primary_delay": self.primary_delay,
            "secondary_delay": self.secondary_delay,
            "receive_buffer": self.receive_buffer,
            "edge_rate": self.edge_rate,
        }

    @property
    def links(self) -> str:
        """Both links in words."""
        text = f"{rate(self.primary_rate)} and {rate(self.secondary_rate)}"
        if (self.primary_delay, self.secondary_delay) != (50, 300):
            text += f", {self.primary_delay:g} and {self.secondary_delay:g} ms"
        if self.edge_rate != EDGE:
            text += f", edges of {self.edge_rate / 1e6:g} Gbit/s"
        if self.receive_buffer != RECEIVE_BUFFER:
            text += f", buffer {self.receive_buffer / 1000:.0f} kB"
        return text

    def __str__(self) -> str:
        return f"{self.strategy}, {self.links}"


def rate(kbits: float) -> str:
    """A rate in the paper's notation."""
    return f"{kbits / 1000:g} Mbit/s" if kbits >= 1000 else f"{kbits:g} kbit/s"


def case_study(strategy: str) -> Transfer:
    """The transfer of Section 4."""
    return Transfer(strategy, 10_000, 36, ssthresh=350_000)


def table(secondary: int, strategy: str, burst: str = PAPERS_RELEASE) -> list[Transfer]:
    """A column of a table, in its order."""
    return [Transfer(strategy, primary, secondary, burst) for primary in TABLES[secondary]]


#: Points of the module's sender at which ties matter: 40 packets of a burst arrive from the edge
#: while the primary path of 25 Mbit/s sends one, 100 while it sends three at 30 Mbit/s, so a packet
#: arrives at a full queue at the very instant when another leaves. In ns-2 their order depends on
#: the rounding of doubles. With an edge that is faster by a ten-thousandth the packet is first.
TIED = tuple(
    Transfer("FRtxOnAlt", primary, 384, DEBIANS_RELEASE, edge_rate=1.0001 * EDGE)
    for primary in (25_000, 30_000)
)
#: The only time of the tables that differs depends on 2 us: TSN 1452 arrives that long after a
#: packet has left the full queue, and is queued. With a slightly longer primary path TSN 1455 is
#: queued instead, and the time is the paper's.
A_MOMENT_LATER = Transfer("FRtxOnAlt", 25_000, 384, primary_delay=50.0015)

#: Number of links beyond the paper's in the small and in the full grid.
QUICK_LINKS, FULL_LINKS = 10, 200


def further_links(strategy: str, count: int) -> list[Transfer]:
    """Random links: rates and receive buffer log-uniform, delays uniform; always the same ones."""
    dice = random.Random(2008)  # noqa: S311 - nothing is secret here

    def between(low: float, high: float) -> int:
        return round(math.exp(dice.uniform(math.log(low), math.log(high))))

    return [
        Transfer(
            strategy,
            primary_rate=between(100, 30_000),
            secondary_rate=between(36, 5000),
            primary_delay=dice.randint(5, 150),
            secondary_delay=dice.randint(5, 300),
            receive_buffer=between(64_000, 1_000_000),
        )
        for _ in range(count)
    ]


#: Name of the reference results in a report.
WITH_THE_PAPERS_CONSTANTS = "ns-2, Debian's release with the papers' constants"


@cache
def samples() -> Mapping[str, Mapping[Setting, Sample]]:
    """ns-2's results. FRtxOnSame never reaches Max.Burst: its point is the same by both rules."""
    found: defaultdict[Setting, list[Sample]] = defaultdict(list)
    for row in reference("qiao2008").to_dict("records"):
        burst = DEBIANS_RELEASE if row["policy"] == "FRtxOnAlt" else PAPERS_RELEASE
        setting = Transfer(row["policy"], row["primary_rate"], row["secondary_rate"], burst)
        found[setting].append(Sample(row["n"], row["mean"], row["sd"]))
    return {WITH_THE_PAPERS_CONSTANTS: {setting: own[0] for setting, own in found.items()}}


@cache
def stated() -> Mapping[tuple[str, int, int], float]:
    """The times of Tables 1 and 2 in seconds, by strategy and both rates."""
    return {
        (row["policy"], int(row["primary_rate"]), int(row["secondary_rate"])): float(row["stated"])
        for row in reference("qiao2008").to_dict("records")
    }
