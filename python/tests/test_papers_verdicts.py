"""Verdicts and their arithmetic, by numbers that are worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import polypath
from polypath.papers import NotImplementedYetError, Runs, Verdict
from polypath.papers.caro2006_retransmission.settings import Transfer, point, samples
from polypath.papers.equality import Answer, equality
from polypath.papers.judge import judge
from polypath.papers.record import judged_as
from polypath.papers.reference import Sample, agreement, pooled, welch
from polypath.papers.registry import Claim
from polypath.papers.runs import Setting, Source
from polypath.papers.verdict import (
    Check,
    Finding,
    Unit,
    at_most,
    change,
    combined,
    faster,
    greatest,
    number,
    similar,
    slower,
    typical,
    widest,
)
from polypath.papers.words import allowed, still_open, value
from polypath.statistics import Interval, rate, share

from places import ROOT

SAME, ALTERNATE = point("AllRtxSame", "none", 5), point("AllRtxAlt", "none", 5, 0)


def interval(mean: float, half_width: float, n: int = 20) -> Interval:
    return Interval(mean, half_width, 0.9, n)


def runs_of(times: dict[Setting, list[float]], unknown: dict[Setting, str] | None = None) -> Runs:
    """Runs like those of a sweep: seeds 1 to n."""
    frames = {
        setting: pd.DataFrame(
            {"seed": np.arange(1, len(own) + 1), "time_from_start": own, "complete": True}
        )
        for setting, own in times.items()
    }
    return Runs(frames, unknown or {}, {})


@pytest.mark.parametrize(
    ("mean", "half_width", "n", "verdict"),
    [
        (1.0, 0.5, 20, Verdict.HOLDS),
        (3.0, 0.5, 20, Verdict.FAILS),
        (-2.0, 0.5, 20, Verdict.FAILS),
        (2.0, 0.5, 20, Verdict.UNDECIDED),
        (1.0, 0.5, 9, Verdict.UNDECIDED),
        (3.0, 0.5, 9, Verdict.UNDECIDED),
        (1.0, math.inf, 1, Verdict.UNDECIDED),
        (math.nan, math.nan, 0, Verdict.UNDECIDED),
        (1.0, 5.0, 20, Verdict.UNDECIDED),
    ],
)
def test_a_check_asks_where_the_whole_interval_lies(
    mean: float, half_width: float, n: int, verdict: Verdict
) -> None:
    assert Check("", interval(mean, half_width, n), 0.0, 2.0).verdict is verdict


@pytest.mark.parametrize(
    ("mean", "half_width", "n", "runs", "words"),
    [
        # The limit is a quarter of the half-width away: sixteen times as many.
        (1.9, 0.4, 20, 320, "some 320 runs would decide"),
        (2.1, 0.4, 77, 1232, "some 1300 runs would decide"),
        # Nine runs would suffice, but fewer than ten are never enough.
        (1.0, 1.5, 4, 10, "some 10 runs would decide"),
        (1.0, 0.5, 20, None, ""),
        (3.0, 0.5, 20, None, ""),
        (2.0, 0.5, 20, None, ""),
        (1.0, math.inf, 1, None, ""),
        (math.nan, math.nan, 0, None, ""),
    ],
)
def test_how_many_runs_would_decide_an_open_check(
    mean: float, half_width: float, n: int, runs: int | None, words: str
) -> None:
    check = Check("", interval(mean, half_width, n), 0.0, 2.0)
    assert check.runs_to_decide == runs
    assert still_open(check) == words


def test_where_nothing_is_random_one_run_is_enough() -> None:
    assert Check("", interval(1.0, math.inf, 1), 0.0, 2.0, exact=True).verdict is Verdict.HOLDS
    assert Check("", interval(2.5, math.inf, 1), 0.0, 2.0, exact=True).verdict is Verdict.FAILS


def test_one_check_that_fails_decides() -> None:
    holds, fails, open_ = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED
    assert combined([holds, holds]) is holds
    assert combined([holds, open_]) is open_
    assert combined([open_, fails, holds]) is fails
    assert combined([]) is open_


def test_a_stated_number_holds_if_both_values_agree_within_both_errors() -> None:
    # The paper's 21 % ± 2: its runs and half a percent of rounding.
    error = math.sqrt(0.02**2 - 0.005**2)
    check = change("", interval(0.79, 0.01), -0.21).known_within(error)
    assert (check.low, check.high) == pytest.approx((-0.23, -0.19))
    assert check.verdict is Verdict.HOLDS
    # The error of the difference is sqrt(0.01^2 + 0.02^2) = 0.0224.
    for mean, verdict in (
        (0.811, Verdict.HOLDS),
        (0.813, Verdict.FAILS),
        (0.769, Verdict.HOLDS),
        (0.767, Verdict.FAILS),
    ):
        assert replace(check, measured=interval(mean - 1, 0.01)).verdict is verdict
    # Less precise than the paper: nothing is confirmed, but a large difference is still seen.
    assert replace(check, measured=interval(-0.21, 0.03)).verdict is Verdict.UNDECIDED
    assert replace(check, measured=interval(-0.30, 0.03)).verdict is Verdict.FAILS
    assert replace(check, measured=interval(-0.21, 0.01, 9)).verdict is Verdict.UNDECIDED
    assert change("", interval(1.11, 0.01), 0.0).verdict is Verdict.FAILS  # 11 % is not 0 %


def test_several_numbers_of_a_statement_hold_together_at_its_level() -> None:
    # Of three, each interval is at 96.67 %: 2.128 / 1.645 = 1.294 times as wide.
    check = change("", interval(0.79, 0.01), -0.21).known_within(0.02)
    edge = 0.21 - 1.28 * math.hypot(0.01, 0.02, 0.005)
    one = replace(check, measured=interval(-edge, 0.01))
    assert one.verdict is Verdict.FAILS
    assert Finding((one, check, check)).verdict is Verdict.HOLDS
    assert Finding((one, check)).verdict is Verdict.FAILS


def test_a_mean_with_the_papers_own_interval_or_number_of_runs() -> None:
    # R02: 41.1 to 44.5 s.
    assert number("", interval(42.0, 1.5), 42.8, 1.7).verdict is Verdict.HOLDS
    assert number("", interval(36.2, 3.1), 42.8, 1.7).verdict is Verdict.FAILS
    # 80 of the paper's runs have half the error of 20.
    check = number("", interval(2.0, 0.2), 2.2, 0.0, Unit.RATIO, runs=80)
    assert check.error_of_runs == pytest.approx(0.1)
    assert check.verdict is Verdict.UNDECIDED
    assert replace(check, measured=interval(2.0, 0.05)).verdict is Verdict.FAILS
    assert replace(check, measured=interval(2.15, 0.05)).verdict is Verdict.HOLDS


def test_the_worst_of_many_points_fails_only_beyond_chance() -> None:
    points = [similar(str(n), interval(1 + n / 1000, 0.02)) for n in range(76)]
    worst = widest(points)
    assert (worst.label, worst.of) == ("75", 76)
    # 7.5 % - 2 % is beyond 5 % for a single point; of 76, the interval is twice as wide.
    assert replace(worst, of=1).verdict is Verdict.FAILS
    assert worst.verdict is Verdict.UNDECIDED
    assert greatest(points).of == 76


def test_less_than_a_share_needs_the_transfers_to_see_it() -> None:
    # None of n: the upper end of the exact interval is 1 - 0.05^(1/n), below 1 % from n = 299 on.
    for n, verdict in ((30, Verdict.UNDECIDED), (298, Verdict.UNDECIDED), (299, Verdict.HOLDS)):
        assert Check("", share(0.0, n), 0.0, 0.01, Unit.SHARE).verdict is verdict
    assert at_most("", interval(0.9, 0.02), 0.03).verdict is Verdict.HOLDS
    assert at_most("", interval(1.3, 0.02), 0.03).verdict is Verdict.FAILS


def test_recorded_measurements_are_judged_as_the_current_ones() -> None:
    old = Finding((Check("a", Interval(-0.2, 0.01, 0.9, 60), -0.3, -0.1),), ("then",))
    now = Finding((change("a", interval(0.7, 0.1), -0.30).known_within(0.01),))
    found = judged_as(old, now)
    assert found is not None
    assert found.checks[0].measured.mean == -0.2
    assert found.verdict is Verdict.FAILS
    assert judged_as(old, Finding((change("b", interval(0.7, 0.1), -0.30),))) is None
    assert judged_as(old, Finding((similar("b", interval(0.7, 0.1)),))) is old
    # The number of events of 20 recorded runs gets its exact interval.
    counted = Check("n", rate(0, 45), 0.0, 0.1, Unit.COUNT, stated=0.05)
    none = judged_as(Finding((Check("n", Interval(0, 0, 0.9, 20), 0, 1),)), Finding((counted,)))
    assert none is not None
    assert none.checks[0].measured.high == pytest.approx(3.0 / 20, rel=2e-3)  # -ln 0.05


@pytest.mark.parametrize(
    ("shift", "n", "answer"),
    [(0.0, 400, Answer.YES), (0.02, 400, Answer.YES), (0.2, 400, Answer.NO), (0.0, 5, Answer.OPEN)],
)
def test_equality_with_ns2_needs_the_whole_interval_within_five_percent(
    shift: float, n: int, answer: Answer
) -> None:
    times = [90.0 + 20 * (seed % 2) for seed in range(n)]
    measured = runs_of({SAME: [(1 + shift) * one for one in times], ALTERNATE: times})
    known: dict[Setting, Sample] = {one: Sample(n, 100.0, 10.0) for one in (SAME, ALTERNATE)}
    found = equality(measured, [SAME, ALTERNATE, point("AllRtxAlt", "TS", 5)], known)
    assert found is not None
    assert (found.answer, found.points, found.runs) == (answer, 2, n)
    assert equality(measured, [SAME], {}) is None


def test_the_recorded_comparison_stands_for_fewer_runs() -> None:
    measured = runs_of({SAME: [80.0, 90.0] * 5})
    known: dict[Setting, Sample] = {SAME: Sample(60, 70.0, 7.0)}
    columns = {**SAME.labels(), "ours": 70.0, "ours_n": 300, "difference": 0.001, "allowed": 0.02}
    found = equality(measured, [SAME], known, pd.DataFrame([columns]))
    assert found is not None
    assert found.answer is Answer.YES
    assert equality(measured, [SAME], known) != found


def test_every_statement_that_does_not_hold_has_its_proof() -> None:
    """The full grid decides where it is recorded, the small one elsewhere."""
    text = (ROOT / "docs" / "claims.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    table = [[cell.strip() for cell in row] for row in rows if len(row) == 9]
    failing = [row for row in table if (row[5] or row[4]) == "**does not hold**"]
    assert len(failing) > 5
    assert [row[0] for row in failing if row[8] == "none"] == []


def test_orders_and_similarity() -> None:
    assert faster("", interval(0.9, 0.05)).verdict is Verdict.HOLDS
    assert slower("", interval(0.9, 0.05)).verdict is Verdict.FAILS
    assert slower("", interval(0.98, 0.05)).verdict is Verdict.UNDECIDED
    assert similar("", interval(1.02, 0.02)).verdict is Verdict.HOLDS
    assert similar("", interval(1.06, 0.02)).verdict is Verdict.UNDECIDED
    assert similar("", interval(0.90, 0.02)).verdict is Verdict.FAILS


def test_a_single_run_of_the_paper_is_typical_or_not() -> None:
    values = list(np.linspace(90.0, 110.0, 21))
    assert typical("", values, 105.0, Unit.COUNT).verdict is Verdict.HOLDS
    assert typical("", values, 140.0, Unit.COUNT).verdict is Verdict.FAILS
    assert typical("", values[:5], 92.0, Unit.COUNT).verdict is Verdict.UNDECIDED


def test_the_quotient_of_paired_means() -> None:
    first = [10.0, 20.0, 30.0]
    exact = polypath.ratio(first, [2 * one for one in first])
    assert (exact.mean, exact.n) == (2.0, 3)
    assert exact.half_width == pytest.approx(0.0)
    # Residuals 1, -2, 1 around 2; their standard error is 1; over the mean of 20.
    spread = polypath.ratio(first, [21.0, 38.0, 61.0])
    assert spread.mean == 2.0
    assert spread.half_width == pytest.approx(2.92 / 20, rel=1e-3)  # t(2) at 90 %
    assert polypath.ratio([1.0, math.nan, 3.0], [2.0, 5.0, 6.0]).n == 2
    with pytest.raises(ValueError, match="do not make pairs"):
        polypath.ratio([1.0], [1.0, 2.0])


def _better(source: Source) -> Finding:
    return Finding((faster("AllRtxAlt", source.ratio(SAME, ALTERNATE)),))


@pytest.mark.parametrize(
    ("factor", "runs", "verdict"),
    [
        (0.8, 20, Verdict.HOLDS),
        (1.2, 20, Verdict.FAILS),
        (0.8, 5, Verdict.UNDECIDED),
    ],
)
def test_a_claim_is_judged_from_frames(factor: float, runs: int, verdict: Verdict) -> None:
    paper = polypath.papers.caro2006_retransmission.PAPER
    base = [60.0 + seed % 7 for seed in range(runs)]
    measured = runs_of({SAME: base, ALTERNATE: [factor * one for one in base]})
    judged = judge(paper, Claim("R07", ("6",), _better), measured)
    assert judged.verdict is verdict
    assert judged.ours is not None
    assert judged.ours.checks[0].measured.mean == pytest.approx(factor - 1)
    # ns-2 is judged from its own numbers: 54.6 s (release 3.5: 53.9 to 55.2) against 69.95 s.
    theirs = judged.ns2["ns-2, the papers' constants"]
    assert theirs is not None
    assert theirs.checks[0].measured.mean == pytest.approx(-0.21, abs=0.02)


def test_what_the_engine_does_not_know_is_not_yet_implemented() -> None:
    paper = polypath.papers.caro2006_retransmission.PAPER
    measured = runs_of({SAME: [70.0] * 20}, {ALTERNATE: 'policy.retransmission: no "alternate"'})
    judged = judge(paper, Claim("R07", ("6",), _better), measured)
    assert judged.verdict is Verdict.MISSING
    assert "alternate" in judged.reason
    with pytest.raises(NotImplementedYetError):
        measured.mean(ALTERNATE)


def test_a_statement_without_a_judge_is_not_yet_implemented() -> None:
    paper = polypath.papers.natarajan2009.PAPER
    assert judge(paper, Claim("P01"), runs_of({})).verdict is Verdict.MISSING


def test_runs_that_did_not_finish_are_told() -> None:
    paper = polypath.papers.caro2006_retransmission.PAPER
    measured = runs_of({SAME: [70.0] * 20, ALTERNATE: [60.0] * 19 + [math.nan]})
    judged = judge(paper, Claim("R07", ("6",), _better), measured)
    assert judged.ours is not None
    assert judged.ours.checks[0].measured.n == 19
    assert judged.ours.notes == ("1 of 20 runs did not finish: AllRtxAlt, 5 % / 0 %",)


def test_samples_are_pooled_as_one() -> None:
    first, second = [1.0, 2.0, 4.0], [3.0, 7.0]
    whole = np.array([*first, *second])
    parts = [Sample(len(s), float(np.mean(s)), float(np.std(s, ddof=1))) for s in (first, second)]
    one = pooled(parts)
    assert (one.n, one.mean, one.sd) == pytest.approx((5, whole.mean(), whole.std(ddof=1)))


def test_welch() -> None:
    # Equal samples: sqrt(2) standard errors with 18 degrees of freedom, t = 1.734.
    sample = Sample(10, 50.0, 3.0)
    assert welch(sample, sample) == pytest.approx(1.734 * math.sqrt(2 * 9 / 10), rel=1e-3)
    assert welch(sample, Sample(1, 50.0, math.nan)) == 0.0


def test_agreement_is_within_five_percent_or_within_the_interval_of_the_difference() -> None:
    near, noisy, far = (point("AllRtxAlt", "TS", 5, a) for a in (0, 4, 8))
    steady = [100.0, 101.0] * 10
    measured = runs_of({near: steady, noisy: [60.0, 160.0] * 10, far: steady})
    theirs: dict[Setting, Sample] = {
        near: Sample(20, 104.0, 0.1),
        noisy: Sample(5, 125.0, 60.0),
        far: Sample(20, 120.0, 0.1),
        point("AllRtxAlt", "HAR", 5, 0): Sample(20, 1.0, 0.1),
    }
    table = agreement(measured, theirs)
    assert list(table["alternate_loss"]) == [0, 4, 8]
    assert list(table["agrees"]) == [True, True, False]
    assert table["difference"].iloc[2] == pytest.approx(100.5 / 120 - 1)


def test_values_are_written_with_their_unit() -> None:
    assert value(Check("", interval(-0.2134, 0.0192))) == "-21.3 % ± 1.9 (n = 20)"
    assert (
        value(Check("", interval(34.71, 0.4, 60), unit=Unit.SECONDS)) == "34.71 s ± 0.40 (n = 60)"
    )
    exact = Check("", interval(122.305, math.inf, 1), 122.25, 122.35, Unit.SECONDS, exact=True)
    assert value(exact) == "122.305 s"
    assert allowed(exact) == "122.250 s … 122.350 s"
    assert value(Check("", interval(0.1, math.inf, 1))) == "+10.0 % (one run)"
    assert allowed(faster("", interval(0.9, 0.1))) == "at most +0.0 %"
    assert allowed(Check("", interval(3, 0), 2.0, unit=Unit.RATIO)) == "at least 2.000 times"


def test_the_reference_is_one_tidy_frame() -> None:
    frame = polypath.papers.reference()
    assert set(frame["variant"]) == {"rel35", "rel37", "ns235"}
    assert set(frame["paper"]) == {paper.key for paper in polypath.papers.PAPERS}
    assert (frame["n"] >= 1).all()
    own = polypath.papers.reference("caro2006-retransmission")
    point_ = own.query(
        "variant == 'rel35' and policy == 'AllRtxSame' and extensions == 'none'"
        " and primary_loss == 5 and alternate_rtt == 90"
    )
    assert point_[["n", "mean", "sd"]].to_numpy().tolist() == [[60, 69.954, 7.625]]
    with pytest.raises(ValueError, match="allowed: caro2006-retransmission"):
        polypath.papers.reference("caro2007")


def test_a_point_is_compared_with_the_start_up_that_its_row_had() -> None:
    papers = samples()["ns-2, the papers' constants"]
    plain = point("AllRtxAlt", "none", 3, 4)
    assert plain.confirmation == "before-data"
    assert papers[plain].mean == pytest.approx(48.5152)  # release 3.7
    stamped = point("AllRtxAlt", "TS", 3, 4)
    assert stamped.confirmation == "off"
    assert papers[stamped].mean == pytest.approx(42.496)  # release 3.5
    assert isinstance(stamped, Transfer)
