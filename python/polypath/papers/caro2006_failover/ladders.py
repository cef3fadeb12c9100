"""Figure 8 as time-sequence diagrams of the simulator's packets, and F16: traces and equations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.figures import COLOURS
from polypath.papers.caro2006_failover import equations
from polypath.papers.caro2006_failover.scenarios import (
    DESCRIBED,
    PROCEDURES,
    RTO,
    SACK_DELAY,
    SSTHRESH,
    Event,
    Timeout,
    Trace,
    described,
    events_frame,
    met,
    timeouts,
)
from polypath.papers.registry import Claim, Figure
from polypath.papers.runs import Grid, NotThereError, Runs, Source
from polypath.papers.verdict import Check, Finding, Unit, about
from polypath.statistics import Interval, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Chart

#: Length of a diagram, seconds after the timeout.
_SHOWN = 2.6
#: Duration of a round trip with a packet of 1500 bytes, seconds.
ROUND_TRIP = 0.0915
#: RTO of the primary for the second timeout in a row, seconds.
_SECOND_RTO = 2 * RTO
_NAMES = {"ns2": "ns-2's procedures", "rfc9260": "RFC 9260's procedures"}
#: Gains are measured with announced windows that do not limit the sender, as in the equations.
_GAINS = tuple(
    Timeout(number, pmr, procedures, unlimited=True)
    for number, procedures in ((3, "ns2"), (4, "rfc9260"))
    for pmr in (0, 1)
)
#: Every packet is acknowledged at once: no SACK is delayed.
_UNDELAYED = tuple(Timeout(3, pmr, "ns2", unlimited=True, sack_every=1) for pmr in (0, 1))


#: Causes of deviations from the described events, from the traces.
_CAUSES = (
    "the module sends new data only in answer to a packet: TSN 2 does not leave at the timeout",
    "by the standard TSN 1 (or 2) is fast retransmitted before its timer expires: four reports",
    "below: first packet that differs; P and A are primary and alternate path, x is a loss",
)


def _trace(source: Source, setting: Timeout) -> Trace:
    results = source.results(setting)
    if not results:
        raise NotThereError(f"no trace of {setting}")
    return Trace(results[0])


def _gain(source: Source, settings: tuple[Timeout, Timeout], until: float | None) -> Interval:
    """Packets delivered with PMR 0 beyond those with PMR 1.

    Counts until a time after the timeout, or until the primary path answers a heartbeat.
    """
    early, late = (_trace(source, one) for one in settings)
    end = early.heartbeat_answered() if until is None else until
    return interval([early.delivered(end) - late.delivered(end)])


def _model(waiting: float, b: int) -> float:
    """(d - 1) by the equations; a round trip that has begun counts."""
    return equations.packets(math.ceil(waiting), SSTHRESH, b) - 1


def _f16(source: Source) -> Finding:
    """Judges the order of events by both procedures, and the gain by the equations' assumptions."""
    traces = {one: _trace(source, one) for one in timeouts()}
    checks, notes = [], []
    for procedures in PROCEDURES:
        own = {one: trace for one, trace in traces.items() if one.procedures == procedures}
        found = {one: met(trace, one.number, one.pmr) for one, trace in own.items()}
        total = sum(described(*key) for key in DESCRIBED)
        label = f"events in the order described, {_NAMES[procedures]}"
        count = interval([sum(number for number, _ in found.values())])
        checks.append(Check(label, count, total, total, Unit.COUNT, exact=True))
        notes += [f"{one}, {_NAMES[procedures]}: {why}" for one, (_, why) in found.items() if why]
    for number in (1, 2):
        early, late = (traces[Timeout(number, pmr, "rfc9260")] for pmr in (0, 1))
        first = interval([early.sent(ROUND_TRIP - 0.01) - late.sent(ROUND_TRIP - 0.01)])
        label = f"scenario {number}: packets of PMR 0 beyond PMR 1 in the first round trip"
        checks.append(Check(label, first, -1, -1, Unit.COUNT, exact=True))
    checks += _gains(source)
    return Finding(tuple(checks), (*_CAUSES, *notes, *_printed()))


def _gains(source: Source) -> list[Check]:
    rtt = ROUND_TRIP
    third = equations.round_trips(_SECOND_RTO, rtt, rtt)
    # The first packet over a path is alone, so its SACK is delayed.
    delayed = equations.round_trips(_SECOND_RTO - SACK_DELAY, rtt, rtt)
    fourth = equations.round_trips_between_the_timeouts(_SECOND_RTO - SACK_DELAY, RTO, rtt)
    early, late = (_trace(source, one) for one in _GAINS[2:])
    alone = interval([early.delivered(_SECOND_RTO) - 1])
    against = interval([early.delivered(_SECOND_RTO) - late.delivered(_SECOND_RTO)])
    return [
        _about(
            "scenario 3: gain, each packet acknowledged, b = 1",
            _gain(source, (_UNDELAYED[0], _UNDELAYED[1]), None),
            _model(third, 1),
        ),
        _about(
            "scenario 3: gain, delayed acknowledgements, b = 2",
            _gain(source, (_GAINS[0], _GAINS[1]), None),
            _model(delayed, 2),
        ),
        _about("scenario 4: gain over one packet of PMR 1", alone, _model(fourth, 2)),
        Check(
            "scenario 4: gain over PMR 1",
            against,
            0,
            _model(fourth, 2) * 1.1,
            Unit.COUNT,
            exact=True,
        ),
    ]


def _about(label: str, measured: Interval, stated: float) -> Check:
    return about(f"{label}; d - 1 = {stated:.0f}", measured, stated, unit=Unit.COUNT, exact=True)


def _printed() -> tuple[str, str]:
    """Notes on the results of the equations as they are printed."""
    third = equations.round_trips(_SECOND_RTO, ROUND_TRIP, ROUND_TRIP)
    fourth = equations.round_trips_after_both_are_lost(_SECOND_RTO, RTO, ROUND_TRIP)
    return (
        f"(1) leaves out the {SACK_DELAY * 1000:.0f} ms for which the acknowledgement of the first "
        f"packet waits: as printed d - 1 = {equations.packets(third, SSTHRESH) - 1:.0f}",
        "(10) as printed adds the two RTOs, which gives d - 1 = "
        f"{equations.packets(fourth, SSTHRESH) - 1:.0f}; PMR 1 is blocked for their difference",
    )


CLAIM = Claim("F16", ("8",), _f16)


def _draw(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    from matplotlib.figure import Figure as Canvas

    traces = {one: _trace(runs, one) for one in timeouts() if one in wanted.traced}
    # Two diagrams a row, so that a printed page has their fonts in their size.
    figure = Canvas(figsize=(6.6, 34), layout="constrained")
    graphs = figure.subplots(8, 2)
    figure.suptitle(
        "Packets after the timeout of TSN 1 in their order, with their times in seconds",
        fontsize="medium",
    )
    lines = itertools.product(reversed(PROCEDURES), (0, 1), (1, 2, 3, 4))
    for axes, (procedures, pmr, number) in zip(graphs.flat, lines, strict=True):
        _ladder(axes, rungs(traces[Timeout(number, pmr, procedures)]))
        axes.set_title(f"scenario {number}, PMR {pmr}\n{_NAMES[procedures]}", fontsize="small")
    return events_frame(traces, _SHOWN), figure


#: Packets of undisturbed transfer that are shown before the rest is one line, and lines of a
#: diagram.
_BEFORE_GAP, _RUNGS = 3, 14
_KINDS = (("DATA", COLOURS[0]), ("SACK", COLOURS[1]), ("HEARTBEAT", COLOURS[2]))


def rungs(trace: Trace) -> list[Event | tuple[float, int]]:
    """The lines of a diagram: single packets, or time and number of those that are left out.

    Left out are new data and acknowledgements from the fourth on: transfer goes on undisturbed.
    """
    found: list[Event | tuple[float, int]] = []
    normal = 0
    for event in trace.after:
        if event.at >= _SHOWN:
            break
        usual = not event.lost and (
            event.text.startswith("SACK")
            or (event.text.startswith("DATA") and not event.text.endswith("again"))
        )
        normal = normal + 1 if usual else 0
        if normal <= _BEFORE_GAP:
            found.append(event)
        elif isinstance(found[-1], tuple):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((event.at, 1))
    return found[:_RUNGS]


def _ladder(axes: Axes, lines: Sequence[Event | tuple[float, int]]) -> None:
    """Draws the sender in the middle, the peer's primary address left, the alternate right.

    One line for each packet: outwards if the sender sends it, inwards if it receives it; a lost one
    ends in a cross. Times are those at the sender.
    """
    for place, line in enumerate(lines):
        if isinstance(line, tuple):
            at, count = line
            axes.text(0, place, f"... {count} packets of transfer ...", **_CENTRED, color="0.4")
            axes.text(-1.52, place, f"{at:.2f}", fontsize=7, va="center", color="0.4")
            continue
        side = -1 if line.path == 0 else 1
        colour = next((c for kind, c in _KINDS if line.text.startswith(kind)), "0.3")
        tip = (0.6 if line.lost else 1.0) * side
        ends = ((0.0, place), (tip, place)) if line.to_peer else ((tip, place), (0.0, place))
        style = {"arrowstyle": "-" if line.lost else "->", "color": colour, "linewidth": 1.2}
        axes.annotate("", xy=ends[1], xytext=ends[0], arrowprops=style)
        if line.lost:
            axes.plot([tip], [place], marker="x", color=colour, markersize=6)
        axes.text(0.5 * side, place - 0.12, line.text, **{**_CENTRED, "va": "bottom"})
        axes.text(-1.52, place, f"{line.at:.2f}", fontsize=7, va="center", color="0.4")
    for column in (-1, 0, 1):
        axes.axvline(column, color="0.6", linewidth=0.8, zorder=0)
    axes.set_xticks([-1, 0, 1], ["primary", "sender", "alternate"], fontsize="small")
    axes.set_yticks([])
    axes.set_xlim(-1.55, 1.15)
    axes.set_ylim(_RUNGS - 0.4, -0.9)


_CENTRED: dict[str, Any] = {"fontsize": 7, "ha": "center", "va": "center"}


figure_8 = Figure(
    "8",
    "What follows the timeout of TSN 1: four scenarios, PMR 0 and 1",
    lambda _full: Grid((), 1, traced=(*timeouts(), *_GAINS, *_UNDELAYED)),
    _draw,
)
