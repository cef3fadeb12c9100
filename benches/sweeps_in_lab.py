"""Measures sweeps of the lab: CPU seconds a run next to ns-2's, and how busy the workers of Dask are.

Runs in the lab's environment (`make installed`); benches/sweeps.py starts it and reads the JSON that it prints:

    .venv-lab/bin/python benches/sweeps_in_lab.py [--rounds N] [--runs N]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import distributed
import polypath
from polypath._core import quantity
from polypath.ns2 import losses, script
from polypath.ns2.mapping import setup
from polypath.papers.caro2006_retransmission.cross_traffic import Congested
from polypath.papers.caro2006_retransmission.settings import Transfer
from polypath.store import load_rows

#: What Debian's ns-2 can be set to of the papers' constants (see docs/ns2.md).
NS2 = {"transport.profile": "ns2-2.35", "transport.path_confirmation": None, "transport.fast_retransmit_reports": 4}
#: One point of two figures of the papers: its scenario, and how many runs of polypath there are for one of ns-2.
POINTS = {
    "losses": (Transfer("FrSameRtoAlt", "none", 3, 3).scenario().with_(NS2), 40),
    "cross-traffic": (Congested("AllRtxSame", 9, 9).scenario().with_(NS2), 4),
}
#: The sweep on Dask: the losses of the alternate path in percent.
GRID = range(10)
#: How many runs of ns-2 a round has for each point.
NS2_RUNS = 2


def cpu_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def sweep(scenario: polypath.Scenario, seeds: range, backend: str) -> tuple[float, list[float]]:
    """CPU seconds a run of a sweep, and the times at which its transfers ended."""
    began = cpu_seconds()
    frame = polypath.sweep(scenario, seeds, backend=backend, progress=False)
    return (cpu_seconds() - began) / len(seeds), list(frame["time_from_start"])


def untraced(scenario: polypath.Scenario, seed: int, end: float, folder: Path) -> float:
    """CPU seconds of ns-2's process for a run that writes no trace and stops at `end` seconds."""
    plan = setup(scenario, seed)
    lines = script.tcl(plan, str(folder / "states"), losses.first_guess(plan), series=False).splitlines()
    quiet = [line for line in lines if "trace" not in line]
    last = quiet.index("$ns run")
    quiet.insert(last, f"$ns at {end} {{exit 0}}")
    file = folder / "quiet.tcl"
    file.write_text("\n".join(quiet) + "\n")
    began = cpu_seconds()
    subprocess.run(["ns", file], stdout=subprocess.DEVNULL, check=True, cwd=folder)
    return cpu_seconds() - began


def compare(rounds: int) -> dict[str, dict[str, list[float]]]:
    """CPU seconds a run at each point: of polypath, of ns-2 with the trace that the lab reads, of ns-2 without one."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, (scenario, factor) in POINTS.items():
        start = quantity(scenario.to_dict()["workload"].get("start", "0 s"))
        samples = found[name] = {"polypath": [], "ns-2": [], "ns-2, untraced": []}
        for number in range(rounds):
            print(f"{name}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
            first = 1 + number * NS2_RUNS * factor
            samples["polypath"].append(sweep(scenario, range(first, first + NS2_RUNS * factor), "polypath")[0])
            theirs = range(first, first + NS2_RUNS)
            spent, ends = sweep(scenario, theirs, "ns2")
            samples["ns-2"].append(spent)
            with tempfile.TemporaryDirectory() as folder:
                alone = [untraced(scenario, seed, start + end, Path(folder))
                         for seed, end in zip(theirs, ends, strict=True)]
            samples["ns-2, untraced"].append(sum(alone) / len(alone))
    return found


def on_dask(runs: int) -> dict[str, float]:
    """A sweep on a local cluster with a worker for each core: how long its workers are busy with runs."""
    grid = [Transfer("FrSameRtoAlt", "none", 3, loss).scenario() for loss in GRID]
    workers = os.cpu_count() or 1
    with (
        tempfile.TemporaryDirectory() as folder,
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None,
                                 local_directory=folder) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        polypath.sweep(grid, range(2), executor=executor, progress=False)  # the workers import the lab
        began = time.monotonic()
        polypath.sweep(grid, range(runs // len(GRID)), executor=executor, results=Path(folder, "runs"), progress=False)
        elapsed = time.monotonic() - began
        busy = sum(row["wall"] for row in load_rows(Path(folder, "runs")))
    return {"runs": runs // len(GRID) * len(GRID), "workers": workers, "seconds": elapsed,
            "busy": busy / (workers * elapsed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=100_000, help="of the sweep on Dask")
    arguments = parser.parse_args()
    print(json.dumps({"points": compare(arguments.rounds), "dask": on_dask(arguments.runs)}))


if __name__ == "__main__":
    main()
