"""`polypath perf`: both directions, several associations, limits, JSON, and the share of each path."""

import os
import re

import pytest

from support.program import CODE, wait_until

# Loopback addresses used only by these tests, and only by this worker.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
FIRST, SECOND = f"127.0.94.{1 + 2 * WORKER}", f"127.0.94.{2 + 2 * WORKER}"


@pytest.fixture
def perf(processes):
    """Runs a client against a server with two addresses; returns its ended process."""
    server = processes.polypath("perf", "-s", "--bind", f"{FIRST},{SECOND}", "-u", "0", "--cmt",
                                "--code-file", CODE).said("waiting on")
    port = re.search(r"UDP port (\d+)", server.err)[1]

    def run(*words: object):
        return processes.polypath("perf", "-c", f"{FIRST}:{port}", "--via", f"{SECOND}:{port}", "--code-file", CODE,
                                  *words).wait()
    run.server = server
    return run


def test_bytes_are_counted_where_they_arrive(perf):
    result = perf("-n", "10000000", "-l", "128K", "--json", "-i", "0").json
    assert result["end"]["sum_sent"]["bytes"] == 10_000_000
    assert result["end"]["sum_received"] is None
    (association,) = result["end"]["associations"]
    # The paths also carry the requests.
    assert 10_000_000 <= sum(path["bytes_sent"] for path in association["paths"]) < 10_010_000
    wait_until(lambda: "received 10.0 MB" in perf.server.err, 5, lambda: perf.server.err)


@pytest.mark.parametrize("words, up, down", [([], True, False), (["-R"], False, True), (["--bidir"], True, True)])
def test_directions(perf, words, up, down):
    result = perf("-t", "1", "--json", "-i", "0.25", "--limit", "8Mbit/s", *words).json
    for direction, expected in (("sum_sent", up), ("sum_received", down)):
        total = result["end"][direction]
        assert (total is not None) == expected
        if total:
            assert 700_000 < total["bytes"] < 1_300_000, total
            assert 5e6 < total["bits_per_second"] < 11e6, total
    assert len(result["intervals"]) >= 3
    assert result["intervals"][0][0]["start"] == 0


def test_several_associations_over_both_paths(perf):
    result = perf("-t", "1", "--json", "-P", "3", "--cmt", "--limit", "100Mbit/s").json
    assert [one["association"] for one in result["end"]["associations"]] == [0, 1, 2]
    for one in result["end"]["associations"]:
        assert [path["remote"] for path in one["paths"]] == [FIRST, SECOND]
        assert one["sent"]["bytes"] <= sum(path["bytes_sent"] for path in one["paths"]), one
    lines = perf("-t", "1", "-P", "2").out.splitlines()
    assert lines[-1].startswith("[SUM] sent ")
    assert sum(line.startswith("[  0] path 1  ") for line in lines) == 1


def test_a_client_without_the_phrase_is_refused(perf, processes):
    address = re.search(r"UDP port (\d+)", perf.server.err)[1]
    ended = processes.polypath("perf", "-c", f"{FIRST}:{address}", "--code", "lusab-babad-wrong").wait()
    ended.complains("the code phrase is wrong")
    ended = processes.polypath("send", CODE, f"{FIRST}:{address}").wait()
    ended.complains("serves only perf")
