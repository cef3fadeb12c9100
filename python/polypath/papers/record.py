"""Recorded results of long runs and of ns-2, as CSV files in the package's data.

``polypath/data/recorded/PAPER/full`` comes from the papers' own grids, ``.../ns2`` from the small
grids in Debian's ns-2. Both were written by ``polypath-lab reproduce``; see the README there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import pandas as pd

from polypath.papers.verdict import Check, Finding, Unit
from polypath.statistics import LEVEL, Interval, Share, rate, share

#: The papers' own grids, and the small ones in Debian's ns-2.
FULL, NS2 = "full", "ns2"
CLAIMS = "claims.csv"
#: Separator of the notes of a statement.
_BETWEEN = " | "
_CHECKS = (
    *("label", "mean", "half_width", "lower", "upper", "n"),
    *("low", "high", "unit", "exact", "stated", "of", "runs", "verdict"),
)


def claims_frame(findings: Iterable[tuple[str, Finding]], engine: str) -> pd.DataFrame:
    """A row for each check of each statement.

    Columns: `id`, `label`; `mean`, `half_width` (90 %) and `n` of the measurement, `lower` and
    `upper` end of the interval of a share, which is not symmetric; `low` and `high` of the allowed
    range, in `unit` (% is a share: -0.21), or of the paper's interval of a `stated` number;
    `exact`; `of`, the number of points of which it is the worst; `runs`, the paper's; `verdict` of
    this check; `notes`, those of the statement; `engine`.
    """
    rows = []
    for id_, finding in findings:
        for check, verdict in zip(finding.checks, finding.verdicts, strict=True):
            estimate = check.measured
            ends = (
                (estimate.lower, estimate.upper)
                if isinstance(estimate, Share)
                else (math.nan, math.nan)
            )
            values = (check.label, estimate.mean, estimate.half_width, *ends, estimate.n)
            bounds = (check.low, check.high, check.unit.value, check.exact)
            judged = (check.stated, check.of, check.runs, str(verdict))
            own = dict(zip(_CHECKS, (*values, *bounds, *judged), strict=True))
            notes = _BETWEEN.join(finding.notes)
            rows.append({"id": id_, **own, "notes": notes, "engine": engine})
    return pd.DataFrame(rows, columns=["id", *_CHECKS, "notes", "engine"])


def findings_of(frame: pd.DataFrame) -> dict[str, Finding]:
    """Rebuilds the findings from a frame of :func:`claims_frame`, by statement."""
    found = {}
    for id_, rows in frame.groupby("id", sort=False):
        records = rows.to_dict("records")
        notes = records[0]["notes"]
        told = () if pd.isna(notes) else tuple(str(notes).split(_BETWEEN))
        found[str(id_)] = Finding(tuple(_check(record) for record in records), told)
    return found


def _check(row: dict[Any, Any]) -> Check:
    mean, half_width, low, high = (
        float(row[name]) for name in ("mean", "half_width", "low", "high")
    )
    # Tables without a share may lack these columns.
    lower, upper = (float(row.get(name, math.nan)) for name in ("lower", "upper"))
    known = (mean, half_width, LEVEL, int(row["n"]))
    measured = Interval(*known) if math.isnan(lower) else Share(*known, lower, upper)
    unit = Unit.COUNT if pd.isna(row["unit"]) else Unit(row["unit"])
    exact = bool(row["exact"])
    # Older tables lack these columns: their ranges are those of older judgements.
    stated, of, runs = float(row.get("stated", math.nan)), row.get("of", 1), row.get("runs", 0)
    # The same object as the default, so that equal checks compare as equal.
    stated = math.nan if math.isnan(stated) else stated
    of, runs = (0 if math.isnan(float(one)) else int(one) for one in (of, runs))
    return Check(str(row["label"]), measured, low, high, unit, exact, stated, max(of, 1), runs)


def judged_as(recorded: Finding, current: Finding) -> Finding | None:
    """Recorded measurements, judged as the current ones are.

    None if the statement is now judged at other points. A recorded number that is judged already
    has the paper's error from its own runs, which are more.
    """
    known = {check.label: check for check in recorded.checks}
    if not all(check.label in known for check in current.checks):
        whole = all(math.isnan(check.stated) for check in current.checks)
        return recorded if whole else None
    checks = [_judged_as(known[one.label], one) for one in current.checks]
    return Finding(tuple(checks), recorded.notes)


def _judged_as(recorded: Check, current: Check) -> Check:
    if recorded.stated == current.stated:
        return recorded
    return replace(current, measured=_exact(recorded.measured, current), of=recorded.of)


def _exact(measured: Interval, check: Check) -> Interval:
    """A recorded share or number of events with its exact interval."""
    if check.unit is Unit.SHARE and isinstance(measured, Share) and measured.n:
        return share(measured.mean, measured.n, measured.level)
    if check.unit is Unit.COUNT and isinstance(check.measured, Share) and measured.n:
        return rate(measured.mean * measured.n, measured.n, measured.level)
    return measured


@cache
def recorded(paper: str, kind: str) -> Mapping[str, Finding]:
    """The recorded finding of each statement of a paper, by its id; empty if there is none."""
    found: dict[str, Finding] = {}
    folder = _folder(paper, kind)
    names = sorted(one.name for one in folder.iterdir()) if folder.is_dir() else []
    for name in names:
        frame = recorded_frame(paper, kind, name)
        if name.startswith("claims") and frame is not None:
            found |= findings_of(frame)
    return found


def recorded_frame(paper: str, kind: str, file: str) -> pd.DataFrame | None:
    """A recorded table; None if there is none."""
    place = _folder(paper, kind) / file
    if not place.is_file():
        return None
    with place.open(encoding="utf-8") as text:
        return pd.read_csv(text, keep_default_na=False, na_values=[""])


def _folder(paper: str, kind: str) -> Traversable:
    return resources.files("polypath") / "data" / "recorded" / paper / kind
