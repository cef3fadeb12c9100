"""caro2006-failover: its equations, its scenarios in real traces, and its count of failovers."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import polypath
from polypath.papers import Grid, Runs, Verdict
from polypath.papers.caro2006_failover import PAPER, equations
from polypath.papers.caro2006_failover.ladders import rungs
from polypath.papers.caro2006_failover.scenarios import (
    DESCRIBED,
    SSTHRESH,
    Event,
    Timeout,
    Trace,
    described,
    met,
)
from polypath.papers.caro2006_failover.settings import Transfer, nearest, permanent, samples
from polypath.papers.caro2006_failover.spurious import share_of, with_failover
from polypath.papers.judge import judge
from polypath.papers.runs import NotThereError, Setting
from polypath.papers.verdict import Check, Unit
from polypath.papers.words import value
from polypath.statistics import share

NS2 = "ns-2, the papers' constants"


def test_the_equations_by_hand() -> None:
    # Windows 1, 2, 4 and then 5, 6 with ssthresh 4 and an acknowledgement for each packet.
    assert equations.round_trips_of_slow_start(5, 4, b=1) == 3
    assert equations.cwnd_of_slow_start(3, b=1) == 4
    assert equations.packets_of_slow_start(3, b=1) == 1 + 2 + 4
    assert equations.round_trips_of_congestion_avoidance(5, 3) == 2
    assert [equations.cwnd_of_congestion_avoidance(i, 4) for i in (1, 2)] == [5, 6]
    assert equations.packets_of_congestion_avoidance(2, 4) == 5 + 6
    assert equations.packets(5, 4, b=1) == 1 + 2 + 4 + 5 + 6
    # With delayed acknowledgements 1, 1.5, 2.25: (4) is 2 ((3/2)^r - 1).
    assert equations.packets_of_slow_start(3) == pytest.approx(1 + 1.5 + 2.25)
    assert equations.packets(1, 44) == 1


def test_round_trips_of_the_equations() -> None:
    assert equations.round_trips(2.0, 0.1, 0.1) == pytest.approx(21)
    assert equations.round_trips(2.0, 0.1, 10) == 1  # one packet at least
    assert equations.round_trips_after_both_are_lost(2.0, 1.0, 0.1) == pytest.approx(30)
    assert equations.round_trips_between_the_timeouts(2.0, 1.0, 0.1) == pytest.approx(10)


def test_a_window_in_the_simulator_grows_as_the_equations_say() -> None:
    setting = Timeout(3, 0, "ns2", unlimited=True, sack_every=1)
    trace = Trace(polypath.simulate(setting.scenario(), packets=True))
    end = trace.heartbeat_answered()
    assert end == pytest.approx(2.09, abs=0.01)  # RTO of 2 s for the heartbeat, and a round trip
    sent = trace.delivered(end, path=1)
    assert sent == pytest.approx(equations.packets(end / 0.0915, SSTHRESH, b=1), rel=0.02)
    blocked = Trace(polypath.simulate(replace(setting, pmr=1).scenario(), packets=True))
    assert blocked.delivered(end) == 1


def test_what_the_scenarios_lose() -> None:
    traces = {
        number: Trace(polypath.simulate(Timeout(number, 0, "ns2").scenario(), packets=True))
        for number in (1, 2, 3, 4)
    }
    for number, trace in traces.items():
        lost = [(one.path, one.text) for one in trace.after if one.lost]
        primary = [(0, "HEARTBEAT")] if number in (3, 4) else []
        alternate = [(1, "DATA 1 again")] if number in (2, 4) else []
        assert sorted(lost) == primary + alternate
    assert met(traces[4], 4, 0) == (described(4, 0), "")


def _events(*texts: str) -> Trace:
    """A trace with these events, one every 10 ms, in the notation of `DESCRIBED`."""
    trace = object.__new__(Trace)
    trace.events = [
        Event(
            at=place / 100,
            there=place / 100,
            path="PA".index(text[0]),
            to_peer="ACK" not in text,
            lost=text.endswith(" x"),
            text=text[2:].removesuffix(" x"),
        )
        for place, text in enumerate(texts)
    ]
    return trace


def test_events_are_met_in_their_order() -> None:
    normal = ["P SACK 0", "P DATA 5", "P SACK 0"]
    whole = [one if one != "..." else normal[0] for step in DESCRIBED[2, 1] for one in step]
    assert met(_events(*whole), 2, 1) == (7, "")
    assert met(_events(*whole[:-1], *normal, "P DATA 1"), 2, 1) == (7, "")
    # Events of a step in either order; an early retransmission ends normal transfer.
    assert met(_events(whole[1], whole[0], *whole[2:]), 2, 1) == (7, "")
    assert met(_events(*whole[:-1], "A DATA 1"), 2, 1) == (6, "A DATA 1 in place of P DATA 1")
    assert met(_events(whole[0]), 2, 1) == (1, "nothing in place of P DATA 2")
    assert met(_events(), 2, 1)[0] == 0


def test_a_diagram_shows_single_packets_and_counts_undisturbed_transfer() -> None:
    transfer = ["P SACK 1", "P DATA 2", "P SACK 2", "P DATA 3", "P DATA 4"]
    shown = rungs(_events("A DATA 1 again", *transfer, "P HEARTBEAT"))
    # The retransmission, three packets of transfer, the number of the other two, the heartbeat.
    assert [one.text if isinstance(one, Event) else one[1] for one in shown] == [
        "DATA 1 again",
        "SACK 1",
        "DATA 2",
        "SACK 2",
        2,
        "HEARTBEAT",
    ]


def test_the_exact_interval_of_a_share() -> None:
    # By hand: 0 of 10 at 90 %: 1 - 0.05^(1/10); 3 of 10: Clopper and Pearson's table.
    none = share(0, 10)
    assert (none.low, none.high, none.mean) == pytest.approx((0, 0.2589, 0), abs=1e-4)
    half = share(0.5, 10)
    assert (half.low + half.high) / 2 == pytest.approx(0.5)
    assert share(1, 10).low == pytest.approx(1 - none.high)
    assert math.isnan(share(0.5, 0).mean)
    with pytest.raises(ValueError, match="level"):
        share(0.5, 10, level=1)
    text = value(Check("", share(0.3, 10), 0, 1, Unit.SHARE))
    assert text == "30.0 % (8.7 % … 60.7 %, n = 10)"


def _counts(seeds: list[int], failovers: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"seed": seeds, "failovers": failovers})


def test_transfers_that_share_a_seed_count_as_less_than_independent_ones() -> None:
    alike = _counts([1, 2, 3, 4] * 5, [0, 1, 0, 1] * 5)
    found = share_of(alike, lambda number: number > 0)
    assert (found.mean, found.n) == (0.5, 4)  # five alternates, but only four seeds
    generator = np.random.default_rng(1)
    apart = _counts(list(range(1, 11)) * 5, list(generator.integers(0, 2, 50)))
    assert share_of(apart, lambda number: number > 0).n > 25
    assert share_of(_counts([1, 2], [0, 0]), lambda number: number > 0).n == 2


def runs_of(failures: dict[Setting, list[int]]) -> Runs:
    """Runs like those of a sweep: seeds 1 to n, every transfer takes 100 s."""
    frames = {
        setting: pd.DataFrame(
            {
                "seed": np.arange(1, len(own) + 1),
                "time_from_start": 100.0,
                "path.0.failures": own,
            }
        )
        for setting, own in failures.items()
    }
    return Runs(frames, {}, {})


def _claim(name: str, runs: Runs) -> Verdict:
    (claim,) = (one for one in PAPER.claims if one.id == name)
    return judge(PAPER, claim, runs).verdict


@pytest.mark.parametrize(
    ("with_failovers", "verdict"),
    [(94, Verdict.HOLDS), (0, Verdict.FAILS), (94 + 10, Verdict.HOLDS), (160, Verdict.FAILS)],
)
def test_shares_of_transfers_are_judged(with_failovers: int, verdict: Verdict) -> None:
    # Of 200 transfers: 53 % without (94 with), and a third of those with two.
    numbers = [0] * (200 - with_failovers) + [1] * (with_failovers - with_failovers // 3)
    numbers += [2] * (200 - len(numbers))
    assert _claim("F04", runs_of({Transfer(2, 0, 0): numbers})) is verdict


def test_all_alternate_losses_are_counted_together() -> None:
    runs = runs_of({Transfer(6, 0, 2): [0] * 60, Transfer(6, 5, 2): [1] * 60})
    assert with_failover(runs, 6, 2).mean == 0.5
    with pytest.raises(NotThereError):
        with_failover(runs, 6, 3)


def test_the_proposed_mechanism_may_not_declare_more_failures() -> None:
    points: dict[Setting, list[int]] = {Transfer(8, 0, 0): [400] * 20, Transfer(8, 0, 5): [0] * 20}
    proposed = Transfer(8, 0, 5, "two-phase")
    assert _claim("F22", runs_of({**points, proposed: [0] * 20})) is Verdict.HOLDS
    assert _claim("F22", runs_of({**points, proposed: [40] * 20})) is Verdict.FAILS


def test_failovers_are_counted_until_the_last_byte_is_delivered() -> None:
    # The SHUTDOWN is lost, times out, and with PMR 0 the path is inactive: not in the transfer.
    scenario = Transfer(0, 0, 0).scenario()
    lost = {"path.primary.loss": None, "path.primary.forward.loss": {"shutdown": [1]}}
    small = scenario.with_({"workload.size": "100 kB", **lost})
    late = polypath.simulate(small).metrics
    assert (late["failures"], late["path.0.failures"]) == (1, 0)
    in_time = {**lost, "path.primary.forward.loss": {"data": [69]}}  # the last
    early = polypath.simulate(small.with_(in_time)).metrics
    assert (early["failures"], early["path.0.failures"]) == (1, 1)


def test_the_model_is_set_beside_the_best_threshold_of_each_point() -> None:
    points = [Transfer(5, a, 0, "model", primary_rtt=90, alternate_rtt=90) for a in (0, 8)]
    seconds: dict[Setting, list[float]] = {
        points[0]: [180.0, 220.0],
        permanent(0, 5, 0): [90.0, 110.0],
        permanent(5, 5, 0): [300.0, 300.0],
        points[1]: [99.0, 101.0],
        permanent(0, 5, 8): [150.0, 250.0],
        permanent(None, 5, 8): [100.0, 100.0],
    }
    frames = {
        setting: pd.DataFrame({"seed": [1, 2], "time_from_start": own})
        for setting, own in seconds.items()
    }
    section = PAPER.figure("IV.2")
    frame, _ = section.draw(Runs(frames, {}, {}), Grid(tuple(points), 2))
    assert list(frame["best"]) == ["CPT 0", "CPT infinite"]
    assert list(frame["change"]) == pytest.approx([1.0, 0.0])
    told = section.summary(frame)
    assert told.table is not None
    (row,) = told.table.to_dict("records")
    assert (row["RTT [ms]"], row["primary"], row["0 %"]) == ("90 / 90", "5 %", "+100 ± 0")
    assert "At 1 of 2 points the model is at most 5 % longer, at 1 surely more" in told.says[1]
    assert "the model +50.0 % (at worst +100 %), CPT 0 +50.0 % (at worst +100 %)" in told.says[2]
    # Without the thresholds there is no comparison, and no summary.
    alone, _ = section.draw(Runs({points[0]: frames[points[0]]}, {}, {}), Grid((points[0],), 2))
    assert section.summary(alone).table is None


def test_only_the_papers_thresholds_are_compared_with_ns2() -> None:
    known = samples()[NS2]
    # Set a has 0 and 5 as "raw0" and "raw5"; set b as they are, and infinity as a large number.
    assert known[permanent(0, 5, 0)].n == 3 + 4
    assert known[permanent(1, 5, 0)].n == 4
    assert permanent(None, 5, 2) == Transfer(5, 2, 0)
    assert known[Transfer(5, 2, 0)].n == 4
    assert known[Transfer(2, 0, 0)].failed_over == (1, 2)
    found = nearest(Transfer(5, 1, 0, "permanent", 0, alternate_rtt=210), known.keys())
    assert found is not None
    assert found[1] == "alternate 0 % in place of 1 %"
    assert nearest(Transfer(5, 1, 0, paths=3), known.keys()) is None
