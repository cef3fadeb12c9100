"""A run of a scenario in ns-2."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

from polypath.ns2 import losses, outcome, script, variables
from polypath.ns2.mapping import Setup
from polypath.ns2.trace import Reader, Trace


class Ns2Error(RuntimeError):
    """ns-2 is not installed, or ended with an error."""


class NoAnswerError(Ns2Error):
    """ns-2 exceeded its limit of processor time: some transfers make its module loop."""


class Ns2Outcome:
    """The outcome of a run in ns-2, in the form of the simulator's outcome."""

    def __init__(
        self,
        plan: Setup,
        trace: Trace,
        sampled: list[variables.PathSeries],
        wanted: bool,
        timeouts: list[list[int]] | None = None,
    ) -> None:
        self._plan = plan
        self._sampled = sampled
        self._timeouts = timeouts
        #: Every packet at every link.
        self.packets = trace
        #: The sender's variables over time, if requested.
        self.series = sampled if wanted else []

    @cached_property
    def table(self) -> dict[str, Any]:
        """Everything but packets and samples."""
        return outcome.table(self._plan, self.packets, self._sampled, self._timeouts)

    def to_json(self) -> str:
        """Everything but packets and samples, as JSON."""
        return json.dumps(self.table)


def program() -> str:
    """The path of ns-2's program.

    Raises:
        Ns2Error: ns-2 is not installed.
    """
    found = shutil.which("ns")
    if found is None:
        raise Ns2Error(
            'backend "ns2" needs the program "ns", which is not in PATH; Debian has it in the '
            "package ns2 (apt-get install ns2)"
        )
    return found


def run(plan: Setup, *, series: bool = False, patience: int | None = None) -> Ns2Outcome:
    """Runs a converted scenario in ns-2 until everything is acknowledged.

    Args:
        plan: The converted scenario.
        series: Keep the sender's variables over time.
        patience: Limit of ns-2's processor time in seconds; none by default.

    Raises:
        Ns2Error: ns-2 is not installed, or ended with an error.
        NoAnswerError: ns-2 exceeded the limit.
    """
    drops = losses.first_guess(plan)
    while True:
        found = _run(plan, drops, series, patience)
        better = losses.corrected(plan, found.packets, drops)
        if better == drops:
            return found
        drops = better


def _run(plan: Setup, drops: losses.Drops, series: bool, patience: int | None) -> Ns2Outcome:
    ns = program()
    with tempfile.TemporaryDirectory(prefix="polypath-ns2-") as folder:
        file, states, errors = (Path(folder, name) for name in ("run.tcl", "states", "errors"))
        file.write_text(script.tcl(plan, str(states), drops, series=series))
        reader = Reader(plan)
        with errors.open("wb") as complaints:
            process = subprocess.Popen(  # noqa: S603 the program that was asked for
                [ns, str(file)],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                encoding="latin-1",
            )
        if patience is not None:
            # A limit on processor time does not depend on how busy the machine is.
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (patience, patience + 1))
        with process:
            assert process.stdout is not None
            try:
                finished = reader.read(process.stdout)
            finally:
                # After the last acknowledgement there are only heartbeats.
                process.kill()
        if not finished and process.returncode == -signal.SIGXCPU:
            raise NoAnswerError(f"no answer from ns-2 within {patience} s")
        if not finished and process.returncode not in (0, -signal.SIGKILL):
            said = " ".join(errors.read_text(errors="replace").split())
            raise Ns2Error(f"ns-2 ended with {process.returncode}: {said[:500]}")
        trace = reader.finish()
        told = states.read_text(encoding="latin-1")
        sampled = variables.read(plan, told, trace.end)
        rows = variables.timeouts_in_a_row(plan, told, trace.end)
        return Ns2Outcome(plan, trace, sampled, series, rows)
