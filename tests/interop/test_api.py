"""The socket API on Linux's SCTP and under `polypath run`: the same programs, compared line by line."""

import subprocess
from fnmatch import fnmatchcase

import pytest

from interop.conftest import NEEDS
from interop.peers import Case
from support import program, statements
from support.namespaces import Namespace
from support.program import wait_until

# As a Linux host is set up: the guest has these extensions on for other tests.
DEFAULTS = ("net.sctp.auth_enable", "net.sctp.addip_enable", "net.sctp.reconf_enable")
# The peer of this case: its tests share a guest.
LINUX = pytest.param(Case("linux", True, False), id="linux", marks=pytest.mark.needs(*NEEDS["linux"]))


@pytest.fixture
def alone():
    """A host with a loopback interface alone: a socket bound to the wildcard address announces all others."""
    with Namespace() as host:
        yield host


@pytest.fixture
def guest(made):
    guest = made.guest("linux")

    def enable(value):
        guest.run("sysctl -qw " + " ".join(f"{name}={value}" for name in DEFAULTS))

    enable(0)
    yield guest
    enable(1)


def wrong(name: str, linux: dict[str, str], polypath: dict[str, str]) -> list[str]:
    """Statements that differ without an entry in the table, and entries that are not so."""
    known = statements.differences(name)
    found, used = [], set()
    for statement in {**linux, **polypath}:
        one, other = linux.get(statement), polypath.get(statement)
        if one is None or other is None:
            found.append(f"{statement}: printed by one side only: Linux {one}, polypath {other}")
        elif one != other:
            entries = [entry for entry in known if fnmatchcase(statement, entry) and known[entry].holds(one, other)]
            used |= set(entries)
            if not entries:
                found.append(f"{statement}: Linux {one}, polypath {other}")
    return found + [f"{entry}: no longer differs so: {known[entry]}" for entry in known if entry not in used]


@pytest.mark.parametrize("case", [LINUX])
@pytest.mark.parametrize("name", statements.PROGRAMS)
def test_the_socket_api_is_that_of_linux(guest, alone, processes, name, case):
    """Results, errors and notifications. tests/run-differences.toml has what differs, with reasons."""
    # The guest sees the host's files; /tmp may be mounted without execution.
    path = statements.compiled(program.target() / "statements", name)
    ours = processes.start(program.binary(), "run", "--", path, inside=alone.inside, stdin=subprocess.DEVNULL)
    theirs = guest.start([str(path)], None)
    wait_until(theirs.over, 60, lambda: f"{name} does not end in the guest: {theirs.out}", alive=guest.popen)
    ours.wait()
    linux, polypath = statements.results(theirs.out), statements.results(ours.out)
    assert linux and polypath, f"{theirs.out} {ours.out} {ours.err}"
    differs = wrong(name, linux, polypath)
    assert not differs, "\n".join(differs)
