"""Two runs of a scenario side by side: one of polypath, one of ns-2."""

from __future__ import annotations

from dataclasses import dataclass

from polypath.ns2.view import Hop, State, View
from polypath.scenario import Scenario

#: Seconds by which times may differ: ns-2 writes microseconds, and its clock is a double.
TOLERANCE = 5e-6
#: Share of the time by which times may differ as well. polypath's round-trip times are whole
#: nanoseconds, so that an RTO is up to 50 ns too short, and each timeout doubles that.
_DRIFT = 1e-7
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
            (index for index, (a, b) in enumerate(zip(ours, theirs, strict=False)) if differ(a, b)),
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
            mark = "*" if a is None or b is None or differ(a, b) else " "
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


def differ(ours: Hop, theirs: Hop) -> str:
    """Describes how two packets differ; empty if they do not."""
    if ours.content != theirs.content:
        return "another packet"
    allowed = TOLERANCE + _DRIFT * theirs.time
    if abs(ours.time - theirs.time) > allowed:
        return f"another time ({(ours.time - theirs.time) * 1e6:+.0f} us)"
    settled = "sent" not in (ours.fate, theirs.fate)
    if settled and ours.fate != theirs.fate:
        return "another fate"
    if abs(ours.arrival - theirs.arrival) > allowed:
        return "another arrival"
    return ""
