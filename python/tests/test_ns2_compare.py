"""The differential test itself: the differences that it finds, reports and accepts."""

import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polypath import Scenario, ScenarioError, schema
from polypath._core import quantity
from polypath.lab import main
from polypath.ns2.compare import compare, side_by_side
from polypath.ns2.comparison import Comparison
from polypath.ns2.mapping import setup
from polypath.ns2.scripts import COMBINATIONS, CONCURRENT, FAILOVERS, scenario
from polypath.ns2.transport import failover, policies
from polypath.ns2.variables import PathSeries
from polypath.ns2.view import Content, Hop, View

pytestmark = pytest.mark.filterwarnings("ignore:transport.profile:UserWarning")

TRANSFER = Scenario(
    path=[{"rate": "10 Mbit/s", "delay": "45 ms"}],
    transport={"profile": "rfc9260", "sack_every": 1},
    workload={"kind": "bulk", "messages": 3},
)


def data(time: float, tsn: int, arrival: float, *, fate: str = "delivered") -> Hop:
    content = Content(0, 0, 1500, (0,), (tsn,), False, None, (), ())
    return Hop(time, "path0/forward", content, fate, arrival, True)


def sack(time: float, cumulative: int, gaps: Sequence[tuple[int, int]] = ()) -> Hop:
    content = Content(1, 0, 48 + 4 * len(gaps), (3,), (), False, cumulative, tuple(gaps), ())
    return Hop(time, "path0/back", content, "delivered", time + 0.045, True)


RUN = [data(0.0, 1, 0.0462), data(0.0, 2, 0.0474), sack(0.0474, 2), data(0.0924, 3, 0.1386)]


def found(ours: list[Hop], theirs: list[Hop]) -> Comparison:
    views = (View(hops, 0.2, 0.0, True, []) for hops in (ours, theirs))
    return side_by_side(TRANSFER, setup(TRANSFER), *views)


def test_equal_runs_agree_to_the_end() -> None:
    same = found(RUN, [replace(hop, time=hop.time + 1e-6) for hop in RUN])
    assert same.agrees
    assert same.packets == 4
    assert same.largest == pytest.approx(1e-6)
    assert str(same) == "4 packets agree to the end, largest difference 1 us"


@pytest.mark.parametrize(
    ("change", "what", "agreeing"),
    [
        ({2: sack(0.0474, 1)}, "another packet", 2),
        ({2: sack(0.0474, 2, [(4, 4)])}, "another packet", 2),
        ({3: data(0.0925, 3, 0.1387)}, "another time (-100 us)", 3),
        ({1: data(0.0, 2, math.nan, fate="lost")}, "another fate", 0),
        ({3: data(0.0924, 3, 0.1400)}, "another arrival", 3),
        ({3: None}, "one side sends a packet more", 3),
    ],
)
def test_the_first_packet_that_differs_is_found(
    change: dict[int, Hop | None], what: str, agreeing: int
) -> None:
    changed = [change.get(index, hop) for index, hop in enumerate(RUN)]
    difference = found(RUN, [hop for hop in changed if hop is not None])
    assert difference.difference is not None
    assert difference.difference.what == what
    assert difference.packets == agreeing
    assert difference.accepted is None
    report = difference.report()
    assert str(difference) in report
    assert "* " in report


def test_the_earliest_difference_counts_on_whatever_link() -> None:
    theirs = [RUN[0], RUN[1], sack(0.0474, 1), data(0.05, 3, 0.1)]
    difference = found(RUN, theirs).difference
    assert difference is not None
    assert difference.link == "path0/back"


def test_a_packet_that_one_side_had_still_to_send_says_nothing() -> None:
    assert found([*RUN, data(0.2, 4, math.nan)], RUN).agrees


def test_a_timer_that_ties_with_an_arrival_is_an_accepted_class() -> None:
    # The receiver had DATA 1 just 200 ms before DATA 2.
    both = [data(0.0, 1, 0.0462), data(0.2, 2, 0.2462)]
    ours, theirs = [*both, sack(0.2462, 2)], [*both, sack(0.2462, 1)]
    assert found(ours, theirs).accepted == "sack-timer-tie"
    # Neither a timer of another length nor a SACK that omits earlier DATA is in the class.
    later = [data(0.0, 1, 0.0462), data(0.21, 2, 0.2562)]
    assert found([*later, sack(0.2562, 2)], [*later, sack(0.2562, 1)]).accepted is None
    early = [data(0.0, 1, 0.0462), data(0.1, 2, 0.1462)]
    assert found([*early, sack(0.2462, 2)], [*early, sack(0.2462, 1)]).accepted is None


def heartbeat(time: float) -> Hop:
    content = Content(0, 0, 56, (4,), (), False, None, (), ())
    return Hop(time, "path0/forward", content, "delivered", time + 0.045, True)


def test_data_that_comes_over_two_paths_at_once_is_an_accepted_class() -> None:
    path: schema.Path = {"rate": "10 Mbit/s", "delay": "45 ms"}
    plan = Scenario(
        path=[path, path],
        transport={"profile": "rfc9260"},
        workload={"kind": "bulk", "messages": 3},
    )

    def judged(arrival: float) -> str | None:
        first = data(0.001, 1, arrival)
        first = replace(first, link="path1/forward", content=replace(first.content, path=1))
        run = [data(0.0, 2, 0.0474), first]
        views = (View([*run, sack(0.0474, tsn)], 0.2, 0.0, True, []) for tsn in (2, 0))
        return side_by_side(plan, setup(plan), *views).accepted

    assert judged(0.0474) == "arrival-tie"
    assert judged(0.0470) is None


def test_heartbeats_of_an_idle_path_may_jitter_and_those_of_a_timeout_may_not() -> None:
    def accepted(ours: list[Hop], theirs: list[Hop]) -> str | None:
        views = (View([*RUN, *hops], 200.0, 0.0, True, []) for hops in (ours, theirs))
        return side_by_side(TRANSFER, setup(TRANSFER), *views).accepted

    assert accepted([heartbeat(30.5)], [heartbeat(31.4)]) == "heartbeat-jitter"
    assert accepted([heartbeat(30.5)], [heartbeat(99.0)]) is None
    assert accepted([heartbeat(30.5)], []) is None
    again = replace(data(30.5, 3, 30.6), content=replace(RUN[0].content, retransmission=True))
    assert accepted([heartbeat(30.5), again], [again, heartbeat(31.0)]) is None


def test_two_timers_of_one_instant_are_an_accepted_class() -> None:
    def state(path: int, times: list[float], errors: list[int]) -> PathSeries:
        values: dict[str, Any] = {
            name: np.zeros(len(times)) for name in (*PathSeries.COLUMNS, "timeouts")
        }
        values.update(time=np.array(times), error_count=np.array(errors))
        return PathSeries(association="main", side="sender", path=path, **values)

    def accepted(expired: float) -> str | None:
        again = replace(data(1.0, 1, 1.05), content=replace(RUN[0].content, retransmission=True))
        ours = [state(0, [0.0, 1.0], [0, 1]), state(1, [0.0, expired], [0, 1])]
        theirs = [state(0, [0.0, 1.0], [0, 1]), state(1, [0.0], [0])]
        views = (
            View([RUN[0], data(1.0, 7, 1.05)], 2.0, 0.0, True, ours),
            View([RUN[0], again], 2.0, 0.0, True, theirs),
        )
        return side_by_side(TRANSFER, setup(TRANSFER), *views).accepted

    assert accepted(1.0) == "timer-tie"
    assert accepted(0.5) is None


def test_a_packet_at_a_full_queue_that_another_leaves_is_an_accepted_class() -> None:
    # DATA 1 has left the queue when its last bit leaves, 45 ms before it arrives.
    ours = [data(0.0, 1, 0.0462), data(0.0012, 2, math.nan, fate="queue")]
    theirs = [data(0.0, 1, 0.0462), data(0.0012, 2, 0.0474)]
    assert found(ours, theirs).accepted == "queue-tie"
    later = [data(0.0, 1, 0.0463), ours[1]], [data(0.0, 1, 0.0463), theirs[1]]
    assert found(*later).accepted is None
    lost = [ours[0], data(0.0012, 2, math.nan, fate="lost")]
    assert found(lost, theirs).accepted is None


def test_t3_rtx_that_ties_with_a_sack_is_an_accepted_class() -> None:
    def accepted(arrival: float, rto: float) -> str | None:
        one = data(0.0, 1, math.nan, fate="lost")
        answer = replace(sack(arrival - 0.045, 0, [(2, 2)]), arrival=arrival)
        again = replace(data(1.0, 1, 1.05).content, retransmission=True)
        runs = (
            [one, answer, replace(data(1.0, 1, 1.05), content=again)],
            [one, answer, data(1.0, 3, 1.05)],
        )
        values = {name: np.array([0.0]) for name in (*PathSeries.COLUMNS, "timeouts")}
        values["rto"] = np.array([rto])
        state = PathSeries(association="main", side="sender", path=0, **values)
        views = (View(hops, 2.0, 0.0, True, [state]) for hops in runs)
        return side_by_side(TRANSFER, setup(TRANSFER), *views).accepted

    assert accepted(1.0, 1.0) == "t3-tie"
    assert accepted(0.99, 1.0) is None
    assert accepted(1.0, 1.1) is None


def test_scripts_are_the_same_for_the_same_seed() -> None:
    one, again, other = (scenario(s, paths=2, profile="rfc9260") for s in (3, 3, 4))
    assert one == again
    assert one != other
    assert len(setup(one).paths) == 2


def test_wide_scripts_draw_what_others_keep() -> None:
    scripts = [
        scenario(seed, paths=3, combination="cmt-cwnd", wide=True).to_dict() for seed in range(60)
    ]
    assert scripts[7] == scenario(7, paths=3, combination="cmt-cwnd", wide=True).to_dict()
    rates = [quantity(path["rate"]) for one in scripts for path in one["path"]]
    assert 250e3 <= min(rates) < 1e6
    assert 30e6 < max(rates) <= 63e6
    queues = [path["queue"] for one in scripts for path in one["path"]]
    assert {int(queue.split()[0]) for queue in queues} <= {*range(6, 81), 1000}
    for name in ("path_mtu", "receive_buffer", "initial_ssthresh", "rto_min"):
        assert len({one["transport"][name] for one in scripts}) > 2
    # Delayed Ack for CMT needs delayed SACKs.
    assert {one["transport"]["sack_every"] for one in scripts} == {2}
    single = [scenario(seed, wide=True).to_dict()["transport"] for seed in range(60)]
    assert {one["sack_every"] for one in single} == {1, 2}
    assert 10 < sum("fault" in one for one in scripts) < 30


def test_delayed_ack_for_cmt_needs_delayed_sacks() -> None:
    plan = scenario(1, combination="cmt-cwnd", paths=2)
    with pytest.raises(ScenarioError, match=r"sack_every: found 1; .*2 with policy\.ack"):
        setup(plan.with_({"transport.sack_every": 1}))
    assert setup(plan.with_({"transport.sack_every": 1, "policy.ack": "delayed"}))


def test_each_combination_is_an_agent_of_ns2() -> None:
    standard = {
        "retransmission": "same",
        "loss": "standard",
        "rtt_sampling": "karn",
        "scheduler": "primary",
    }
    agents = {name: policies({**standard, **given}, given) for name, given in COMBINATIONS.items()}
    assert len({(agent, *sorted(v.items())) for agent, v in agents.values()}) == len(agents) == 16
    assert agents["same"] == ("Agent/SCTP", {"rtxToAlt_": 0})
    assert agents["alternate+mfr-har"] == ("Agent/SCTP/MfrHbAfterRto", {"rtxToAlt_": 1})
    assert agents["hybrid+ts"] == ("Agent/SCTP/Timestamp", {"rtxToAlt_": 2})
    # A profile has the names of ns-2's variants.
    named = {"loss": "ns2-multiple-fast-retransmit", "rtt_sampling": "ns2"}
    mfr = ("Agent/SCTP/MultipleFastRtx", {"rtxToAlt_": 0})
    assert policies({**standard, **named}, {}) == mfr
    both = {"rtt_sampling": "timestamps", "probing": "after-rto"}
    with pytest.raises(ScenarioError, match="policy: found standard with timestamps with after-r"):
        policies({**standard, **both}, both)


PF = {"failover": "cmt-potentially-failed"}


def test_concurrent_multipath_transfer_is_an_agent_of_its_own() -> None:
    standard = {"congestion": "ns2", "rtt_sampling": "karn", "probing": "idle"}
    agents = {name: policies({**standard, **given}, {}) for name, given in CONCURRENT.items()}
    assert {agent for agent, _ in agents.values()} == {"Agent/SCTP/CMT"}
    switches = {"useCmtReordering_": 1, "useCmtCwnd_": 1, "useCmtDelAck_": 1, "useCmtPF_": 0}
    assert agents["cmt-same"][1] == {**switches, "eCmtRtxPolicy_": 1}
    assert agents["cmt-cwnd"][1] == {**switches, "eCmtRtxPolicy_": 4}
    failing = {**switches, "useCmtPF_": 1}
    assert agents["cmt-pf-cwnd"][1] == {**failing, "eCmtRtxPolicy_": 4}
    assert agents["cmt-pf-ssthresh"][1] == {**failing, "eCmtRtxPolicy_": 2}
    for other in ("same", "asap", "loss-rate"):
        with pytest.raises(ScenarioError, match=r"policy\.retransmission"):
            policies({**standard, **CONCURRENT["cmt-pf-cwnd"], "retransmission": other}, {})
    with pytest.raises(ScenarioError, match=r"policy\.failover"):
        policies({**standard, **COMBINATIONS["same"], **PF, "scheduler": "primary"}, {})
    made = setup(scenario(1, combination="cmt-pf-cwnd", paths=2))
    # The module would loop forever at a receiver that loses a heartbeat.
    assert (made.sender["useCmtPF_"], made.receiver["useCmtPF_"]) == (1, 0)
    assert made.sender["cmtPFCwnd_"] == 2
    without = {**CONCURRENT["cmt-same"], "ack": "delayed", "cwnd_update": "standard"}
    variables = policies({**standard, **without}, {})[1]
    assert (variables["useCmtDelAck_"], variables["useCmtCwnd_"]) == (0, 0)
    with pytest.raises(ScenarioError, match=r"policy\.loss"):
        policies({**standard, **without, "loss": "multiple-fast-retransmit"}, {})


def test_each_dormant_behaviour_is_a_dormant_action_of_ns2() -> None:
    def variables(answer: str, threshold: object = "off") -> tuple[int, int]:
        found = failover({"failover": answer}, {"change_primary_threshold": threshold})
        return found["dormantAction_"], found["changePrimaryThresh_"]

    assert [variables(answer)[0] for answer in FAILOVERS] == [0, 1, 2, 0, 0]
    # The default of -1 would act as 0; only one policy uses the threshold.
    assert variables("permanent")[1] > 100_000
    assert variables("permanent", 0) == (0, 0)
    assert variables("permanent", 3) == (0, 3)
    assert variables("dormant-hop", 0)[1] > 100_000
    with pytest.raises(
        ScenarioError, match=r"policy\.failover: found .two-phase.*standard, dormant-hop"
    ):
        variables("two-phase")
    for answer in FAILOVERS:
        combination = "cmt-pf-cwnd" if answer == PF["failover"] else "same"
        sender = setup(scenario(3, combination=combination, paths=2, failover=answer)).sender
        expected = variables(answer)[0]
        assert sender["dormantAction_"] == expected
        assert sender["pathMaxRetrans_"] <= 2


@pytest.mark.usefixtures("ns")
def test_a_short_transfer_agrees_whatever_the_profile() -> None:
    result = compare(TRANSFER)
    assert result.agrees, result.report()
    assert result.packets == 6


@pytest.mark.usefixtures("ns")
def test_exit_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    agreeing, differing = tmp_path / "agreeing.toml", tmp_path / "differing.toml"
    agreeing.write_text(TRANSFER.to_toml())
    lossy = {"loss": {"packets": [5, 9, 12, 13]}}
    more = TRANSFER.with_({"workload.messages": 60, "path.0.forward": lossy})
    differing.write_text(more.to_toml())
    assert main(["compare", str(agreeing)]) == 0
    assert "6 packets agree to the end" in capsys.readouterr().out
    assert main(["compare", str(differing), "--set", "transport.sack_every=2"]) == 1
    out = capsys.readouterr().out
    assert "polypath" in out
    assert "cwnd" in out
    assert main(["compare", str(tmp_path / "none.toml")]) == 2
    assert main(["compare"]) == 2
    assert main(["compare", str(agreeing), "--set", "transport.sack_every=3"]) == 2
    assert "sack_every" in capsys.readouterr().err
    assert main(["compare", "--random", "2", "--profile", "rfc9260", "--jobs", "1"]) == 1
    assert "of 2 agree" in capsys.readouterr().out
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert main(["compare", str(agreeing)]) == 2
    assert "package ns2" in capsys.readouterr().err


@pytest.mark.usefixtures("ns")
def test_a_transfer_that_makes_the_module_loop_is_told_by_its_seed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Every path is down while chunks wait for their retransmission: the module's RTX-SAME.
    command = ["compare", "--random", "2", "--paths", "2", "--combination", "cmt-same"]
    command += ["--failover", "dormant-hop", "--jobs", "1", "--patience", "1"]
    assert main(command) == 1
    told = capsys.readouterr().out
    assert "seed 0: no answer from ns-2 within 1 s" in told
    assert "0 differ, 2 without an answer from ns-2" in told
    assert main([*command[:-1], "0"]) == 2
    assert "--patience: found 0" in capsys.readouterr().err
