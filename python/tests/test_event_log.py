"""Event logs of real processes, and broken ones."""

import json
import re
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from polypath import EventLog, read_log


@pytest.fixture
def log(binary: str, tmp_path: Path) -> EventLog:
    """The log of a client that measures two paths over the loopback interface for a second."""
    errors = tmp_path / "errors"
    options = ["-s", "-1", "--bind", "127.0.98.1,127.0.98.2", "-u", "0", "--plain", "--anyone"]
    with errors.open("wb") as output:
        server = subprocess.Popen([binary, "perf", *options], stderr=output)
    try:
        end = time.monotonic() + 60
        while not (port := re.search(r"UDP port (\d+)", errors.read_text())):
            assert time.monotonic() < end, errors.read_text()
            time.sleep(0.02)
        peers = [f"127.0.98.{host}:{port[1]}" for host in (1, 2)]
        file = tmp_path / "client.sqlog"
        options = ["-c", peers[0], "--via", peers[1], "--plain", "-t", "1", "--limit", "20Mbit/s"]
        command = [binary, "perf", *options, "--log", str(file)]
        subprocess.run(command, check=True, capture_output=True)
        server.wait(60)
    finally:
        server.kill()
        server.wait()
    return read_log(file)


def test_a_log_has_the_samples_of_each_path(log: EventLog) -> None:
    assert log.head["trace"]["vantage_point"]["type"] == "client"
    assert set(log.samples["path"]) == {0, 1}
    last = log.samples.groupby("path").last()
    assert last["data_bytes_sent"].sum() > 2_000_000
    assert log.samples["time"].is_monotonic_increasing
    assert set(log.samples["state"]) <= {"active", "unconfirmed"}
    assert log.events["event"].iloc[-1] == "association_closed"
    events = log.events.to_dict("records")
    assert events[-1]["data"]["graceful"]
    states = [one for one in events if one["event"] == "path_state_updated"]
    assert (0, "active") in {(one["path"], one["data"]["new"]) for one in states}


def test_a_log_is_drawn(log: EventLog) -> None:
    figure = log.plot()
    rates, windows, times = figure.axes
    assert [axes.get_ylabel() for axes in (rates, windows, times)] == [
        "rate [Mbit/s]",
        "congestion window [kB]",
        "RTT [ms]",
    ]
    legend = rates.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["path 0", "path 1"]
    # At least 7 pt, so that print is readable.
    labels = [*rates.get_xticklabels(), *legend.get_texts()]
    assert min(float(text.get_fontsize()) for text in labels) >= 7
    plt.close(figure)


def test_a_log_that_ends_within_a_record_is_read_up_to_there(tmp_path: Path) -> None:
    head = {"file_schema": "urn:ietf:params:qlog:file:sequential"}
    event = {"time": 1500.0, "name": "sctp:path_added", "group_id": "0.1", "data": {"path": 1}}
    texts = [b"\x1e" + json.dumps(record).encode() + b"\n" for record in (head, event)]
    file = tmp_path / "cut.sqlog"
    file.write_bytes(b"".join(texts) + texts[1][:20])
    log = read_log(file)
    expected = pd.DataFrame(
        [[1.5, "0.1", "path_added", 1, {}]],
        columns=["time", "association", "event", "path", "data"],
    )
    pd.testing.assert_frame_equal(log.events, expected)
    assert log.samples.empty


@pytest.mark.parametrize("content", [b"", b"{}", b"\x1e{}\n", b"\x1enothing\n"])
def test_other_files_are_rejected(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "other"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"no event log|no sequence of JSON texts"):
        read_log(file)
