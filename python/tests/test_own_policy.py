"""Policies of a crate of its own on a paper's grid, as docs/own-policy.md has them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "target" / "own-policy"


def python(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with the example's module (`make own-policy`)."""
    assert (MODULE / "own_policy.abi3.so").exists(), "make own-policy"
    environment = {**os.environ, "PYTHONPATH": str(MODULE)}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )


def test_the_grid_of_the_tutorial_runs() -> None:
    """Thirty points, each with both policies by name; the parameters change the results."""
    grid = python(str(ROOT / "examples" / "own-policy" / "grid.py"), "2")
    assert grid.returncode == 0, grid.stderr
    rows = [line.split() for line in grid.stdout.splitlines()[1:]]
    assert len(rows) == 30
    times = {(row[0], *row[2:4]): float(row[4]) for row in rows}
    reno, own = "rfc9260", "aimd:increase=2,decrease=0.7"
    for loss in ("5", "10"):
        assert times[loss, "fastest", own] < times[loss, "fastest", reno]


def test_the_engine_of_own_policies_is_another() -> None:
    """Its version names the module, so that kept results are not mixed; the import comes first."""
    code = "import own_policy, polypath; print(polypath.engine_version)"
    assert ".own_policy." in python("-c", code).stdout
    late = python("-c", "import polypath, own_policy")
    assert late.stderr.splitlines()[-1] == (
        "ImportError: import own_policy before polypath, which has its simulator now"
    )
