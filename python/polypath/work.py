"""The work of a worker, in a module that any process can import: a run gives a row."""

from __future__ import annotations

import time
from collections.abc import Sequence

from polypath.scenario import Scenario
from polypath.simulation import Backend, engine, execute
from polypath.store import Row


def runs(scenario: Scenario, seeds: Sequence[int], backend: Backend = "polypath") -> list[Row]:
    """Runs of one scenario, one after the other: a row for each seed."""
    return [run(scenario, seed, backend) for seed in seeds]


def run(scenario: Scenario, seed: int, backend: Backend = "polypath") -> Row:
    """One run as a row; a run that fails gives a row with the reason."""
    start = time.perf_counter()
    row: Row = {
        "key": scenario.key,
        "seed": seed,
        "engine": engine(backend),
        "status": "ok",
        "reason": None,
    }
    try:
        row |= execute(scenario, seed, backend).metrics
    except Exception as error:  # any error: the sweep continues, and the row has the reason
        row |= failure(error)
    row["wall"] = time.perf_counter() - start
    return row


def failure(error: BaseException) -> Row:
    """The values in the row of a failed run."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    return {"status": "failed", "reason": f"{kind}: {text}" if text else kind, "complete": False}
