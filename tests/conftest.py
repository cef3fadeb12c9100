"""Fixtures of the end-to-end tests: real processes of the `polypath` program, and nothing else.

A test that needs features of the machine lists them in `@pytest.mark.needs(...)`. It is skipped on
machines without them; with CI=true a skip is a failure.

A test that compares clock times is marked `clock`. `make test-clock` runs these alone, one after the
other. One that fails while the machine was late is repeated; the last attempt allows for the measured
lateness.
"""

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from programs import table
from support import lateness, namespaces, program

# Maximum attempts of a test that compares clock times, on a busy machine.
ATTEMPTS = 4

# Debian's directories of ip, tc and ethtool.
os.environ["PATH"] += os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"

# A shell starts what runs in its background with SIGINT ignored. Processes inherit that, and tests send it to them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A temporary directory for identity and known hosts, shared by all workers.
if "PYTEST_XDIST_WORKER" not in os.environ:
    SETTINGS = tempfile.TemporaryDirectory(prefix="polypath-tests-")
    os.environ["XDG_CONFIG_HOME"] = SETTINGS.name


@functools.cache
def _missing(what: str) -> str | None:
    if what == "root":
        return None if os.geteuid() == 0 else "not root"
    if what == "namespaces":
        return namespaces.problem()
    if what == "tun":
        return None if Path("/dev/net/tun").exists() else "no /dev/net/tun"
    if what.endswith(".h"):
        found = subprocess.run(["gcc", "-E", "-x", "c", "-"], input=f"#include <{what}>\n", text=True,
                               capture_output=True, check=False)
        return None if found.returncode == 0 else f"no {what}"
    return None if shutil.which(what) else f"no {what}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    for item in items:
        if item.get_closest_marker("clock"):
            item.add_marker(pytest.mark.xdist_group("clock"))


class Clock:
    """How late the machine was since the test began, for a test that compares clock times. Only the last
    attempt allows for lateness; earlier ones are repeated instead."""

    def __init__(self, attempt: int, watch: lateness.Watch | None):
        self.attempt, self.watch, self.began = attempt, watch, time.monotonic()

    def late(self) -> lateness.Lateness:
        """The lateness to allow for in comparisons."""
        return self.watch.since(self.began) if self.watch else lateness.NONE


@functools.cache
def _watch() -> lateness.Watch:
    """One watch for the session; it ends with the process."""
    return lateness.Watch()


CLOCK = pytest.StashKey[Clock]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Repeat tests that fail while the machine is late, and no others."""
    if item.get_closest_marker("clock") is None:
        return None
    watch = _watch()
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(1, ATTEMPTS + 1):
        began = time.monotonic()
        item.stash[CLOCK] = Clock(attempt, watch if attempt == ATTEMPTS else None)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        late = watch.since(began)
        if attempt == ATTEMPTS or not any(report.failed for report in reports) or not late.busy():
            break
        why = next(report for report in reports if report.failed).longrepr
        words = getattr(getattr(why, "reprcrash", None), "message", str(why)).partition("\n")[0]
        print(f"\n{item.nodeid}: repeated, the machine was {late}: {words}", file=sys.__stderr__)
    for report in reports:
        report.sections.append(("machine", str(late)))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.fixture
def clock(request) -> Clock:
    """How late the machine was."""
    return request.node.stash[CLOCK]


def pytest_runtest_setup(item: pytest.Item) -> None:
    group = item.get_closest_marker("xdist_group")
    if group and "PYTEST_XDIST_WORKER" in os.environ:
        # These tests must not run concurrently, and pytest-xdist ignores groups silently in some modes.
        assert item.nodeid.endswith(f"@{group.args[0]}"), "pytest-xdist does not see groups"
    for mark in item.iter_markers("needs"):
        for what in mark.args:
            problem = _missing(what)
            if problem:
                pytest.skip(problem)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped ({call.excinfo and call.excinfo.value}), which CI does not allow"
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if table.WRITES and exitstatus == 0:
        table.write()


@pytest.fixture
def processes(tmp_path):
    """Starts processes and stops them at the end of the test."""
    with program.Processes(tmp_path) as started:
        yield started


@pytest.fixture
def hosts():
    """Two hosts (network namespaces) joined by two paths of 10 Mbit/s."""
    with namespaces.TwoHosts() as made:
        yield made
