"""The differential test: the same scenario in our simulator and in ns-2, packet by packet."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from dataclasses import replace

from polypath import _core
from polypath.ns2.comparison import TOLERANCE, Comparison, Difference, differ
from polypath.ns2.differences import accepted
from polypath.ns2.mapping import Setup, setup
from polypath.ns2.run import run
from polypath.ns2.view import Hop, View, view
from polypath.scenario import Scenario

#: Limit of ns-2's processor time in seconds: a script takes one, 80 MiB take ten.
PATIENCE = 60


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
    theirs = _in_ns2(plan, patience)
    if plan.changes and math.isfinite(theirs.start - ours.start):
        # The handshakes have other sizes: faults have to be as long after the first DATA.
        later = theirs.start - ours.start
        changes = tuple(replace(change, at=change.at + later) for change in plan.changes)
        plan = replace(plan, changes=changes)
        theirs = _in_ns2(plan, patience)
    return side_by_side(scenario, plan, ours, theirs)


def _in_ns2(plan: Setup, patience: int) -> View:
    found = run(plan, series=True, patience=patience)
    return view(found.packets, found.series, len(plan.messages), found.packets.end)


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
    return replace(comparison, accepted=accepted(plan, comparison))


def _first_difference(
    link: str, here: list[Hop], there: list[Hop], end: float
) -> Difference | None:
    for a, b in zip(here, there, strict=False):
        what = differ(a, b)
        if what:
            return Difference(link, a, b, what)
    shorter = min(len(here), len(there))
    # Ignore packets that one side sends after the other side's end.
    for more in (here, there):
        if len(more) > shorter and more[shorter].time < end - TOLERANCE:
            ours, theirs = (more[shorter], None) if more is here else (None, more[shorter])
            return Difference(link, ours, theirs, "one side sends a packet more")
    return None
