"""Shared by the tests: small scenarios, and a backend that needs no display."""

import os
import shutil
from collections.abc import Generator

import matplotlib as mpl
import pytest

from polypath import Scenario

mpl.use("Agg")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups begin first, because they take longest: one worker runs a whole group."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CI=true a skip is a failure."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr}, which CI does not allow"
    return report


@pytest.fixture
def lossy() -> Scenario:
    """Half a megabyte over two paths that lose packets: a millisecond of work."""
    return Scenario(
        name="lossy",
        path=[
            {"rate": "10 Mbit/s", "delay": "20 ms", "loss": "3 %"},
            {"rate": "5 Mbit/s", "delay": "40 ms", "loss": "1 %"},
        ],
        workload={"kind": "bulk", "size": "500 kB"},
    )


@pytest.fixture
def failing() -> Scenario:
    """The path in use breaks for good while data flows."""
    return Scenario(
        name="failing",
        path=[{"name": "first", "rate": "10 Mbit/s", "delay": "20 ms"}, {"rate": "5 Mbit/s"}],
        transport={"profile": "rfc9260", "path_max_retrans": 1, "rto_max": "2 s"},
        workload={"kind": "bulk", "size": "2 MB"},
        traffic=[{"from": "sender.0", "to": "receiver.0", "rate": "1 Mbit/s"}],
        fault=[{"at": "500 ms", "path": "first", "kind": "down"}],
    )


@pytest.fixture
def ns() -> None:
    """Requires ns-2: without it the test is skipped, or fails in CI."""
    if shutil.which("ns") is None:
        missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missing("no ns: scripts/setup.sh test installs Debian's package ns2")


@pytest.fixture
def binary() -> str:
    """The program `polypath` to compare with; without it the test is skipped."""
    path = os.environ.get("POLYPATH_BIN")
    if not path:
        pytest.skip("POLYPATH_BIN names no program to compare with")
    return path
