"""Two hundred random scripts of losses in polypath and in ns-2: the same packets at the same times.

A script that differs outside the classes of docs/ns2-differences.md fails the test with the seed
that replays it: ``polypath-lab compare --random 1 --seed N``.
"""

import os

import pytest

from polypath.ns2.random_scripts import judge_many, summary

SCRIPTS = 200

#: Combinations of retransmission policy and extensions that agree, with the number of paths.
AGREEING = [("same", 1)]


@pytest.mark.usefixtures("ns")
@pytest.mark.parametrize(("combination", "paths"), AGREEING)
def test_random_scripts_agree_packet_by_packet(combination: str, paths: int) -> None:
    jobs = os.cpu_count() or 1
    verdicts = list(judge_many(range(SCRIPTS), jobs, combination=combination, paths=paths))
    assert len(verdicts) == SCRIPTS
    bad = [one for one in verdicts if not one.agrees and one.accepted is None]
    lines = [f"seed {one.seed}: {one.text}" for one in bad]
    assert not bad, "\n".join([summary(verdicts), *lines])
    # The scripts are no walk in the park: most lose something, many time out.
    assert sum(one.packets for one in verdicts) > 100 * SCRIPTS
