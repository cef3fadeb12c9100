"""The differential test: the same scenario in our simulator and in ns-2, packet by packet."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from dataclasses import dataclass, replace

from polypath import _core
from polypath.ns2 import differences
from polypath.ns2.mapping import Setup, setup
from polypath.ns2.run import run
from polypath.ns2.view import Hop, State, View, view
from polypath.scenario import Scenario

#: Seconds by which times may differ: ns-2 writes microseconds, and its clock is a double.
TOLERANCE = 5e-6
#: Limit of ns-2's processor time in seconds: a script takes one, 80 MiB take ten.
PATIENCE = 60
#: Packets shown before and after the first that differs.
_BEFORE, _AFTER = 8, 5
_WIDTH = 56


@dataclass(frozen=True)
class Difference:
    """The first packet that differs: its link, and the packet on each side, if any."""

    link: str
    ours: Hop | None
    theirs: Hop | None
    what: str

    @property
    def time(self) -> float:
        """Time of the earlier packet, in seconds from the first DATA."""
        return min(hop.time for hop in (self.ours, self.theirs) if hop is not None)


@dataclass(frozen=True)
class Comparison:
    """Two runs of a scenario side by side."""

    scenario: Scenario
    ours: View
    theirs: View
    #: Number of packets that agree, and the largest time difference among them in seconds.
    packets: int
    largest: float
    difference: Difference | None
    #: Name of the accepted class of the difference, if any.
    accepted: str | None

    @property
    def agrees(self) -> bool:
        """Whether no packet differs."""
        return self.difference is None

    def __str__(self) -> str:
        if self.difference is None:
            return (
                f"{self.packets} packets agree to the end, largest difference "
                f"{self.largest * 1e6:.0f} us"
            )
        found = self.difference
        ours = found.ours or "nothing"
        theirs = found.theirs or "nothing"
        named = f" [{self.accepted}]" if self.accepted else ""
        return (
            f"{self.packets} packets agree, then at {found.time:.6f} s on {found.link} "
            f"{found.what}{named}: polypath {ours} | ns-2 {theirs}"
        )

    def report(self) -> str:
        """The packets and path states around the first packet that differs."""
        if self.difference is None:
            return str(self)
        lines = [str(self), "", *self._packets(), "", *self._states()]
        return "\n".join(lines)

    def _packets(self) -> list[str]:
        """Sent packets, side by side; `*` marks the lines that differ."""
        assert self.difference is not None
        ours, theirs = (sorted(v.sent, key=_order) for v in (self.ours, self.theirs))
        time = self.difference.time
        at = next(
            (
                index
                for index, (a, b) in enumerate(zip(ours, theirs, strict=False))
                if _differ(a, b)
            ),
            min(len(ours), len(theirs)),
        )
        # Packets that are sent alike may differ after their first link.
        at = min(at, next((i for i, hop in enumerate(ours) if hop.time > time), len(ours)))
        rows = [f"  {'polypath':{_WIDTH}} ns-2"]
        for index in range(max(at - _BEFORE, 0), at + _AFTER + 1):
            pair = [side[index] if index < len(side) else None for side in (ours, theirs)]
            if pair == [None, None]:
                break
            a, b = pair
            mark = "*" if a is None or b is None or _differ(a, b) else " "
            left, right = ("" if hop is None else str(hop) for hop in pair)
            rows.append(f"{mark} {left:{_WIDTH}} {right}")
        return rows

    def _states(self) -> list[str]:
        assert self.difference is not None
        time = self.difference.time
        lines = ["state of the sender's paths (cwnd, ssthresh, in flight in bytes; seconds)"]
        for when, after in (("before", False), ("after", True)):
            for name, side in (("polypath", self.ours), ("ns-2", self.theirs)):
                lines += [f"  {when:6} {name:8} {_shown(s)}" for s in side.state(time, after=after)]
        return lines


def _shown(state: State) -> str:
    return (
        f"path {state.path}: cwnd {state.cwnd} ssthresh {state.ssthresh} "
        f"in flight {state.in_flight} rto {state.rto:.3f} srtt {state.srtt:.3f} "
        f"errors {state.errors}"
    )


def _order(hop: Hop) -> tuple[float, str]:
    return round(hop.time, 5), hop.link


def compare(scenario: Scenario, seed: int | None = None, *, patience: int = PATIENCE) -> Comparison:
    """Runs a scenario in polypath and in ns-2 and finds the first packet that differs.

    Args:
        scenario: The scenario to run.
        seed: Replaces the scenario's seed.
        patience: Limit of ns-2's processor time, in seconds.

    Raises:
        ScenarioError: ns-2 does not support the scenario.
        Ns2Error: ns-2 is not installed, or ended with an error.
        NoAnswerError: ns-2 exceeded the limit.
    """
    plan = setup(scenario, seed)
    for warning in plan.warnings:
        warnings.warn(warning, stacklevel=2)
    outcome = _core.run(scenario._inner, seed, "changes", packets=True)
    trace = outcome.packets
    assert trace is not None
    ours = view(trace, outcome.series, len(plan.messages), math.inf)
    there = run(plan, series=True, patience=patience)
    theirs = view(there.packets, there.series, len(plan.messages), there.packets.end)
    return side_by_side(scenario, plan, ours, theirs)


def side_by_side(scenario: Scenario, plan: Setup, ours: View, theirs: View) -> Comparison:
    """Finds the first packet that differs between two runs."""
    links: dict[str, tuple[list[Hop], list[Hop]]] = defaultdict(lambda: ([], []))
    for side, hops in enumerate((ours.hops, theirs.hops)):
        for hop in hops:
            links[hop.link][side].append(hop)
    end = min(ours.end, theirs.end)
    first: Difference | None = None
    for link, (here, there) in links.items():
        found = _first_difference(link, here, there, end)
        if found is not None and (first is None or found.time < first.time):
            first = found
    until = end if first is None else first.time
    pairs = [
        (a, b)
        for here, there in links.values()
        for a, b in zip(here, there, strict=False)
        if max(a.time, b.time) < until
    ]
    largest = max((abs(a.time - b.time) for a, b in pairs), default=0.0)
    comparison = Comparison(
        scenario=scenario,
        ours=ours,
        theirs=theirs,
        packets=sum(a.leaves for a, _ in pairs),
        largest=largest,
        difference=first,
        accepted=None,
    )
    if first is None:
        return comparison
    return replace(comparison, accepted=differences.accepted(plan, comparison))


def _first_difference(
    link: str, here: list[Hop], there: list[Hop], end: float
) -> Difference | None:
    for a, b in zip(here, there, strict=False):
        what = _differ(a, b)
        if what:
            return Difference(link, a, b, what)
    shorter = min(len(here), len(there))
    # Ignore packets that one side sends after the other side's end.
    for more in (here, there):
        if len(more) > shorter and more[shorter].time < end - TOLERANCE:
            ours, theirs = (more[shorter], None) if more is here else (None, more[shorter])
            return Difference(link, ours, theirs, "one side sends a packet more")
    return None


def _differ(ours: Hop, theirs: Hop) -> str:
    """Describes how two packets differ; empty if they do not."""
    if ours.content != theirs.content:
        return "another packet"
    if abs(ours.time - theirs.time) > TOLERANCE:
        return f"another time ({(ours.time - theirs.time) * 1e6:+.0f} us)"
    settled = "sent" not in (ours.fate, theirs.fate)
    if settled and ours.fate != theirs.fate:
        return "another fate"
    if abs(ours.arrival - theirs.arrival) > TOLERANCE:
        return "another arrival"
    return ""
