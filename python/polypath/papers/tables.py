"""Builds the tidy frame behind a figure from runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from polypath.papers.reference import Sample
from polypath.papers.runs import TRANSFER_TIME, NotImplementedYetError, Runs, Setting
from polypath.statistics import interval


def points_frame(
    runs: Runs,
    settings: Iterable[Setting],
    ns2: Mapping[Setting, Sample] | None = None,
    metric: str = TRANSFER_TIME,
) -> pd.DataFrame:
    """A row for each point.

    Columns: those of the point; `n` (runs with a value), `unfinished` (runs without), `mean`,
    `half_width`, `low` and `high` of the 90 % interval (unit of the metric); `ns2` and `ns2_n`, the
    mean of the reference results at the very same point; `reason`, why the engine rejects it.

    Raises:
        NotImplementedYetError: The engine rejects every point.
    """
    rows = []
    for setting in settings:
        row: dict[str, Any] = {**setting.labels(), **_measured(runs, setting, metric)}
        theirs = (ns2 or {}).get(setting)
        if theirs is not None:
            row |= {"ns2": theirs.mean, "ns2_n": theirs.n}
        rows.append(row)
    if rows and all(row["reason"] for row in rows):
        raise NotImplementedYetError(rows[0]["reason"])
    return pd.DataFrame(rows)


def _measured(runs: Runs, setting: Setting, metric: str) -> dict[str, Any]:
    if setting not in runs.frames and setting in runs.unknown:
        return {"n": 0, "mean": math.nan, "half_width": math.nan, "reason": runs.unknown[setting]}
    values = runs.frame(setting)[metric].astype(float)
    estimate = interval(values)
    return {
        "n": estimate.n,
        "unfinished": int(values.isna().sum()),
        "mean": estimate.mean,
        "half_width": estimate.half_width,
        "low": estimate.low,
        "high": estimate.high,
        "reason": "",
    }
