"""The four scenarios after a timeout of Section III.7 (Figure 8) in the simulator.

TSN 1 is lost on the primary path. After that, the first packet on the primary path, the first on
the alternate path, both or neither is lost, by its number on the link: the same for both
thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from polypath.papers import delaware
from polypath.result import Result
from polypath.scenario import Scenario

#: The sender's procedures: those of the papers' module, or those of the standard.
PROCEDURES = ("ns2", "rfc9260")
#: Initial RTO of every path in these scenarios, seconds; the paper calculates with RTO.Min.
RTO = 1.0
#: Window at which slow start ends, packets: 64 KiB in chunks of 1468 bytes with their header.
SSTHRESH = 65536 / 1468
#: Longest delay of an acknowledgement, seconds.
SACK_DELAY = 0.2
#: Packets of the primary link before TSN 1: INIT and COOKIE ECHO.
_HANDSHAKE = 2


@dataclass(frozen=True, slots=True)
class Timeout:
    """A transfer whose first packet is lost."""

    #: Number of the scenario.
    number: int
    #: Path.Max.Retrans.
    pmr: int
    procedures: str
    #: Announced windows are too large to limit the sender, as in the equations.
    unlimited: bool = False
    #: `transport.sack_every`: packets per acknowledgement.
    sack_every: int = 2

    def scenario(self) -> Scenario:
        """The scenario of this point.

        By the standard's procedures the policy decides whether a heartbeat is sent at once; by the
        module's, one is sent if the path has failed, as the paper describes.
        """
        policy = {**delaware.policy("FrSameRtoAlt", "MFR"), "failover": "dormant-hop"}
        if self.procedures == "rfc9260" and self.pmr == 0:
            policy["probing"] = "after-rto"
        own = delaware.transfer(
            2,
            delaware.uniform_loss(0, 0),
            policy,
            transport={
                "path_confirmation": "off",
                "path_max_retrans": self.pmr,
                "procedures": self.procedures,
                "rto_initial": f"{RTO:g} s",
                "initial_cwnd": 1,
                "receive_buffer": "4 MiB" if self.unlimited else "64 KiB",
                "sack_every": self.sack_every,
            },
        )
        first = _HANDSHAKE + 1
        lost = [first, first + 1] if self.number in (3, 4) else [first]
        changes: dict[str, Any] = {
            "path.primary.loss": None,
            "path.primary.forward.loss": {"packets": lost},
        }
        if self.number in (2, 4):
            changes["path.alternate.loss"] = None
            changes["path.alternate.forward.loss"] = {"packets": [1]}
        return own.with_(changes)

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""
        return {"scenario": self.number, "pmr": self.pmr, "procedures": self.procedures}

    def __str__(self) -> str:
        return f"scenario {self.number}, PMR {self.pmr}"


@dataclass(frozen=True, slots=True)
class Event:
    """A packet from the sender's point of view."""

    #: Time when the sender sent or received it, in seconds after the timeout of TSN 1.
    at: float
    #: Time when the peer received or sent it, or when it was lost, likewise.
    there: float
    path: int
    to_peer: bool
    lost: bool
    text: str


class Trace:
    """The packets of a run from the timeout of TSN 1 on."""

    def __init__(self, result: Result) -> None:
        frame = result.packets()
        first = frame.groupby("packet", sort=False).first()
        last = frame.groupby("packet", sort=False).last()
        again = first["retransmission"].astype(bool)
        #: Time when T3-rtx expired for TSN 1, seconds from the beginning of the run.
        self.start = float(first.loc[again, "time"].iloc[0])
        self.events = [
            _event(before, after, self.start)
            for before, after in zip(first.itertuples(), last.itertuples(), strict=True)
        ]

    @cached_property
    def after(self) -> list[Event]:
        """The packets from the timeout on, by the time when the sender sends or receives them."""
        return sorted((one for one in self.events if one.at >= 0), key=lambda one: one.at)

    def delivered(self, until: float, path: int | None = None) -> int:
        """DATA packets sent before that time (seconds after the timeout) that arrived."""
        return sum(
            one.to_peer
            and not one.lost
            and one.text.startswith("DATA")
            and one.at < until
            and path in (None, one.path)
            for one in self.after
        )

    def sent(self, until: float) -> int:
        """DATA packets sent before that time, lost ones included."""
        return sum(
            one.to_peer and one.text.startswith("DATA") and one.at < until for one in self.after
        )

    def heartbeat_answered(self) -> float:
        """Arrival of the primary path's first HEARTBEAT ACK, seconds after the timeout."""
        return next(one.at for one in self.after if one.text == "HEARTBEAT ACK" and one.path == 0)


def _event(before: Any, after: Any, start: float) -> Event:
    lost = str(after.fate) != "delivered"
    there = (after.time if lost else after.arrival) - start
    here = before.time - start
    if before.direction == "back":
        here, there = there, here
    text = str(before.chunks)
    if before.tsns:
        text = f"DATA {before.tsns[0]}" + (" again" if before.retransmission else "")
    elif text == "SACK":
        text = f"SACK {before.cumulative_ack:.0f}"
    path = 0 if str(before.link).startswith("primary") else 1
    return Event(here, there, path, before.direction == "forward", lost, text)


#: The events that the paper describes, in its order; those of a step are about simultaneous. "P"
#: and "A" are the primary and the alternate path, "x" marks a loss, "..." is normal transfer.
DESCRIBED: dict[tuple[int, int], tuple[tuple[str, ...], ...]] = {
    (1, 0): (("P HEARTBEAT", "A DATA 1"), ("P HEARTBEAT ACK",), ("P DATA 2",), ("P SACK 2",)),
    (1, 1): (("A DATA 1", "P DATA 2"), ("P SACK 2",), ("P DATA 3", "P DATA 4")),
    (2, 0): (
        ("P HEARTBEAT", "A DATA 1 x"),
        ("P HEARTBEAT ACK",),
        ("P DATA 2",),
        ("P SACK 0",),
        ("P DATA 3",),
        ("...",),
        ("P DATA 1",),
    ),
    (2, 1): (
        ("A DATA 1 x", "P DATA 2"),
        ("P SACK 0",),
        ("P DATA 3",),
        ("P SACK 0",),
        ("P DATA 4",),
        ("...",),
        ("P DATA 1",),
    ),
    (3, 0): (
        ("P HEARTBEAT x", "A DATA 1"),
        ("A SACK 1",),
        ("A DATA 2", "A DATA 3"),
        ("...",),
        ("P HEARTBEAT",),
        ("...",),
        ("P HEARTBEAT ACK",),
    ),
    (3, 1): (("A DATA 1", "P DATA 2 x"), ("A SACK 1",), ("A DATA 2", "P HEARTBEAT")),
    (4, 0): (
        ("P HEARTBEAT x", "A DATA 1 x"),
        ("P DATA 1",),
        ("P SACK 1",),
        ("P DATA 2", "P DATA 3"),
    ),
    (4, 1): (
        ("A DATA 1 x", "P DATA 2 x"),
        ("P DATA 1",),
        ("P SACK 1",),
        ("A DATA 2", "P DATA 3"),
    ),
}


def described(number: int, pmr: int) -> int:
    """Number of events that the paper describes."""
    return sum(len(step) for step in DESCRIBED[number, pmr] if step != ("...",))


def met(trace: Trace, number: int, pmr: int) -> tuple[int, str]:
    """Number of described events that occur in their order, and the deviation after them."""
    # Ignore the alternate's probe after its own timeout, which the paper does not mention.
    seen = [_short(one) for one in trace.after if not _is_probe_of_alternate(one)]
    count, place = 0, 0
    for step in _joined(DESCRIBED[number, pmr]):
        skips, wanted = step
        if skips:
            while place < len(seen) and seen[place] not in wanted and _is_normal(seen[place]):
                place += 1
        found = seen[place : place + len(wanted)]
        common = sum(one in wanted for one in found)
        count += common
        if common < len(wanted):
            instead = next((one for one in found if one not in wanted), "nothing")
            if "SHUTDOWN" in instead:
                instead = "the end of the transfer"
            return count, f"{instead} in place of {' and '.join(set(wanted) - set(found))}"
        place += len(wanted)
    return count, ""


def _joined(steps: Sequence[tuple[str, ...]]) -> list[tuple[bool, tuple[str, ...]]]:
    """Each step, with whether normal transfer precedes it."""
    before = [("",), *steps]
    return [
        (previous == ("...",), step)
        for previous, step in zip(before, steps, strict=False)
        if step != ("...",)
    ]


def _short(event: Event) -> str:
    path = "PA"[event.path]
    return f"{path} {event.text.removesuffix(' again')}" + (" x" if event.lost else "")


def _is_probe_of_alternate(event: Event) -> bool:
    return event.path == 1 and event.text.startswith("HEARTBEAT")


def _is_normal(text: str) -> bool:
    """Whether this is new data or a SACK; retransmissions of TSN 1 are not."""
    return ("DATA" in text and not text.endswith("DATA 1")) or "SACK" in text


def timeouts(**more: Any) -> tuple[Timeout, ...]:
    """All four scenarios with both thresholds and both procedures."""
    return tuple(
        replace(Timeout(number, pmr, procedures), **more)
        for procedures in PROCEDURES
        for number in (1, 2, 3, 4)
        for pmr in (0, 1)
    )


def events_frame(traces: dict[Timeout, Trace], until: float) -> pd.DataFrame:
    """A row for each packet that the sender sends or receives before `until`.

    Columns: scenario, pmr, procedures, `at` (seconds after the timeout), path, `to_peer`, `lost`,
    `packet`, and of the run: `described` and `met` events, `instead`.
    """
    rows = []
    for setting, trace in traces.items():
        count, instead = met(trace, setting.number, setting.pmr)
        of_run = {
            **setting.labels(),
            "described": described(setting.number, setting.pmr),
            "met": count,
            "instead": instead,
        }
        rows += [
            {
                **of_run,
                "at": one.at,
                "path": one.path,
                "to_peer": one.to_peer,
                "lost": one.lost,
                "packet": one.text,
            }
            for one in trace.after
            if one.at < until
        ]
    return pd.DataFrame(rows)
