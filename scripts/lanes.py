#!/usr/bin/env python3
"""Runs the lanes of `make test`. Each lane is a target of the Makefile.

A lane that fails does not stop the others. At the end each lane gets a line, and the exit code is 1 if
one has failed. Standard library only.

A step's lanes run at the same time. The first of them prints as it runs, the output of the others is
printed when the step is over. A lane that ends in ":idle" gets the processors only while nothing else
needs them (SCHED_IDLE), while tests wait, as they do most of the time. Idle lanes run one after the other,
in their order, and outlast the step that they begin with: no step waits for them.

    scripts/lanes.py STEP...        STEP: names of lanes, joined by "+"
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def give_way() -> None:
    """Run this process and its children only while nothing else needs the processors."""
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.nice(19)


class Lane:
    """A running lane; `log` receives its output, or it prints directly if there is no log."""

    def __init__(self, name: str, log: Path | None, idle: bool = False):
        self.name, self.log = name, log
        self.began = time.monotonic()
        self.code = 0
        self.seconds = self.processor = 0.0
        # Do not pass on the job server of another make.
        left_out = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
        environment = {key: value for key, value in os.environ.items() if key not in left_out}
        with contextlib.ExitStack() as files:
            out = files.enter_context(log.open("wb")) if log else None
            # The lane's processes share a process group, so that they can be stopped together.
            self.popen = subprocess.Popen(
                ["make", "--no-print-directory", name], cwd=ROOT, env=environment, process_group=0,
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT if log else None,
                preexec_fn=give_way if idle else None)

    def runs(self) -> bool:
        """Whether the lane is still running; records how it ended."""
        if self.popen.returncode is None:
            pid, status, used = os.wait4(self.popen.pid, os.WNOHANG)
            if pid:
                self.code = self.popen.returncode = os.waitstatus_to_exitcode(status)
                self.seconds = time.monotonic() - self.began
                self.processor = used.ru_utime + used.ru_stime
        return self.popen.returncode is None

    def stop(self) -> None:
        if self.runs():
            os.killpg(self.popen.pid, signal.SIGTERM)
            self.popen.wait()

    def line(self) -> str:
        verdict = "passed" if self.code == 0 else "FAILED"
        return f"{self.name:<16} {verdict} {self.seconds:6.0f} s {self.processor:8.0f} s of processor time"


class Idle:
    """The lanes that give way to all others: they begin with their step and outlast it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.waiting: list[str] = []
        self.lanes: list[Lane] = []

    def run(self) -> bool:
        """Start the next lane if its turn has come. Returns whether one runs."""
        if self.lanes and self.lanes[-1].runs():
            return True
        if self.waiting:
            name = self.waiting.pop(0)
            self.lanes.append(Lane(name, self.folder / name, idle=True))
        return bool(self.lanes) and self.lanes[-1].runs()


def run(names: list[str], idle: Idle) -> list[Lane]:
    """Run the lanes of one step, and let the idle ones go on meanwhile."""
    lanes: list[Lane] = []
    try:
        for name in names:
            lanes.append(Lane(name, idle.folder / name if lanes else None))
        waiting = list(lanes)
        while waiting:
            idle.run()
            waiting = [lane for lane in waiting if lane.runs()]
            time.sleep(0.2)
    except BaseException:
        for lane in lanes:
            lane.stop()
        raise
    print_logs(lanes)
    return lanes


def print_logs(lanes: list[Lane]) -> None:
    """Print what these lanes have not printed while they ran."""
    for lane in lanes:
        if lane.log:
            print(f"--- {lane.name}", flush=True)
            sys.stdout.buffer.write(lane.log.read_bytes())
            sys.stdout.buffer.flush()


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    done: list[Lane] = []
    with tempfile.TemporaryDirectory(prefix="polypath-lanes-") as folder:
        idle = Idle(Path(folder))
        try:
            for step in sys.argv[1:]:
                print(f"--- {step.replace('+', ', ')}", flush=True)
                names = step.split("+")
                idle.waiting += [name.removesuffix(":idle") for name in names if name.endswith(":idle")]
                done += run([name for name in names if not name.endswith(":idle")], idle)
            while idle.run():
                time.sleep(0.2)
        except BaseException as reason:
            for lane in idle.lanes:
                lane.stop()
            if isinstance(reason, KeyboardInterrupt):
                print("interrupted", file=sys.stderr)
                return 130
            raise
        print_logs(idle.lanes)
        done += idle.lanes
    failed = [lane.name for lane in done if lane.code != 0]
    print("---", *(lane.line() for lane in done), sep="\n")
    print(f"failed: {', '.join(failed)}" if failed else "all lanes passed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
