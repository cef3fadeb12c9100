"""The C programs tests/run-*.c, which print a line for each statement about the socket API.

A line is "ok NAME: TEXT" or "failed NAME: TEXT (errno ...)" for a statement that holds or not, and
"found NAME: TEXT = RESULT" for one whose result is compared with that of the kernel.
"""

import dataclasses
import os
import subprocess
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from support.program import ROOT

#: Programs that run on Linux's SCTP, too. The statements of run-ends.c are partly about `polypath run` itself.
PROGRAMS = ("run-api", "run-many", "run-options", "run-lengths", "run-calls", "run-data",
            "run-notifications", "run-ipv6", "run-listeners", "run-refusals", "run-failures",
            "run-associations", "run-descriptors")
# These take up to a minute, most of it waiting, and begin first.
LONG = ("run-associations", "run-descriptors")


def case(name: str, *values: object) -> object:
    """A program as a parameter of a test, with further values."""
    return pytest.param(name, *values, marks=[pytest.mark.long] if name in LONG else [])


BY_NAME = [case(name) for name in PROGRAMS]
DIFFERENCES = ROOT / "tests" / "run-differences.toml"


@dataclasses.dataclass(frozen=True)
class Difference:
    """Statements whose results on Linux's SCTP and under `polypath run` differ, and why. The name and the
    results are patterns."""

    linux: str
    polypath: str
    reason: str

    def holds(self, linux: str, polypath: str) -> bool:
        """Whether these results differ as in the entry."""
        return fnmatchcase(linux, self.linux) and fnmatchcase(polypath, self.polypath)


def differences(program: str) -> dict[str, Difference]:
    """The known differences of a program's statements."""
    table = tomllib.loads(DIFFERENCES.read_text())
    assert set(table) <= set(PROGRAMS), set(table) - set(PROGRAMS)
    return {statement: Difference(**fields) for statement, fields in table.get(program, {}).items()}


def compiled(folder: Path, name: str, *, static: bool = False) -> Path:
    """A program, in this folder; a static one makes its system calls itself."""
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / (f"{name}-static" if static else name)
    new = folder / f"{out.name}-{os.getpid()}"
    source = ROOT / "tests" / f"{name}.c"
    options = ["-static", "-DSTATIC"] if static else []
    command = ["gcc", "-Wall", "-Werror", "-O2", *options, "-o", new, source, "-lsctp", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # Replace it atomically: another worker may be using it.
    return new.replace(out)


def results(output: str) -> dict[str, str]:
    """The result of each statement in a program's output."""
    found: dict[str, str] = {}
    for line in output.splitlines():
        kind, _, rest = line.partition(" ")
        name, _, value = rest.partition(" = ")
        if kind in ("ok", "failed"):
            name, value = rest.partition(" (errno")[0], kind
        elif kind != "found":
            continue
        assert name not in found, f"two statements are called {name!r}"
        found[name] = value
    return found
