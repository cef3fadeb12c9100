"""Figure 8 as time-sequence diagrams of the simulator's packets, and F16: traces and equations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from polypath.figures import COLOURS
from polypath.papers.caro2006_failover import equations
from polypath.papers.caro2006_failover.scenarios import (
    DESCRIBED,
    PROCEDURES,
    RTO,
    SACK_DELAY,
    SSTHRESH,
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
    figure = Canvas(figsize=(11, 17), layout="constrained")
    graphs = figure.subplots(4, 4, sharey=True)
    figure.suptitle("After the timeout of TSN 1", fontsize="medium")
    lines = [(procedures, pmr) for procedures in reversed(PROCEDURES) for pmr in (0, 1)]
    for line, (procedures, pmr) in zip(graphs, lines, strict=True):
        for axes, number in zip(line, (1, 2, 3, 4), strict=True):
            _ladder(axes, traces[Timeout(number, pmr, procedures)])
            axes.set_title(f"scenario {number}, PMR {pmr}\n{_NAMES[procedures]}", fontsize="small")
        line[0].set_ylabel("time after the timeout [s]")
    return events_frame(traces, _SHOWN), figure


def _ladder(axes: Axes, trace: Trace) -> None:
    """Draws the sender in the middle, the peer's primary address left, the alternate right.

    Packets from the sender are drawn outwards, packets to it inwards; lost packets end in a cross.
    """
    from matplotlib.collections import LineCollection

    shown = [one for one in trace.after if one.at < _SHOWN]
    named: set[str] = set()
    last = -math.inf
    for kind, colour in (("DATA", COLOURS[0]), ("SACK", COLOURS[1]), ("HEARTBEAT", COLOURS[2])):
        own = [one for one in shown if one.text.startswith(kind)]
        lines = []
        for one in own:
            side = -1 if one.path == 0 else 1
            reach = 0.6 * side if one.lost else side
            ends = [(0.0, one.at), (reach, one.there)]
            lines.append(ends)
            if one.lost:
                axes.plot([reach], [one.there], marker="x", color=colour, markersize=5)
        axes.add_collection(LineCollection(lines, colors=[colour], linewidths=0.7))
    for one in shown:
        # Label the first packets, and each packet after a pause.
        if one.at - last > 0.04 and one.text not in named and len(named) < 12:
            ha = "right" if one.path == 0 else "left"
            where = (-0.05 if one.path == 0 else 0.05, one.at)
            axes.annotate(one.text, where, fontsize=5, ha=ha, va="bottom")
            named.add(one.text)
            last = one.at
    for place in (-1, 0, 1):
        axes.axvline(place, color="0.5", linewidth=0.8)
    axes.set_xticks([-1, 0, 1], ["primary", "sender", "alternate"], fontsize="x-small")
    axes.set_xlim(-1.15, 1.15)
    axes.set_ylim(_SHOWN, -0.1)


figure_8 = Figure(
    "8",
    "What follows the timeout of TSN 1: four scenarios, PMR 0 and 1",
    lambda _full: Grid((), 1, traced=(*timeouts(), *_GAINS, *_UNDELAYED)),
    _draw,
)
