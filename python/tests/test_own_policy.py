"""Policies of a crate of its own on a paper's grid, as docs/own-policy.md has them."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd

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
    late = python("-c", "import polypath; polypath.engine_version; import own_policy")
    assert late.stderr.splitlines()[-1] == (
        "ImportError: import own_policy before polypath, which has its simulator now"
    )


def test_the_policy_of_the_tutorial_is_a_curve_in_figure_6(tmp_path: Path) -> None:
    """The tutorial ends with a figure: the paper's curves, the example's and the default's."""
    file = tmp_path / "figure-6.png"
    done = python(str(ROOT / "examples" / "own-policy" / "figure_6.py"), str(file))
    assert done.returncode == 0, done.stderr
    assert file.read_bytes().startswith(b"\x89PNG")
    rows = [line.rsplit(maxsplit=5) for line in done.stdout.splitlines()[1:]]
    times = {(row[0].strip(), row[1], row[2]): float(row[4]) for row in rows}
    assert {name for name, _, _ in times} == {"FrSameRtoAlt with aimd", "modern"}
    # A window that keeps 70 % after a loss and grows twice as fast is quicker than the paper's.
    assert times["FrSameRtoAlt with aimd", "8", "0"] < 100


def test_the_command_line_of_the_tutorial(tmp_path: Path) -> None:
    """The options as the tutorial has them, with two runs a point."""
    text = (ROOT / "docs" / "own-policy.md").read_text().replace("\\\n", " ")
    (line,) = (one for one in text.splitlines() if "polypath-lab --module" in one)
    words = shlex.split(line)[2:]
    code = "import sys; from polypath.command import entry; sys.argv[0] = 'polypath-lab'; entry()"
    more = ["--seeds", "2", "--quiet", "--out", str(tmp_path)]
    done = python("-c", code, *words, *more)
    assert done.returncode == 0, done.stderr
    frame = pd.read_csv(tmp_path / "caro2006-retransmission" / "figure-6.csv")
    assert set(frame["curve"].dropna()) == {"modern", "FrSameRtoAlt with aimd"}
    assert frame.loc[frame["curve"].notna(), "mean"].notna().all()
    assert "--curve modern" in (tmp_path / "report.html").read_text()
