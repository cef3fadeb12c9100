#!/usr/bin/env python3
"""Measures the blackout when the path in use is cut: simulator, emulator and namespaces.

Uses the papers' constants and writes its table into docs/failover.md. `make blackout`, as root; standard
library only.
"""

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path

from support.agreement import agreement
from support.blackout import CUTS, DRIVERS, PAPERS, SETTINGS, Sockets, cases, resolution, simulate
from support.program import ROOT

DOCUMENT = ROOT / "docs" / "failover.md"
BEGIN, END = "<!-- make blackout -->\n", "<!-- end -->\n"


def measure(arguments: argparse.Namespace, folder: Path) -> str:
    """The table, with the parameters of its measurement."""
    cells = list(itertools.product(SETTINGS, CUTS))
    simulated = {cell: simulate(cases(*cell, PAPERS, range(arguments.simulated)), folder) for cell in cells}
    runs = [(cell, driver, case) for cell in cells for driver in DRIVERS
            for case in cases(*cell, PAPERS, range(arguments.runs))]
    began, sockets = time.monotonic(), Sockets(folder, arguments.at_once)
    seconds = sockets.run([(driver, case) for _, driver, case in runs])
    minutes = (time.monotonic() - began) / 60
    measured: dict[tuple, list[float]] = {}
    for (cell, driver, _), value in zip(runs, seconds, strict=True):
        measured.setdefault((cell, driver), []).append(value)
    lines = [
        f"{arguments.runs} transfers of each kind, {arguments.at_once} at once, in {minutes:.1f} minutes; in "
        f"the simulator {arguments.simulated}. {sockets.repeated} were repeated since the cut path was not in use "
        "any more.",
        "", "| setting | cut | simulator, s | emulator, s | difference, ms | namespaces, s | difference, ms | |",
        "|---|---|---|---|---|---|---|---|"]
    for cell in cells:
        found = [agreement(measured[cell, driver], simulated[cell]) for driver in DRIVERS]
        pairs = [f"{shown(measured[cell, driver])} | {one.difference * 1000:+.1f} ± {one.half * 1000:.1f}"
                 for driver, one in zip(DRIVERS, found, strict=True)]
        verdict = "agree" if all(one.holds(resolution(cell[0])) for one in found) else "apart"
        lines.append(f"| {' | '.join(cell)} | {shown(simulated[cell])} | {' | '.join(pairs)} | {verdict} |")
    return "\n".join(lines) + "\n"


def shown(values: list[float]) -> str:
    """Mean and standard deviation."""
    return f"{statistics.mean(values):.3f} ({statistics.stdev(values):.3f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="transfers of a kind between sockets (5)")
    parser.add_argument("--simulated", type=int, default=50, help="simulated ones (50)")
    parser.add_argument("--at-once", type=int, default=24, help="transfers at the same time (24)")
    arguments = parser.parse_args()
    if min(arguments.runs, arguments.simulated) < 2:
        parser.error("--runs and --simulated have to be at least 2")
    with tempfile.TemporaryDirectory(prefix="polypath-blackout-") as folder:
        table = measure(arguments, Path(folder))
    before, rest = DOCUMENT.read_text().split(BEGIN)
    DOCUMENT.write_text(before + BEGIN + table + END + rest.split(END)[1])
    sys.stdout.write(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
