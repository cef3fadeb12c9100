"""Random scripts of losses in polypath and in ns-2: the same packets at the same times.

A script that differs outside the classes of docs/ns2-differences.md fails the test with the seed
that replays it: ``polypath-lab compare --random 1 --seed N --combination C --paths P``. With
POLYPATH_SCRIPTS=200 every combination runs two hundred (``make differential``).
"""

import os
import random

import pytest

from polypath.ns2.random_scripts import judge, judge_many, summary
from polypath.ns2.scripts import CONCURRENT
from polypath.packets import HEARTBEAT
from polypath.papers.natarajan2009.settings import VARIANTS, Failure
from polypath.scenario import Scenario

SCRIPTS = 200

#: Retransmission policies, and with them all that Fig. 7 of caro2006-retransmission combines.
COMBINATIONS = [
    "same",
    "same+mfr",
    "same+ts",
    "same+mfr-ts",
    "alternate",
    "alternate+har",
    "alternate+ts",
    "hybrid",
    "hybrid+har",
    "hybrid+ts",
    "hybrid+mfr",
    "hybrid+mfr-har",
    "hybrid+mfr-ts",
]


#: Failover mechanisms, with AllRtxSame and paths that fail.
FAILOVERS = ["dormant-hop", "dormant-primary", "dormant-last-dest", "permanent"]


def agree(
    combination: str,
    paths: int,
    scripts: int,
    failover: str | None = None,
    *,
    wide: bool = False,
) -> None:
    """Fails with the seeds that differ, unless they belong to an accepted class."""
    jobs = os.cpu_count() or 1
    seeds = range(scripts)
    verdicts = list(
        judge_many(seeds, jobs, combination=combination, paths=paths, failover=failover, wide=wide)
    )
    assert len(verdicts) == scripts
    bad = [one for one in verdicts if not one.agrees and one.accepted is None]
    lines = [f"seed {one.seed}: {one.text}" for one in bad]
    assert not bad, "\n".join([summary(verdicts), *lines])
    # The scripts are demanding: most lose packets, and many have timeouts.
    assert sum(one.packets for one in verdicts) > 100 * scripts
    assert sum(one.agrees for one in verdicts) > 0.7 * scripts
    kind = ", wide" if wide else ""
    print(f"{combination}, {paths} path(s){kind}: {summary(verdicts)}")


@pytest.mark.usefixtures("ns")
def test_two_hundred_scripts_on_one_path_agree_packet_by_packet() -> None:
    agree("same", 1, SCRIPTS)


@pytest.mark.usefixtures("ns")
@pytest.mark.parametrize("combination", COMBINATIONS)
def test_every_combination_on_two_paths_agrees_packet_by_packet(combination: str) -> None:
    agree(combination, 2, int(os.environ.get("POLYPATH_SCRIPTS", "20")))


@pytest.mark.usefixtures("ns")
@pytest.mark.parametrize("combination", [*COMBINATIONS, *CONCURRENT])
def test_any_links_queues_windows_and_outages_agree_packet_by_packet(combination: str) -> None:
    agree(combination, 3, int(os.environ.get("POLYPATH_SCRIPTS", "6")), wide=True)


@pytest.mark.usefixtures("ns")
def test_ns2_drops_what_a_full_receive_buffer_waits_for() -> None:
    found = judge(70, combination="alternate+ts", paths=3, wide=True)
    assert found.accepted == "full-buffer", found.text


@pytest.mark.usefixtures("ns")
@pytest.mark.parametrize(
    ("seed", "combination"),
    [(112, "cmt-pf-ssthresh"), (177, "cmt-pf-ssthresh"), (159, "cmt-pf-cwnd")],
)
def test_ties_of_potentially_failed_paths_are_drawn_as_in_ns2(seed: int, combination: str) -> None:
    """Two or three paths have failed at the same instant."""
    found = judge(seed, combination=combination, paths=3, wide=True)
    assert found.agrees, found.text


@pytest.mark.usefixtures("ns")
def test_retransmissions_after_a_timeout_count_towards_max_burst_of_a_path_that_returns() -> None:
    found = judge(61, combination="cmt-pf-ssthresh", paths=3, wide=True)
    assert found.agrees, found.text


@pytest.mark.usefixtures("ns")
@pytest.mark.parametrize("combination", ["alternate+har", "hybrid+mfr-har"])
def test_heartbeats_after_timeouts_agree_where_every_path_fails(combination: str) -> None:
    agree(combination, 2, int(os.environ.get("POLYPATH_SCRIPTS", "12")), "dormant-hop")


@pytest.mark.usefixtures("ns")
@pytest.mark.parametrize("failover", FAILOVERS)
def test_failing_paths_agree_packet_by_packet(failover: str) -> None:
    agree("same", 2, int(os.environ.get("POLYPATH_SCRIPTS", "20")), failover)


@pytest.mark.usefixtures("ns")
@pytest.mark.parametrize("combination", CONCURRENT)
def test_concurrent_multipath_transfer_agrees_packet_by_packet(combination: str) -> None:
    # Ties between paths are drawn by the same generator from the same seed.
    agree(combination, 2, int(os.environ.get("POLYPATH_SCRIPTS", "12")))


@pytest.mark.usefixtures("ns")
@pytest.mark.parametrize("combination", ["cmt-pf-cwnd", "cmt-pf-ssthresh"])
def test_potentially_failed_paths_that_fail_agree_packet_by_packet(combination: str) -> None:
    scripts = int(os.environ.get("POLYPATH_SCRIPTS", "20"))
    agree(combination, 2, scripts, "cmt-potentially-failed")


@pytest.mark.usefixtures("ns")
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_failure_of_natarajan2009_agrees_packet_by_packet(variant: str) -> None:
    """Figure 2's transfers, PMR 2, with 1 % of all packets lost by script.

    Path 2 is 3 us longer: over equal paths, data would arrive over both at the same instant.
    """
    from polypath.ns2.compare import compare

    dice = random.Random(variant)
    lost = {
        f"path.{path}.{way}.loss": {"packets": [n for n in range(6, 9000) if dice.random() < 0.01]}
        for path in ("primary", "alternate")
        for way in ("forward", "back")
    }
    found = compare(
        Failure(variant, 2)
        .scenario()
        .with_(
            {
                "path.primary.loss": None,
                "path.alternate.loss": None,
                "path.alternate.delay": "25.003 ms",
                "transport.profile": "ns2-2.35",
                "transport.path_confirmation": None,
                "transport.heartbeat_interval": "1 h",
                "workload.size": "8 MiB",
                **lost,
            }
        )
    )
    assert found.agrees, str(found)
    # Nine seconds over two paths, and for CMT-PF seven over one.
    assert found.packets > 5000


BROKEN = """
schema = 1
name = "the primary path breaks"
topology = "two-paths"

[transport]
profile = "ns2-2.35"
heartbeat_interval = "1 h"

[policy]
retransmission = "hybrid"

[workload]
kind = "bulk"
size = "4 MiB"

[[fault]]
at = "4 s"
path = "primary"
kind = "down"
"""


@pytest.mark.usefixtures("ns")
def test_a_failover_agrees_packet_by_packet() -> None:
    from polypath.ns2.compare import compare

    found = compare(Scenario.from_toml(BROKEN))
    assert found.agrees, str(found)
    assert found.packets > 4000


@pytest.mark.usefixtures("ns")
@pytest.mark.parametrize("seed", range(4))
def test_a_permanent_failover_after_a_lost_heartbeat_agrees_packet_by_packet(seed: int) -> None:
    """Change Primary Threshold 1: the first failover whose HEARTBEAT is lost is permanent."""
    from polypath.ns2.compare import compare

    dice = random.Random(seed)
    lost = [[n for n in range(4, 9000) if dice.random() < 0.08] for _ in range(2)]
    edge = {"rate": "100 Mbit/s", "delay": "10 ms"}
    path = {"rate": "10 Mbit/s", "delay": "25 ms", "edge": edge}
    ways = ("forward", "back")
    broken = {way: {"loss": {"packets": own}} for way, own in zip(ways, lost, strict=True)}
    plan = {
        "schema": 1,
        "path": [{"name": "primary", **path, **broken}, {"name": "alternate", **path}],
        "transport": {
            "profile": "ns2-2.35",
            "receive_buffer": "64 KiB",
            "path_max_retrans": 0,
            "change_primary_threshold": 1,
            "heartbeat_interval": "1 h",
        },
        "policy": {
            "retransmission": "hybrid",
            "loss": "multiple-fast-retransmit",
            "failover": "permanent",
        },
        "workload": {"kind": "bulk", "size": "2 MiB"},
    }
    found = compare(Scenario.from_dict(plan))
    assert found.agrees, str(found)
    failures = [hop for hop in found.ours.sent if HEARTBEAT in hop.content.kinds]
    assert len(failures) > 1
