"""Single runs, and many of them at once with everything that they gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from polypath import _core
from polypath.result import Result
from polypath.scenario import Scenario

#: Version of the engine with a fingerprint of its sources: the same string, the same results.
engine_version: str = _core.ENGINE


def simulate(
    scenario: Scenario, *, seed: int | None = None, series: bool | str | None = None
) -> Result:
    """Runs a scenario to its end.

    Args:
        scenario: What to run.
        seed: Another root of all randomness than the scenario's, from 0 to 2**64 - 1.
        series: `True` samples every path's variables whenever one changes, a span of time such as
            "50 ms" samples at that interval, `None` does what the scenario says.

    Raises:
        SimulationError: An invariant did not hold: a bug in polypath.
    """
    outcome = _core.run(scenario._inner, seed, _wanted(series))
    return Result(scenario, outcome)


def simulate_many(
    scenarios: Iterable[Scenario | tuple[Scenario, int]],
    *,
    series: bool | str | None = None,
    threads: int | None = None,
    done: Callable[[int, int], object] | None = None,
) -> list[Result | Exception]:
    """Runs scenarios in parallel, in one process; results in the order of the scenarios.

    All results stay in memory: :func:`polypath.sweep` is for more than that.

    Args:
        scenarios: What to run, each alone or with another seed.
        series: As in :func:`simulate`.
        threads: Runs at a time; as many as there are cores by default.
        done: Called after each run with how many are finished and how many there are.

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
