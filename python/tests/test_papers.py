"""The papers' figures and statements: their registry, runs, drawings and reports."""

import base64
import csv
import itertools
import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from printed import faults_in_print, lab, linear

import polypath
from polypath import Scenario, papers
from polypath.figures import COLOURS
from polypath.lab import _parser, main
from polypath.papers import charts, tables
from polypath.papers.further import Further
from polypath.papers.markdown import markdown, measurements
from polypath.papers.registry import rows
from polypath.papers.reproduce import write
from polypath.papers.runs import Setting, first_seed
from polypath.progress import Progress

from places import ROOT


@dataclass(frozen=True)
class Tiny:
    """A setting that takes a millisecond."""

    loss: float
    policy: str = "same"

    def scenario(self) -> Scenario:
        return Scenario(
            path=[{"rate": "10 Mbit/s", "delay": "5 ms", "loss": f"{self.loss} %"}] * 2,
            policy={"retransmission": self.policy},
            workload={"kind": "bulk", "size": "100 kB"},
        )

    def labels(self) -> dict[str, Any]:
        return {"loss": self.loss, "policy": self.policy}


def _draw(runs: papers.Runs, wanted: papers.Grid) -> tuple[Any, Any]:
    frame = tables.points_frame(runs, wanted.settings)
    curves = [charts.Curve(policy, {"policy": policy}) for policy in ("same", "hybrid")]
    panels = [charts.Panel("", {})]
    return frame, charts.transfer_times(
        frame, panels, curves, x="loss", x_label="loss [%]", title="tiny"
    )


TINY = papers.Figure(
    "1",
    "tiny",
    lambda full: papers.Grid(
        tuple(Tiny(loss, policy) for policy in ("same", "hybrid") for loss in (0, 2)),
        20 if full else 3,
    ),
    _draw,
)


@pytest.fixture(scope="module")
def reproduction() -> papers.Reproduction:
    """The small grids of all papers, from which ``docs/claims.md`` is written."""
    return papers.reproduce(progress=False)


def test_every_statement_has_exactly_one_entry() -> None:
    with (ROOT / "python/polypath/data/claims.csv").open() as text:
        stated = [(row["id"], row["paper"]) for row in csv.DictReader(text)]
    entries = [(claim.id, paper.source) for paper in papers.PAPERS for claim in paper.claims]
    assert len(stated) == 80
    assert sorted(entries) == sorted(stated)
    assert [(row.id, row.paper) for row in rows()] == stated


def test_claims_name_figures_that_there_are_and_figures_have_one_name() -> None:
    for paper in papers.PAPERS:
        names = [figure.id for figure in paper.figures]
        assert len(set(names)) == len(names)
        for claim in paper.claims:
            assert set(claim.figures) <= set(names)
            assert bool(claim.figures) == (claim.judge is not None)


def test_every_figure_function_is_listed() -> None:
    for module in (papers.caro2006_retransmission, papers.caro2006_failover, papers.iyengar2004):
        found = {one for one in vars(module).values() if isinstance(one, papers.Figure)}
        assert found == set(module.PAPER.figures)
    numbered = {one.id for one in papers.caro2006_retransmission.PAPER.figures}
    assert {"3", "4", "6", "8", "9", "10", "12", "13", "15", "16", "5.4"} <= numbered


def test_the_engine_takes_every_point_of_every_grid() -> None:
    for paper in papers.PAPERS:
        grids = [figure.grid(True) for figure in paper.figures]
        for setting in {one for grid in grids for one in (*grid.settings, *grid.traced)}:
            assert _refusal(setting) is None, _refusal(setting)


def _refusal(setting: Setting) -> str | None:
    try:
        setting.scenario()
    except ValueError as error:
        return str(error)
    return None


def test_small_grids_are_part_of_the_papers_grids() -> None:
    for paper in papers.PAPERS:
        for figure in paper.figures:
            quick, full = figure.grid(False), figure.grid(True)
            assert set(quick.settings) <= set(full.settings)
            assert quick.seeds <= full.seeds


def test_a_figure_gives_a_frame_and_a_chart(tmp_path: Path) -> None:
    frame, chart = TINY(results=tmp_path, progress=False)
    assert list(frame["n"]) == [3] * 4
    assert frame["mean"].notna().all()
    again, _ = TINY(results=tmp_path, progress=False)
    assert again.equals(frame)
    axes = chart.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("loss [%]", "transfer time [s]")
    assert [text.get_text() for text in chart.legends[0].get_texts()] == ["same", "hybrid"]


def _further(figure: papers.Figure, *policies: papers.Curve | str) -> pd.DataFrame:
    frame, _ = figure(policies=policies, progress=False)
    return frame


FURTHER = replace(
    TINY,
    further=Further(lambda one: one.policy == "same", "retransmission", "loss"),
)


def test_a_figure_takes_further_curves() -> None:
    fast = papers.Curve("fast", transport={"rto_min": "100 ms"})
    frame, chart = FURTHER(policies=["modern", "asap", fast], progress=False)
    own = frame[frame["curve"].notna()]
    assert list(own["curve"]) == ["modern"] * 2 + ["asap"] * 2 + ["fast"] * 2
    assert list(own["loss"]) == [0, 2] * 3
    assert (own["n"] == 3).all()
    # Columns of the paper's mechanism do not name another's.
    assert set(own["policy"]) == {""}
    names = [text.get_text() for text in chart.legends[0].get_texts()]
    assert names == ["same", "hybrid", "modern", "asap", "fast"]
    # The paper's own points are as they are without further curves.
    plain, _ = TINY(progress=False)
    assert list(frame.loc[frame["curve"].isna(), "mean"]) == list(plain["mean"])
    # The points are those of the scenario with these values.
    scenario = Tiny(2).scenario().with_({"transport.rto_min": "100 ms"})
    times = polypath.sweep([scenario], range(first_seed(scenario), first_seed(scenario) + 3))
    assert list(own["mean"])[-1] == pytest.approx(times["time_from_start"].mean())


@pytest.mark.parametrize(
    ("policies", "line"),
    [
        (["nowhere"], 'policy.retransmission: found "nowhere"'),
        (["nowhere"], 'transport.profile: no profile "nowhere"; allowed: '),
        ([papers.Curve("x", profile="nowhere")], 'transport.profile: no profile "nowhere"'),
        (["x: rto_min=often"], "transport.rto_min"),
        (["x: rto_min"], 'transport.profile: no profile "rto_min"'),
        (["x: a=1 b"], 'found "b"; allowed: KEY=VALUE'),
        (["modern", "modern"], 'two curves have the name "modern"'),
    ],
)
def test_a_wrong_curve_is_one_line(policies: list[papers.Curve | str], line: str) -> None:
    with pytest.raises(ValueError, match=re.escape(line)) as error:
        _further(FURTHER, *policies)
    assert "\n" not in str(error.value)


def test_a_figure_without_curves_says_so() -> None:
    with pytest.raises(ValueError, match="Figure 1 takes no further curves"):
        _further(TINY, "modern")
    paper = papers.Paper("tiny", "tiny", "Tiny", (TINY, replace(FURTHER, id="2")), ())
    done = papers.reproduce([paper], policies=["modern"], progress=False)
    first, second = (shown.frame for shown in done.papers[0].figures)
    assert first is not None
    assert second is not None
    assert "curve" not in first
    assert set(second["curve"].dropna()) == {"modern"}
    assert "--curve modern" in done.command
    with pytest.raises(ValueError, match="takes no further curves"):
        papers.reproduce([paper], ["1"], policies=["modern"], progress=False)


def test_a_curve_as_text() -> None:
    text = "my curve: profile=cmt congestion=aimd:increase=2,decrease=0.7 rto_min=1s max_burst=4"
    curve = papers.Curve.parse(text)
    assert curve == papers.Curve(
        "my curve",
        "cmt",
        {"congestion": "aimd:increase=2,decrease=0.7"},
        {"rto_min": "1 s", "max_burst": 4},
    )
    assert str(curve) == text
    assert papers.Curve.parse("modern") == papers.Curve("modern", "modern")


#: Figures whose runs are long or that are made of single packets.
_SLOW = {("caro2006-retransmission", "3"), ("natarajan2009", "4"), ("natarajan2009", "6")}


@pytest.mark.parametrize(
    ("paper", "figure"),
    [
        pytest.param(paper, figure, id=f"{paper.key}-{figure.id}")
        for paper in papers.PAPERS
        for figure in paper.figures
        if figure.further and (paper.key, figure.id) not in _SLOW
    ],
)
def test_every_figure_with_curves_takes_the_default(
    paper: papers.Paper, figure: papers.Figure
) -> None:
    grid = replace(figure.grid(False), seeds=1, more=())
    assert figure.further is not None
    # One point of each panel suffices.
    points = grid.traced if figure.further.traced else grid.settings
    with_it = figure.with_further(grid, ["modern"])
    added = len(with_it.settings) + len(with_it.traced) - len(grid.settings) - len(grid.traced)
    assert 0 < added <= len(points)
    frame, chart = figure.drawn(papers.measure([with_it], progress=False), with_it)
    own = frame[frame["curve"] == "modern"]
    assert len(own) > 0, paper.key
    labels = {label for axes in chart.axes for label in axes.get_legend_handles_labels()[1]} | {
        text.get_text() for legend in chart.legends for text in legend.get_texts()
    }
    assert any(label.startswith("modern") for label in labels)


def test_points_with_another_primary_path_have_seeds_of_their_own() -> None:
    firsts = {loss: first_seed(Tiny(loss).scenario()) for loss in (0, 1, 2)}
    assert len(set(firsts.values())) == 3
    assert min(abs(a - b) for a, b in itertools.combinations(firsts.values(), 2)) >= 100_000
    # Policies meet the same losses.
    assert firsts[2] == first_seed(Tiny(2, "hybrid").scenario())
    runs = papers.measure([papers.Grid((Tiny(1), Tiny(2)), 2)], progress=False)
    assert list(runs.frame(Tiny(1))["seed"]) == [firsts[1], firsts[1] + 1]
    assert list(runs.frame(Tiny(2))["seed"]) == [firsts[2], firsts[2] + 1]


def test_single_statements_are_decided_by_their_own_points(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "claims.csv"
    words = ["decide", "caro2006-retransmission", "R09", "--seeds", "12", "--quiet"]
    assert main([*words, "--csv", str(file)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("R09  ")
    assert "(n = 12) [paper -13.0 %:" in out
    (row,) = csv.DictReader(file.read_text().splitlines())
    assert (row["id"], row["n"], row["stated"]) == ("R09", "12", "-0.13")
    assert main(["decide", "caro2006-retransmission", "R99"]) == 1
    assert 'statement of caro2006-retransmission: no "R99"; did you mean' in capsys.readouterr().err


def test_fewer_runs_of_a_point(capsys: pytest.CaptureFixture[str]) -> None:
    paper = papers.Paper("tiny", "tiny", "Tiny", (TINY,), ())
    done = papers.reproduce([paper], seeds=2, progress=False)
    (shown,) = done.papers[0].figures
    assert shown.frame is not None
    assert list(shown.frame["n"]) == [2] * 4
    assert "--seeds 2" in done.command
    with pytest.raises(SystemExit):
        main(["reproduce", "--seeds", "0"])
    assert 'a number of runs, at least 1, not "0"' in capsys.readouterr().err


def test_a_point_that_a_statement_hangs_on_has_seeds_of_its_own() -> None:
    hangs = papers.Figure(
        "2", "", lambda _: papers.Grid((Tiny(0),), 2, more=((Tiny(1), 4),)), _draw
    )
    paper = papers.Paper("tiny", "tiny", "Tiny", (hangs,), ())
    runs = papers.measure([hangs.grid(False)], progress=False)
    assert {setting: len(frame) for setting, frame in runs.frames.items()} == {
        Tiny(0): 2,
        Tiny(1): 4,
    }
    (done,) = papers.reproduce([paper], seeds=3, progress=False).papers
    assert done.figures[0].grid == papers.Grid((Tiny(0),), 2, more=((Tiny(1), 3),))


def test_a_figure_that_the_engine_does_not_know_says_so() -> None:
    unknown = papers.Figure("2", "", lambda _: papers.Grid((Tiny(0, "nowhere"),), 3), _draw)
    with pytest.raises(papers.NotImplementedYetError, match='found "nowhere"'):
        unknown(progress=False)
    half = papers.Grid((Tiny(0), Tiny(0, "nowhere")), 3)
    frame, _ = _draw(papers.measure([half], progress=False), half)
    assert list(frame["n"]) == [3, 0]


def test_points_of_several_figures_are_run_once() -> None:
    grids = [papers.Grid((Tiny(0), Tiny(1)), 3), papers.Grid((Tiny(1), Tiny(2)), 3)]
    seen: list[Progress] = []
    runs = papers.measure(grids, progress=seen.append)
    # A sweep for each range of seeds: the numbers begin anew.
    counts = [*(one.finished for one in seen), 0]
    assert sum(one for one, after in itertools.pairwise(counts) if after < one) == 9
    assert len(runs.frame(Tiny(1))) == 3


class _Page(HTMLParser):
    """Collects the references of a page, and the ids of its elements."""

    def __init__(self) -> None:
        super().__init__()
        self.refers: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.refers += [known[name] or "" for name in ("src", "href", "srcset") if name in known]
        assert tag not in ("script", "link", "iframe")


@pytest.mark.xdist_group("small grids")
def test_the_report_has_every_row_and_needs_nothing_else(
    reproduction: papers.Reproduction, tmp_path: Path
) -> None:
    text = write(reproduction, tmp_path).read_text()
    page = _Page()
    page.feed(text)
    assert {row.id for row in rows()} <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    inside = {one.removeprefix("#") for one in page.refers if one.startswith("#")}
    assert inside <= set(page.ids)
    drawings = [one for one in page.refers if not one.startswith("#")]
    assert all(one.startswith("data:image/svg+xml;base64,") for one in drawings)
    for one in drawings:
        drawn = base64.b64decode(one.partition(",")[2]).decode()
        assert not re.search(r'(href|src)="(?!#)', drawn)
        assert "<dc:date>" not in drawn
    assert not re.search(r"url\(|@import", text)
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    assert str(tmp_path) not in text


@pytest.mark.xdist_group("small grids")
def test_figures_can_be_read_in_print(reproduction: papers.Reproduction) -> None:
    """Text of 7 pt, labels with units on both axes, legends, colours for the colour-blind."""
    charts = [
        (f"{paper.paper.key} {shown.figure.id}", shown.chart)
        for paper in reproduction.papers
        for shown in paper.figures
        if shown.chart is not None
    ]
    assert len(charts) > 20
    assert [fault for name, chart in charts for fault in faults_in_print(name, chart)] == []


def test_the_palette_differs_for_the_colour_blind() -> None:
    """Each pair of colours differs with colour blindness (matrices of Machado et al. 2009)."""
    matrices = {
        "protanopia": [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        "deuteranopia": [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        "tritanopia": [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    }
    for kind, matrix in matrices.items():
        seen = {colour: lab(np.array(matrix) @ linear(colour)) for colour in COLOURS}
        for one, other in itertools.combinations(COLOURS, 2):
            difference = float(np.linalg.norm(seen[one] - seen[other]))
            assert difference > 8, f"{kind}: {one} and {other} differ by {difference:.1f} (CIE76)"


@pytest.mark.xdist_group("small grids")
def test_the_page_of_claims_is_up_to_date(reproduction: papers.Reproduction) -> None:
    page = markdown(reproduction)
    data = measurements(reproduction)
    for text, name in ((page, "claims.md"), (data, "claims.tsv")):
        assert text == (ROOT / "docs" / name).read_text(), (
            "polypath-lab claims --write docs/claims.md"
        )
    for row in rows():
        assert f"| {row.id} |" in page
        assert f"\t{row.id}\tpolypath, small grid\t" in data
    # A summary: the measured values are in the data file.
    assert len(page) < 60_000


def test_the_same_runs_give_the_same_files(tmp_path: Path) -> None:
    paper = papers.Paper("tiny", "tiny", "Tiny", (TINY,), ())
    for folder in ("first", "second"):
        done = papers.reproduce([paper], progress=False, results=tmp_path / "results")
        write(done, tmp_path / folder)
    files = sorted(one.relative_to(tmp_path / "first") for one in (tmp_path / "first").rglob("*.*"))
    assert [str(one) for one in files] == [
        "report.html",
        "tiny/figure-1.csv",
        "tiny/figure-1.png",
        "tiny/figure-1.svg",
    ]
    for file in files:
        first, second = ((tmp_path / f / file).read_bytes() for f in ("first", "second"))
        assert first == second
    assert "polypath-lab reproduce tiny 1" in (tmp_path / "first/report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["caro2006-retransmision"], 'did you mean "caro2006-retransmission"? allowed: caro2006-'),
        (["caro2006-retransmission", "66"], 'no "66"; did you mean "6"? allowed: 3, 4, 6, 4.2, 8'),
        (["natarajan2009", "2"], 'figure of natarajan2009: no "2"; did you mean "2b"?'),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: list[str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments, "--quiet", "--out", str(tmp_path / "out")]) == 1
    err = capsys.readouterr().err
    assert line in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_commands_of_the_readmes_name_what_there_is() -> None:
    text = "".join((ROOT / file).read_text() for file in ("README.md", "python/README.md"))
    commands = re.findall(r"^polypath-lab reproduce[^#\n]*", text, re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        options = _parser().parse_args(command.split()[1:])
        if options.paper:
            paper = papers.find(options.paper)
            assert [paper.figure(name).id for name in options.figure] == options.figure


def test_reproduce_and_claims_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "caro2006-failover", "III.3", "--quiet", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith("F01  ")
    assert "F02" not in out
    assert (tmp_path / "report.html").exists()
    assert main(["claims", "--check"]) == 1
    assert "only with --write" in capsys.readouterr().err


@pytest.mark.xdist_group("small grids")
def test_a_stale_page_is_told(
    tmp_path: Path,
    reproduction: papers.Reproduction,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("polypath.papers.commands.reproduce", lambda **_: reproduction)
    file = str(tmp_path / "claims.md")
    assert main(["claims", "--write", file]) == 0
    assert main(["claims", "--write", file, "--check"]) == 0
    Path(file).write_text(Path(file).read_text().replace("**holds**", "**does not hold**") + "x")
    assert main(["claims", "--write", file, "--check"]) == 1
    assert "is stale: polypath-lab claims --write" in capsys.readouterr().err


@pytest.mark.usefixtures("ns")
def test_a_figure_can_be_run_in_ns2_instead(tmp_path: Path) -> None:
    paper = papers.find("caro2006-failover")
    done = papers.reproduce([paper], ["III.3"], backend="ns2", results=tmp_path, progress=False)
    (claim,) = (one for one in done.claims if one.row.id == "F01")
    assert claim.ours is not None
    # Debian's release has larger windows at the start than the papers'.
    assert claim.ours.checks[0].measured.mean == pytest.approx(122.157, abs=0.002)
