"""The command `polypath-lab`, and the example of the README."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import polypath
from polypath import Scenario
from polypath.lab import main

from places import ROOT


@pytest.fixture
def file(lossy: Scenario, tmp_path: Path) -> str:
    path = tmp_path / "lossy.toml"
    path.write_text(lossy.to_toml())
    return str(path)


def test_run(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot, pcap = tmp_path / "run.svg", tmp_path / "run.pcapng"
    arguments = ["run", file, "--set", "path.0.loss=0 %", "--seed", "4"]
    assert main([*arguments, "--plot", str(plot), "--pcap", str(pcap)]) == 0
    out = capsys.readouterr().out
    assert "packets_lost" in out
    assert plot.stat().st_size > 5_000
    assert pcap.stat().st_size > 500_000
    assert main([*arguments, "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["seed"] == 4
    assert outcome["links"][0]["counts"]["lost"] == 0


def test_sweep(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["sweep", file, "--vary", "path.0.loss=1 %, 3 %", "--quiet", "--results", str(tmp_path)]
    assert main([*sweep, "--seeds", "1..4", "--shard", "2/3", "--csv", "-"]) == 0
    part = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(part["seed"]) == [2, 1, 4]
    plot = tmp_path / "sweep.png"
    assert main([*sweep, "--seeds", "1..4", "--plot", str(plot)]) == 0
    out = capsys.readouterr().out
    assert "loss 3 %" in out
    assert "half_width" in out
    assert plot.stat().st_size > 5_000
    assert len(polypath.load(tmp_path)) == 8
    assert main([*sweep, "--within", "20 %", "--at-least", "5", "--processes", "2"]) == 0
    assert len(polypath.load(tmp_path)) >= 10


@pytest.mark.parametrize(
    ("arguments", "line", "code"),
    [
        (["--shard", "4/3"], 'polypath-lab: --shard: found "4/3"; allowed: 1/N to N/N', 2),
        (["--seeds", "5"], 'polypath-lab: --seeds: found "5"; allowed: the first and the last', 2),
        (["--set", "x"], 'polypath-lab: --set "x" is not of the form KEY=VALUE', 2),
        (["--within", "2"], 'polypath-lab: --within: found "2"; allowed: a share', 2),
        (["--vary", "path.0.loss=1 %, x"], 'polypath-lab: path[0].loss: "x" is not', 1),
        (["--metric", "tiem"], 'polypath-lab: metric: no metric "tiem"; allowed: complete', 1),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: list[str], line: str, code: int, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", file, "--seeds", "1..2", "--quiet", *arguments]) == code
    err = capsys.readouterr().err
    assert err.startswith(line)
    assert err.count("\n") == 1


def test_the_command_is_installed(file: str) -> None:
    program = Path(sys.executable).with_name("polypath-lab")
    done = subprocess.run([program, "run", file], capture_output=True, text=True, check=True)
    assert "time_from_first_data" in done.stdout
    done = subprocess.run([program, "run", "no.toml"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "no.toml" in done.stderr


def test_the_example_of_the_readme(tmp_path: Path) -> None:
    example = (ROOT / "python" / "examples" / "two_links.py").read_text()
    code = example.partition('"""\n\n')[2]
    assert code in (ROOT / "python" / "README.md").read_text()
    assert len([line for line in code.splitlines() if line]) <= 10
    (tmp_path / "example.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )
    assert "rto_min 200 ms, retransmission hybrid" in done.stdout
    assert (tmp_path / "two-links.png").stat().st_size > 10_000
