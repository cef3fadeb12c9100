"""Fixtures of the end-to-end tests: real processes of the `polypath` program, and nothing else.

A test that needs what the machine has not says so by `@pytest.mark.needs(...)`. It is skipped there;
with CI=true a skip is a failure.
"""

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from support import namespaces, program

# Where Debian has ip, tc and ethtool, whoever's path this is.
os.environ["PATH"] += os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"


# Nobody's own identity and known hosts; of all workers the same.
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    group = item.get_closest_marker("xdist_group")
    if group and "PYTEST_XDIST_WORKER" in os.environ:
        # Such tests must not meet, and pytest-xdist says nothing where it cannot keep them apart.
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


@pytest.fixture
def processes(tmp_path):
    """Starts processes and sees to it that none is left."""
    with program.Processes(tmp_path) as started:
        yield started


@pytest.fixture
def hosts():
    """Two hosts (network namespaces) joined by two paths of 10 Mbit/s."""
    with namespaces.TwoHosts() as made:
        yield made
