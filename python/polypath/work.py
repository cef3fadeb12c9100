"""What a worker does: one run to one row. Stands alone, so that any process can import it."""

from __future__ import annotations

import time

from polypath.scenario import Scenario
from polypath.simulate import engine_version, simulate
from polypath.store import Row


def run(scenario: Scenario, seed: int) -> Row:
    """One run as a row. One that fails is a row too, with its reason."""
    start = time.perf_counter()
    row: Row = {
        "key": scenario.key,
        "seed": seed,
        "engine": engine_version,
        "status": "ok",
        "reason": None,
    }
    try:
        row |= simulate(scenario, seed=seed).metrics
    except Exception as error:  # whatever it is: the sweep goes on, and the row tells
        row |= failure(error)
    row["wall"] = time.perf_counter() - start
    return row


def failure(error: BaseException) -> Row:
    """What a row says of a run that failed."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    return {"status": "failed", "reason": f"{kind}: {text}" if text else kind, "complete": False}
