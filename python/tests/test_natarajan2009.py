"""CMT-PF (Natarajan 2009): settings, values from single runs, the order of the variants."""

import math

import pytest

import polypath
from polypath.papers import natarajan2009
from polypath.papers.delaware import WITH_THE_PAPERS_CONSTANTS
from polypath.papers.natarajan2009.blocking import over_time, periods
from polypath.papers.natarajan2009.congested import TABLE_1, TABLE_2, in_a_row, transmissions
from polypath.papers.natarajan2009.growth import Timeout, sent_after
from polypath.papers.natarajan2009.settings import (
    FAILS_AT,
    RELEASE_35,
    VARIANTS,
    Alone,
    Congested,
    Failure,
    Lossy,
    nearest,
    samples,
)
from polypath.papers.runs import Grid, measure, metric_of
from polypath.papers.verdict import Verdict
from polypath.scenario import Scenario


def test_the_tables_are_those_of_the_paper() -> None:
    assert set(TABLE_1) == set(TABLE_2) == {(v, load) for v in VARIANTS for load in (90, 100)}
    values = [one for row in (*TABLE_1.values(), *TABLE_2.values()) for one in row]
    assert len(values) == 56
    for first, second, ratio in TABLE_2.values():
        assert round(first / second, 1) == ratio
    for load in (90, 100):
        assert TABLE_1["CMT-CWND", load][0] > 10 * TABLE_1["CMT-PF-CWND", load][0]


def test_every_point_of_ns2_is_a_setting() -> None:
    known = samples()[WITH_THE_PAPERS_CONSTANTS]
    kinds = [type(one) for one in known]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        Failure: 24,
        Alone: 1,
        Lossy: 132,
        Congested: 36,
    }
    for setting in known:
        policy = setting.scenario().to_dict()["policy"]
        variant = setting.labels()["variant"]
        expected = ("cmt-potentially-failed", "dormant-hop")["PF" not in variant]
        assert isinstance(setting, Alone) or policy["failover"] == expected
    other = nearest(Congested("CMT-CWND", 40, 40), known)
    assert other == (
        Congested("CMT-CWND", 40, 40, RELEASE_35),
        "with the start-up of release 3.5",
    )
    assert nearest(Failure("CMT-CWND", 1), known) is None


def test_the_goodput_while_a_failure_is_being_detected() -> None:
    points = [Failure("CMT-CWND", 1), Failure("CMT-PF-CWND", 1)]
    runs = measure([Grid(tuple(points), 6)], progress=False)
    plain, failed = (runs.frame(one) for one in points)
    for frame in (plain, failed):
        # Timeouts after 1 and 2 s; detection counts from the failure.
        assert frame["detection_time"].between(2.9, 4).all()
        counted = frame["chunks_received"] * 1452 / frame["detection_time"]
        assert (frame[metric_of(points[0])] == counted).all()
    # After the first timeout CMT-PF uses path 1 alone. A single transfer may wait there as well.
    assert failed["chunks_received"].mean() > 2 * plain["chunks_received"].mean()


@pytest.mark.parametrize(
    ("setting", "seeds"),
    [
        # Data that was cumulatively acknowledged: half of the data received.
        (Failure("CMT-CWND", 0, RELEASE_35), 20),
        (Failure("CMT-SSTHRESH", 0, RELEASE_35), 40),
        (Failure("CMT-CWND", 4, RELEASE_35), 8),
        # Data that was received.
        (Failure("CMT-CWND", 0), 20),
        (Alone(), 8),
    ],
)
def test_goodput_is_counted_as_ns2_counted_it(setting: Failure | Alone, seeds: int) -> None:
    own = measure([Grid((setting,), seeds)], progress=False).mean(setting, metric_of(setting))
    theirs = samples()[WITH_THE_PAPERS_CONSTANTS][setting].interval()
    # Half widths are of 90 %: twice that is more than three standard errors.
    assert abs(own.mean - theirs.mean) < 2 * (own.half_width**2 + theirs.half_width**2) ** 0.5
    assert own.half_width < 0.35 * own.mean


def test_what_is_blocked_over_time_is_what_the_sender_counts() -> None:
    scenario = Failure("CMT-CWND", 2).scenario()
    result = polypath.simulate(scenario, seed=2, series=True)
    found = periods(over_time(result))
    total = sum(end - begin for begin, end in found)
    assert total == pytest.approx(result.metrics["blocked_time"], rel=0.02)
    # One second, then two and four: the buffer is full in between.
    longest = sorted(end - begin for begin, end in found if begin > FAILS_AT)[-2:]
    assert 1.2 < longest[0] < 2.5 < 2.9 < longest[1] < 4.5


def test_after_a_timeout_cmt_has_sent_one_packet_more_whatever_the_round_trip() -> None:
    for rtt in (90, 900):
        plain, failed = (
            sent_after(polypath.simulate(one.scenario(), seed=1), one)
            for one in (Timeout("CMT-CWND", rtt), Timeout("CMT-PF-CWND", rtt))
        )
        assert [a - b for a, b in zip(plain, failed, strict=True)] == [1] * len(plain)
    # 1 + 2 + 4, and nothing + 2 + 4.
    assert (plain[:3], failed[:3]) == ((1, 3, 7), (0, 2, 6))


def test_timeouts_in_a_row_and_transmissions_of_a_lossy_transfer() -> None:
    setting = Lossy("CMT-CWND", 10, 450)
    runs = measure([Grid((setting,), 2)], progress=False)
    frame = runs.frame(setting)
    rows = in_a_row(frame)
    assert rows[0].mean > rows[1].mean > 0
    in_rows = sum(number * row.mean for number, row in enumerate(rows, start=2))
    assert in_rows <= frame["path.1.timeouts"].mean()
    first, second, quotient = transmissions(frame)
    chunks = math.ceil((8 << 20) / 1452)
    assert first.mean + second.mean > chunks
    assert quotient.mean == pytest.approx(first.mean / second.mean)


def test_figure_3_1_and_its_statement() -> None:
    frame, chart = natarajan2009.section_3_1(progress=False)
    assert set(frame.columns) == {"variant", "rtt", "round_trips", "sent"}
    assert chart.axes
    grid = natarajan2009.section_3_1.grid(False)
    claim = next(one for one in natarajan2009.PAPER.claims if one.id == "P10")
    assert claim.judge is not None
    finding = claim.judge(measure([grid], progress=False))
    assert finding.verdict is Verdict.HOLDS


@pytest.mark.usefixtures("ns")
def test_ns2_tells_states_and_timeouts_in_a_row() -> None:
    setting = Failure("CMT-PF-CWND", 1)
    plan = setting.scenario().with_(
        {"transport.profile": "ns2-2.35", "transport.path_confirmation": None}
    )
    assert isinstance(plan, Scenario)
    result = polypath.simulate(plan, seed=3, backend="ns2", packets=True)
    changes = result.changes[result.changes["path"] == 1]
    assert list(changes["to"])[-2:] == ["potentially failed", "inactive"]
    seen = setting.observe(result)
    assert 2.9 < seen["detection_time"] < 4
    assert seen["goodput_detecting"] > 20_000
    metrics = result.metrics
    assert float(metrics["path.1.timeouts"]) >= 1
    assert float(metrics["path.1.data_sent"]) > 1000
