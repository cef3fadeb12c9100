"""Builds and runs the benchmarked programs, and measures their CPU time."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
SCENARIO = ROOT / "scenarios" / "bulk-3-percent.toml"
PORT = 9931


def revision() -> str:
    """The commit that is measured."""
    return subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, check=True, capture_output=True,
                          text=True).stdout.strip()


@dataclasses.dataclass
class Run:
    """Resources and output of a process that has ended."""

    cpu: float
    wall: float
    out: str


class Failed(Exception):
    """A benchmarked program could not be built or run."""


class Process:
    """A running process whose CPU time is measured at its end."""

    def __init__(self, words: list[object]):
        self.words = [str(word) for word in words]
        self.out = tempfile.TemporaryFile("w+")
        self.err = tempfile.TemporaryFile("w+")
        self.started = time.monotonic()
        self.popen = subprocess.Popen(
            self.words, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err, cwd=ROOT)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_) -> None:
        if self.popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                self.popen.kill()
                os.wait4(self.popen.pid, 0)
                self.popen.returncode = -9
        self.out.close()
        self.err.close()

    def _text(self, file) -> str:
        file.seek(0)
        return file.read()

    def ready(self) -> None:
        """Wait for the first line on stderr."""
        end = time.monotonic() + 10
        while "\n" not in self._text(self.err):
            if time.monotonic() > end or self.popen.poll() is not None:
                raise Failed(f"{' '.join(self.words)}: {self._text(self.err).strip()}")
            time.sleep(0.01)

    def end(self, timeout: float) -> Run:
        """Wait for the end; raise Failed on a timeout or a failure."""
        deadline = time.monotonic() + timeout
        while True:
            pid, status, usage = os.wait4(self.popen.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                raise Failed(f"{' '.join(self.words)} does not end")
            time.sleep(0.005)
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - self.started
        if self.popen.returncode != 0:
            raise Failed(f"{' '.join(self.words)}: exit {self.popen.returncode}: "
                         f"{self._text(self.err).strip()}")
        return Run(usage.ru_utime + usage.ru_stime, wall, self._text(self.out))


def run(words: list[object], timeout: float = 120) -> Run:
    """Run a program to its end."""
    with Process(words) as process:
        return process.end(timeout)


def build_cargo(*words: str, root: Path = ROOT, target: Path = TARGET) -> None:
    """Build a part of a workspace with optimizations."""
    print(f"building {' '.join(words)} in {root}", file=sys.stderr)
    subprocess.run(["cargo", "build", "-q", "--release", *words], cwd=root, check=True,
                   env=os.environ | {"CARGO_TARGET_DIR": str(target)})


def progress(what: str, number: int, rounds: int) -> None:
    print(f"{what}: round {number + 1} of {rounds}", file=sys.stderr)


@dataclasses.dataclass
class Bulk:
    """One transfer: MB/s at the receiver, CPU seconds per GB of each side."""

    rate: float
    sender: float
    receiver: float


def transfer(receiver: list[object], sender: list[object], seconds: float) -> Bulk:
    """Run both sides to their ends."""
    with Process(receiver) as receiving:
        receiving.ready()
        with Process(sender) as sending:
            sent = sending.end(seconds + 30)
            received = receiving.end(30)
    got = json.loads(received.out.splitlines()[-1])
    gigabytes = got["bytes"] / 1e9
    return Bulk(got["bytes"] / 1e6 / got["seconds"], sent.cpu / gigabytes, received.cpu / gigabytes)
