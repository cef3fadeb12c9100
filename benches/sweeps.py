"""How the lab's sweeps compare with ns-2: measured by benches/sweeps_in_lab.py in the lab's environment."""

import json
import os
import statistics
import subprocess
import sys

from processes import ROOT, Failed

PYTHON = ROOT / ".venv-lab" / "bin" / "python"
#: How many runs the sweep on Dask has.
RUNS = 100_000
TITLES = {
    "losses": "4 MiB over two paths with 3 % loss each (FrSameRtoAlt)",
    "cross-traffic": "4 MiB over two paths among cross-traffic of 9 Mbit/s (AllRtxSame)",
}


def is_there() -> bool:
    """Whether there is an environment of the lab."""
    return PYTHON.exists()


def measure(rounds: int) -> dict:
    """Install the lab of this revision, optimised, and run its sweeps."""
    left_out = ("CI", "MAKEFLAGS", "MAKELEVEL")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    subprocess.run(["make", "--no-print-directory", "installed"], cwd=ROOT, check=True, stdout=sys.stderr,
                   env=environment)
    words = [PYTHON, ROOT / "benches" / "sweeps_in_lab.py", "--rounds", rounds, "--runs", RUNS]
    done = subprocess.run([str(word) for word in words], check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"sweeps_in_lab.py ended with {done.returncode}")
    return json.loads(done.stdout)


def page(measured: dict) -> list[str]:
    """The part of docs/performance.md."""
    lines = [
        "## Sweeps of the lab",
        "",
        "Two points of the first paper, each a sweep with many seeds by `polypath.sweep`: CPU seconds of the",
        "whole process for each run. ns-2 runs the same scenarios: as the lab's backend, with the trace from",
        "which its results are taken, and its process alone, without a trace, up to the same end.",
        "",
        "| | polypath | ns-2, with its trace | ns-2 alone | runs per CPU second, of ns-2's | of ns-2's alone |",
        "|---|---|---|---|---|---|",
    ]
    for name, samples in measured["points"].items():
        ours, theirs, alone = (statistics.median(samples[who]) for who in ("polypath", "ns-2", "ns-2, untraced"))
        lines.append(f"| {TITLES[name]} | {ours:.4f} | {theirs:.3f} | {alone:.3f} "
                     f"| {theirs / ours:.1f} times | {alone / ours:.1f} times |")
    dask = measured["dask"]
    busy = f"{100 * dask['busy']:.1f} %"
    lines += [
        "",
        f"A sweep of {dask['runs']:,} runs of the first kind takes {dask['seconds']:.0f} s on a local Dask cluster",
        f"with {dask['workers']} workers, which are busy with runs for {busy} of the time. The scheduler and the",
        "process of the sweep share the cores with them.",
        "",
    ]
    return lines
