"""The records of long runs: written and read back, and not older than the engine."""

import io
import itertools
import math
from collections.abc import Iterator

import pandas as pd
import pytest

from polypath import papers
from polypath.papers import delaware
from polypath.papers.caro2006_retransmission.compare import best
from polypath.papers.caro2006_retransmission.cross_traffic import figure_3
from polypath.papers.caro2006_retransmission.figures import EARLY
from polypath.papers.caro2006_retransmission.flag import TRACED, section_4_2
from polypath.papers.record import (
    CLAIMS,
    FULL,
    NS2,
    claims_frame,
    findings_of,
    recorded,
    recorded_frame,
)
from polypath.papers.runs import Setting
from polypath.papers.verdict import Check, Finding, Unit, Verdict
from polypath.statistics import Interval, share

PAPER = papers.find("caro2006-retransmission")


def test_findings_are_read_as_they_were_written() -> None:
    checks = (
        Check("AllRtxAlt, 5 % / 0 %", Interval(-0.2, 0.01, 0.9, 60), -0.3, -0.1),
        Check("chunks", Interval(2889.0, math.inf, 0.9, 1), 2889, 2889, Unit.COUNT, exact=True),
        Check("with failovers", share(0, 30), high=0.1, unit=Unit.SHARE),
        Check("nothing", Interval(math.nan, math.nan, 0.9, 0), high=3.0, unit=Unit.RATIO),
    )
    written = {"R07": Finding(checks[:1], ("one", "two")), "R06": Finding(checks[1:])}
    text = claims_frame(written.items(), "0.1").to_csv(index=False, float_format="%.9g")
    read = findings_of(pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""]))
    assert list(read) == ["R07", "R06"]
    assert read["R07"] == written["R07"]
    assert read["R06"].checks[0] == checks[1]
    # The exact interval, which decides it: 0 % to 9.5 %.
    again = read["R06"].checks[1]
    assert again.verdict is Verdict.HOLDS
    assert again.measured.low == pytest.approx(0, abs=1e-9)
    assert again.measured.high == pytest.approx(checks[2].measured.high)
    nothing = read["R06"].checks[2]
    assert math.isnan(nothing.measured.mean)
    assert (nothing.low, nothing.high, nothing.verdict) == (-math.inf, 3.0, Verdict.UNDECIDED)
    assert read["R06"].notes == ()


def test_every_statement_of_the_paper_has_a_recorded_verdict() -> None:
    ids = {claim.id for claim in PAPER.claims}
    assert set(recorded(PAPER.key, FULL)) == ids
    assert set(recorded(PAPER.key, NS2)) <= ids
    assert recorded("natarajan2009", "nowhere") == {}


def _exact(findings: Iterator[tuple[str, Finding]]) -> dict[tuple[str, str], float]:
    return {
        (id_, check.label): check.measured.mean
        for id_, finding in findings
        for check in finding.checks
        if check.exact
    }


def test_what_is_not_random_is_what_it_was_when_it_was_recorded() -> None:
    """A change of the engine that changes a transfer without losses makes the record stale."""
    done = papers.reproduce([PAPER], ["6.1"], progress=False)
    now = _exact((one.row.id, one.ours) for one in done.claims if one.ours)
    then = _exact(iter(recorded(PAPER.key, FULL).items()))
    assert len(now) == 3
    assert now == pytest.approx({key: then[key] for key in now})


@pytest.mark.parametrize("paper", papers.PAPERS, ids=lambda paper: paper.key)
def test_recorded_numbers_give_the_recorded_verdicts(paper: papers.Paper) -> None:
    frame = recorded_frame(paper.key, FULL, CLAIMS)
    for id_, finding in recorded(paper.key, FULL).items():
        assert frame is not None
        verdicts = list(frame.loc[frame["id"] == id_, "verdict"])
        assert [str(verdict) for verdict in finding.verdicts] == verdicts, id_


@pytest.mark.parametrize("paper", papers.PAPERS, ids=lambda paper: paper.key)
def test_a_row_that_does_not_hold_says_why(paper: papers.Paper) -> None:
    for id_, finding in recorded(paper.key, FULL).items():
        (claim,) = (one for one in paper.claims if one.id == id_)
        if finding.verdict is not Verdict.HOLDS:
            assert claim.remark, f"{id_}: {finding.verdict}"


def test_transfers_in_which_both_paths_were_given_up_are_told_apart() -> None:
    policies = ("AllRtxSame", "AllRtxAlt", "FrSameRtoAlt")
    frames: dict[Setting, pd.DataFrame] = {}
    for policy in policies:
        slow = [100.0] * 11 + [30_000.0 if policy == "AllRtxAlt" else 100.0]
        columns = {"time_from_start": slow, "failures": [1] * 11 + [2], "seed": range(1, 13)}
        frames[best(policy, 0, 9, breaks_at=EARLY)] = pd.DataFrame(columns)
    (r30,) = (claim for claim in PAPER.claims if claim.id == "R30")
    assert r30.judge is not None
    found = r30.judge(papers.Runs(frames, {}, {}))
    # The mean of AllRtxAlt is 2591.7 s, its median 100 s as that of the others.
    assert found.checks[0].measured.mean == 0.0
    assert found.verdict is Verdict.HOLDS
    (note,) = found.notes
    assert "both paths were given up (1 of 12 pairs)" in note
    assert note.endswith("+0.0 % ± 0.0")


def test_the_rto_above_its_floor_counts_each_value_once() -> None:
    result = papers.measure([papers.Grid((), 1, TRACED[:1])], progress=False).results(TRACED[0])[0]
    (series,) = (one for one in result.samples if one.side == "sender" and one.path == 1)
    values = [key for key, _ in itertools.groupby(series.rto) if key > 1.0]
    assert len(values) > 5
    assert delaware.rto_above_floor(result, 1) == pytest.approx(sum(values) / len(values))
    assert math.isnan(delaware.rto_above_floor(result, 7))


def test_the_summary_of_figure_3_counts_orders_of_groups_large_enough() -> None:
    frame = pd.DataFrame(
        {
            "primary_loss": 3,
            "alternate_loss": range(5),
            "n": [20, 20, 20, 9, 20],
            "mean": 30.0,
            "half_width": [1.0, 2.0, 4.0, 1.0, 1.0],
            "change": [-0.2, 0.1, 0.0, 0.1, float("nan")],
            "change_half_width": 0.05,
            "uniform_change": [-0.1, -0.1, 0.1, 0.1, float("nan")],
            "same_order": ["yes", "no", "open", "yes", float("nan")],
        }
    )
    told = figure_3.summary(frame)
    assert told.table is not None
    assert list(told.table["same order"]) == ["yes", "no", "open"]
    assert told.table["against AllRtxSame [%]"].iloc[0] == "-20.0 ± 5.0"
    assert "Of 3 groups" in told.says[0]
    assert "in 1, on the other in 1; in 1 the interval" in told.says[0]
    assert "met by 2" in told.says[1]


def test_the_flag_costs_nothing_on_the_wire() -> None:
    grid = papers.Grid((), 2, TRACED)
    frame, _ = section_4_2.draw(papers.measure([grid], progress=False), grid)
    assert list(frame["headers"]) == [48, 60, 48] * 2
    assert list(frame["chunks"]) == [2889, 2913, 2889] * 2
    karn, stamps, flag, *_ = frame["rtt_samples"].astype(float)
    assert flag > 10 * karn
    assert stamps > flag
    told = section_4_2.summary(frame)
    assert told.table is not None
    assert len(told.table) == 6
