"""Measures of a transfer that the figures show, from its metrics; also over a whole curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd

from polypath.papers.iyengar2004.settings import Transfer
from polypath.papers.runs import (
    TRANSFER_TIME,
    NotImplementedYetError,
    NotThereError,
    Setting,
    Source,
)
from polypath.statistics import Interval, interval, ratio

#: Maps single runs, a row each, to a number for each.
Measure = Callable[[pd.DataFrame], pd.Series]


def _of_paths(runs: pd.DataFrame, metric: str) -> pd.Series:
    columns = [
        name for name in map(str, runs) if name.startswith("path.") and name.endswith(f".{metric}")
    ]
    return runs[columns].astype(float).sum(axis="columns")


def seconds(runs: pd.DataFrame) -> pd.Series:
    """The transfer time, from the application's send to the last byte."""
    return runs[TRANSFER_TIME].astype(float)


def timeouts(runs: pd.DataFrame) -> pd.Series:
    """Expirations of T3-rtx on all paths."""
    return runs["timeouts"].astype(float)


def retransmissions(runs: pd.DataFrame) -> pd.Series:
    """Retransmissions on all paths."""
    return _of_paths(runs, "retransmissions")


def drops(runs: pd.DataFrame) -> pd.Series:
    """DATA chunks that were lost; each is in a packet of its own."""
    return runs["data_chunks_lost"].astype(float)


def arrived(path: int) -> Measure:
    """Packets of the sender that arrived over a path; paths count from 0."""
    return lambda runs: runs[f"path.{path}.packets_arrived"].astype(float)


def retransmitted(path: int) -> Measure:
    """Retransmissions that were sent over a path."""
    return lambda runs: runs[f"path.{path}.retransmissions"].astype(float)


def together(source: Source, settings: Sequence[Setting], measure: Measure) -> pd.Series:
    """The sum over these points, for each seed.

    Raises:
        NotThereError: One of them has no single runs.
    """
    if not settings:
        raise NotThereError("no point to look at")
    values = []
    for setting in settings:
        runs = source.frame(setting)
        values.append(pd.Series(measure(runs).to_numpy(), index=runs["seed"]))
    return pd.concat(values, axis="columns", join="inner").sum(axis="columns", skipna=False)


def quotient(below: pd.Series, above: pd.Series) -> Interval:
    """Mean of one as a multiple of the mean of the other, seed by seed."""
    pairs = pd.concat([below, above], axis="columns", join="inner").astype(float)
    first, second = pairs.to_numpy().T
    return ratio(first, second)


def mean(values: pd.Series) -> Interval:
    """The mean with its interval."""
    return interval(values.astype(float))


def over_curve(source: Source, base: Sequence[Transfer], other: Sequence[Transfer]) -> Interval:
    """Transfer times of a curve as a multiple of those of another, all their points together.

    If only means are known, the mean of the points' quotients.

    Raises:
        NotThereError: There is no point of both.
    """
    try:
        return quotient(together(source, base, seconds), together(source, other, seconds))
    except NotImplementedYetError:
        raise
    except NotThereError:
        points = [source.ratio(*pair) for pair in zip(base, other, strict=True)]
    if not points:
        raise NotThereError("no point to look at")
    half = math.sqrt(sum(point.half_width**2 for point in points)) / len(points)
    average = sum(point.mean for point in points) / len(points)
    return Interval(average, half, points[0].level, min(point.n for point in points))
