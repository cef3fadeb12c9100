"""Builds the tidy frame of a sweep from the rows of its runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike

import numpy as np
import pandas as pd

from polypath.metrics import METRICS, rank
from polypath.scenario import Scenario, Value, labels, varying
from polypath.store import Row, load_rows

#: Columns in front of the metrics; columns that are not results (the duration of a run) are only
#: in the store.
_FRONT = ("key", "seed", "engine", "status", "reason")
_NOT_RESULTS = ("wall",)


def frame_of_sweep(
    scenarios: Sequence[Scenario], runs: Mapping[str, Sequence[Row]]
) -> pd.DataFrame:
    """A row for each run, in the order of scenarios and seeds.

    Args:
        scenarios: All scenarios of the sweep.
        runs: The rows of each scenario, by its key.
    """
    columns = varying(scenarios)
    rows: list[Row] = []
    for index, (scenario, label) in enumerate(zip(scenarios, labels(scenarios), strict=True)):
        own: dict[str, Value] = {key: values[index] for key, values in columns.items()}
        rows += [{"scenario": label, **own, **row} for row in runs.get(scenario.key, ())]
    return frame_of_rows(rows, front=("scenario", "key", *columns))


def load(folder: str | PathLike[str], engine: str | None = None) -> pd.DataFrame:
    """Loads all runs in a folder of results, of one engine or of all engines.

    The columns are those of :func:`polypath.sweep` without the scenario's name and the values that
    differ between scenarios: the folder has these in ``scenario-KEY.toml``.

    Raises:
        OSError: There is no such folder, or it cannot be read.
    """
    return frame_of_rows(load_rows(folder, engine))


def frame_of_rows(rows: Sequence[Row], front: Sequence[str] = ("key",)) -> pd.DataFrame:
    """A column for each value and metric; rows without a value have NaN (or None, if text)."""
    front = [*front, *(name for name in _FRONT if name not in front)]
    known = {name for row in rows for name in row} | set(METRICS)
    metrics = sorted(known - set(front) - set(_NOT_RESULTS), key=rank)
    return pd.DataFrame({name: _column(name, rows) for name in (*front, *metrics)})


def _column(name: str, rows: Sequence[Row]) -> pd.Series:
    values = [row.get(name) for row in rows]
    if name == "seed":
        return pd.Series(np.array(values, dtype=np.uint64))
    if name == "complete":
        return pd.Series([bool(value) for value in values], dtype=bool)
    types = {type(v) for v in values if v is not None and not (type(v) is float and math.isnan(v))}
    if types == {int} and None not in values:
        return pd.Series(values, dtype=np.int64)
    if types <= {int, float}:
        if name in ("reason", "end"):
            return pd.Series(values, dtype=object)
        return pd.Series([math.nan if v is None else v for v in values], dtype=float)
    return pd.Series(values, dtype=object)
