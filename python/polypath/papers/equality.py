"""Whether polypath's results at the points of a statement equal ns-2's: an equivalence test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from polypath.papers.reference import CLOSE, Sample, sample_of, welch
from polypath.papers.runs import Runs, Setting, metric_of
from polypath.papers.verdict import wider

#: Runs of polypath, difference and its half-width of a recorded point.
_Known: TypeAlias = tuple[int, float, float]


class Answer(Enum):
    """Whether the results are equal."""

    YES = "yes"
    NO = "no"
    OPEN = "open"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Equality:
    """The comparison of the means at the points of a statement."""

    answer: Answer
    #: Points that both have.
    points: int
    #: Mean difference over the points, as a share of ns-2's means, and its half-width at 90 %.
    difference: float
    half_width: float
    #: Runs of ns-2 of the point that has fewest.
    runs: int

    def __str__(self) -> str:
        plural = "s" if self.points > 1 else ""
        text = f"{100 * self.difference:+.1f} % ± {100 * self.half_width:.1f}"
        return f"{self.answer}: {text} ({self.points} point{plural}, ns-2 n ≥ {self.runs})"


def equality(
    runs: Runs,
    used: Iterable[Setting],
    samples: Mapping[Setting, Sample],
    full: pd.DataFrame | None = None,
) -> Equality | None:
    """Compares the points of a statement; None if ns-2's results have none of them.

    They are equal if the 90 % interval of their mean difference is within 5 %, and no point is
    surely outside; they differ if a point is, at the level of all points together, or the mean.
    The half-width is the mean of those of the points, as if these had the same losses: with
    different ones it would be smaller. `full` is the recorded comparison of the papers' own grids,
    which takes the place of these runs where it has more.
    """
    differences: list[float] = []
    halves: list[float] = []
    numbers: list[int] = []
    recorded = _recorded(full)
    for setting in used:
        theirs = samples.get(setting)
        if theirs is None or theirs.n < 2 or not theirs.mean:
            continue
        ours = _sample(runs, setting)
        known = recorded.get(_key(setting.labels()))
        if known and (ours is None or known[0] > ours.n):
            differences.append(known[1])
            halves.append(known[2])
        elif ours is not None:
            differences.append((ours.mean - theirs.mean) / theirs.mean)
            halves.append(welch(ours, theirs) / abs(theirs.mean))
        else:
            continue
        numbers.append(theirs.n)
    if not differences:
        return None
    factor = wider(len(differences))
    outside = any(
        abs(difference) - factor * half > CLOSE
        for difference, half in zip(differences, halves, strict=True)
    )
    mean = math.fsum(differences) / len(differences)
    half = math.fsum(halves) / len(halves)
    if outside or abs(mean) - half > CLOSE:
        answer = Answer.NO
    else:
        answer = Answer.YES if abs(mean) + half <= CLOSE else Answer.OPEN
    return Equality(answer, len(differences), mean, half, min(numbers))


def _sample(runs: Runs, setting: Setting) -> Sample | None:
    frame = runs.frames.get(setting)
    if frame is None or metric_of(setting) not in frame:
        return None
    values: pd.Series = frame[metric_of(setting)].astype(float)
    own = sample_of(values)
    return own if own.n > 1 else None


def _recorded(full: pd.DataFrame | None) -> dict[frozenset[tuple[str, str]], _Known]:
    """Runs, difference and half-width of the recorded points, by their labels."""
    if full is None:
        return {}
    labels = list(full.columns[: list(full.columns).index("ours")])
    return {
        _key({name: row[name] for name in labels}): (
            int(row["ours_n"]),
            float(row["difference"]),
            float(row["allowed"]),
        )
        for row in full.to_dict("records")
    }


def _key(labels: Mapping[Any, Any]) -> frozenset[tuple[str, str]]:
    """The labels that have a value, as text: a number is the same with and without decimals."""

    def text(value: object) -> str:
        if isinstance(value, str | bool | np.bool_):
            return str(value)
        return f"{value:g}" if isinstance(value, int | float) else str(value)

    known = {k: v for k, v in labels.items() if not (v is None or v == "" or v != v)}
    return frozenset((str(name), text(value)) for name, value in known.items())
