"""Single runs, and many runs at once with their complete results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from polypath import _core
from polypath.engine import own_policies
from polypath.ns2 import run as ns2
from polypath.ns2.mapping import setup
from polypath.result import Result
from polypath.scenario import Scenario

#: Version of the engine with a fingerprint of its sources: the same string, the same results.
#: A simulator with policies of its own (see ``docs/own-policy.md``) adds a digest of its module.
engine_version: str = _core.ENGINE + own_policies()

#: The simulator: our own, or ns-2 with its SCTP module (see ``docs/ns2.md``).
Backend: TypeAlias = Literal["polypath", "ns2"]


def simulate(
    scenario: Scenario,
    *,
    seed: int | None = None,
    series: bool | str | None = None,
    packets: bool = False,
    backend: Backend = "polypath",
) -> Result:
    """Runs a scenario to its end.

    Args:
        scenario: The scenario to run.
        seed: Replaces the scenario's root of all randomness, from 0 to 2**64 - 1.
        series: `True` samples every path's variables whenever one changes, a span of time such as
            "50 ms" samples at that interval, `None` follows the scenario.
        packets: Keep every packet for :meth:`Result.packets`, which otherwise runs once more.
        backend: "polypath", or "ns2" to run the same scenario in ns-2. Its result has the same
            columns, NaN for values that ns-2 does not report; series are sampled at every change.

    Raises:
        SimulationError: An invariant did not hold: a bug in polypath.
        ScenarioError: The backend does not support the scenario; one line with the key.
        Ns2Error: ns-2 is not installed, or ended with an error.
    """
    if _is_ns2(backend):
        plan = setup(scenario, seed)
        for warning in plan.warnings:
            warnings.warn(warning, stacklevel=2)
        wanted = bool(series) or "series" in scenario.to_dict()
        return Result(scenario, ns2.run(plan, series=wanted))
    outcome = _core.run(scenario._inner, seed, _wanted(series), packets=packets)
    return Result(scenario, outcome)


def engine(backend: Backend) -> str:
    """The version of a backend: its results depend on this, scenario and seed only."""
    return f"ns2+{engine_version}" if _is_ns2(backend) else engine_version


def prepare(scenarios: Iterable[Scenario], backend: Backend) -> None:
    """Checks scenarios before many runs, and warns once.

    Raises:
        ScenarioError: The backend does not support a scenario.
        Ns2Error: ns-2 is not installed.
    """
    if _is_ns2(backend):
        ns2.program()
        for warning in dict.fromkeys(w for one in scenarios for w in setup(one).warnings):
            warnings.warn(warning, stacklevel=3)


def execute(scenario: Scenario, seed: int, backend: Backend) -> Result:
    """A run of many: without samples, packets and warnings."""
    if _is_ns2(backend):
        return Result(scenario, ns2.run(setup(scenario, seed)))
    return simulate(scenario, seed=seed)


def _is_ns2(backend: str) -> bool:
    if backend not in ("polypath", "ns2"):
        raise ValueError(f'backend: found "{backend}"; allowed: "polypath" or "ns2"')
    return backend == "ns2"


def simulate_many(
    scenarios: Iterable[Scenario | tuple[Scenario, int]],
    *,
    series: bool | str | None = None,
    threads: int | None = None,
    done: Callable[[int, int], object] | None = None,
) -> list[Result | Exception]:
    """Runs scenarios in parallel, in one process; results in the order of the scenarios.

    All results stay in memory: use :func:`polypath.sweep` for larger numbers of runs.

    Args:
        scenarios: The scenarios to run, each alone or with another seed.
        series: As in :func:`simulate`.
        threads: Runs at a time; as many as there are cores by default.
        done: Called after each run with the number of finished runs and the number of all runs.

    Returns:
        A result for each run, or the :class:`SimulationError` of one that failed.
    """
    plans = [plan if isinstance(plan, tuple) else (plan, None) for plan in scenarios]
    finished = 0

    def after(_index: int, _outcome: object) -> None:
        nonlocal finished
        finished += 1
        if done is not None:
            done(finished, len(plans))

    jobs = [(scenario._inner, seed) for scenario, seed in plans]
    outcomes = _core.run_many(jobs, _wanted(series), threads, after)
    return [
        outcome if isinstance(outcome, Exception) else Result(scenario, outcome)
        for (scenario, _), outcome in zip(plans, outcomes, strict=True)
    ]


def _wanted(series: bool | str | None) -> str | None:
    if isinstance(series, str):
        return series
    return "changes" if series else None
