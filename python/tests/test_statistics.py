"""Intervals against scipy and against tables; the stopping rule; pairs."""

import math
import random

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import polypath
from polypath import Scenario, Stop
from polypath.replications import Replications


def test_intervals_are_those_of_scipy() -> None:
    sample = np.random.default_rng(1).normal(10, 3, 25)
    for level in (0.90, 0.95, 0.99):
        ours = polypath.interval(sample, level)
        low, high = stats.t.interval(level, 24, sample.mean(), stats.sem(sample))
        assert (ours.low, ours.high) == pytest.approx((low, high))
        assert (ours.n, ours.level) == (25, level)


def test_an_interval_by_hand() -> None:
    # Of 1, 2, 3, 4, 5: mean 3, deviation root of 2.5; t(0.95, 4) = 2.132 from the tables.
    ours = polypath.interval([1, 2, 3, 4, 5])
    assert ours.mean == 3
    assert ours.half_width == pytest.approx(2.132 * math.sqrt(2.5 / 5), rel=1e-4)
    assert ours.relative == pytest.approx(ours.half_width / 3)
    assert ours.too_few


def test_intervals_hold_the_mean_as_often_as_they_say() -> None:
    dice = np.random.default_rng(2)
    samples = dice.exponential(5.0, (2000, 30))
    held = [one.low <= 5.0 <= one.high for one in map(polypath.interval, samples)]
    assert 0.86 < np.mean(held) < 0.92


def test_small_samples_say_so() -> None:
    none, one = polypath.interval([]), polypath.interval([4.0, math.nan])
    assert (none.n, math.isnan(none.mean), none.too_few) == (0, True, True)
    assert (one.n, one.mean, one.half_width, one.too_few) == (1, 4.0, math.inf, True)
    assert not polypath.interval(range(10)).too_few
    assert polypath.interval([2.0] * 10).relative == 0
    assert polypath.interval([-1.0, 1.0]).relative == math.inf


def test_pairs_remove_what_both_have_in_common() -> None:
    dice = np.random.default_rng(3)
    weather = dice.normal(100, 30, 40)
    first, second = weather + dice.normal(0, 1, 40), weather + 2 + dice.normal(0, 1, 40)
    ours = polypath.paired(first, second, 0.95)
    expected = stats.ttest_rel(second, first).confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high))
    assert ours.half_width < polypath.interval(first, 0.95).half_width / 10
    with pytest.raises(ValueError, match="3 and 2 values"):
        polypath.paired([1, 2, 3], [1, 2])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"level": 90}, "level: found 90; allowed: between 0 and 1"),
        ({"within": 0}, "within: found 0; allowed: above 0"),
        ({"at_least": 1}, "at_least: found 1; allowed: at least 2"),
        ({"at_least": 9, "at_most": 5}, "at_most: found 5; allowed: at_least"),
    ],
)
def test_wrong_rules_are_told(arguments: dict[str, float], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        Stop(**arguments)  # type: ignore[arg-type]


def test_the_rule_does_not_care_who_finishes_first(lossy: Scenario) -> None:
    dice = random.Random(4)
    values = {seed: dice.gauss(10, 2) for seed in range(200)}
    stop = Stop(within=0.05, at_least=5, at_most=200, metric="x")
    prefixes = (polypath.interval([values[s] for s in range(n)]) for n in range(5, 201))
    expected = next(one.n for one in prefixes if one.relative <= 0.05)
    for workers in (1, 7, 40):
        replications = Replications(lossy, "lossy", list(range(200)), stop)
        running: list[int] = []
        started = 0
        while not replications.settled:
            while len(running) < workers and (seed := replications.next_seed()) is not None:
                running.append(seed)
                started += 1
            seed = running.pop(dice.randrange(len(running)))
            replications.finished({"seed": seed, "x": values[seed]})
        assert [row["seed"] for row in replications.counted()] == list(range(expected))
        assert started < expected + 40


def test_a_rule_that_never_holds_ends_with_at_most(lossy: Scenario) -> None:
    stop = Stop(at_least=3, at_most=6, metric="x")
    replications = Replications(lossy, "lossy", list(range(100)), stop)
    while (seed := replications.next_seed()) is not None:
        replications.finished({"seed": seed, "x": 1.0 if seed == 0 else None})
    assert replications.settled
    assert len(replications.counted()) == 6


def frame() -> pd.DataFrame:
    """Two scenarios with three seeds, one run of which failed."""
    rows = [
        ("a", "k1", 1, "ok", True, 10.0),
        ("a", "k1", 2, "ok", True, 12.0),
        ("a", "k1", 3, "ok", True, 14.0),
        ("b", "k2", 1, "ok", True, 11.0),
        ("b", "k2", 2, "ok", True, 13.5),
        ("b", "k2", 3, "failed", False, math.nan),
    ]
    table = pd.DataFrame(rows, columns=["scenario", "key", "seed", "status", "complete", "x"])
    table.insert(4, "reason", None)
    return table


def test_a_summary_counts_what_failed() -> None:
    table = polypath.summary(frame(), "x").set_index("scenario")
    assert list(table["runs"]) == [3, 3]
    assert list(table["n"]) == [3, 2]
    assert list(table["failed"]) == [0, 1]
    assert list(table["incomplete"]) == [0, 1]
    assert list(table["mean"]) == [12.0, 12.25]
    assert table["too_few"].all()
    with pytest.raises(ValueError, match='no metric "y"; allowed: complete, x'):
        polypath.summary(frame(), "y")


def test_comparisons_pair_the_seeds() -> None:
    (row,) = polypath.compare(frame(), "x").to_dict("records")
    assert (row["scenario"], row["n"], row["difference"]) == ("b", 2, 1.25)
    assert row["relative"] == pytest.approx(1.25 / 11)
    assert row["differs"] == (row["low"] > 0)
    (row,) = polypath.compare(frame(), "x", baseline="b").to_dict("records")
    assert (row["scenario"], row["difference"]) == ("a", -1.25)
    with pytest.raises(ValueError, match='no scenario "c"; allowed: a, b'):
        polypath.compare(frame(), "x", baseline="c")
