"""Runs what papers need, draws their figures, judges their statements, writes it all down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from polypath.papers.catalogue import PAPERS
from polypath.papers.judge import Judged, judge
from polypath.papers.reference import agreement
from polypath.papers.registry import Figure, Paper
from polypath.papers.runs import Grid, NotImplementedYetError, Runs, measure
from polypath.progress import Progress
from polypath.simulate import Backend

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure that was drawn, or why it could not be."""

    figure: Figure
    grid: Grid
    frame: pd.DataFrame | None
    chart: Chart | None
    #: Why the engine cannot do it yet; empty if it can.
    reason: str

    @property
    def file(self) -> str:
        """Its files are called so: "figure-6"."""
        return self.figure.name.lower().replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Reproduced:
    """A paper, as far as it was asked for."""

    paper: Paper
    figures: tuple[Shown, ...]
    claims: tuple[Judged, ...]
    #: Our means beside those of ns-2 with the same constants; see :func:`agreement`.
    agreement: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Everything that was reproduced, and how."""

    papers: tuple[Reproduced, ...]
    full: bool
    #: The command that does the same again.
    command: str
    backend: Backend | None

    @property
    def claims(self) -> tuple[Judged, ...]:
        """All statements, in the order of the papers."""
        return tuple(one for paper in self.papers for one in paper.claims)


def reproduce(
    papers: Sequence[Paper] | None = None,
    figure: str | None = None,
    *,
    full: bool = False,
    results: str | PathLike[str] | None = None,
    backend: Backend | None = None,
    progress: bool | Callable[[Progress], object] = True,
) -> Reproduction:
    """Reproduces papers, or one figure of one paper.

    Args:
        papers: Which; all by default.
        figure: Only this figure of the one paper, and the statements that need nothing else.
        full: The papers' own grids instead of small ones.
        results: A folder that keeps every run: what was interrupted goes on from there.
        backend: Another simulator, as in :func:`polypath.sweep`.
        progress: As in :func:`polypath.sweep`.

    Raises:
        NoSuchError: There is no such figure; with a suggestion.
        RuntimeError: A run failed.
    """
    papers = PAPERS if papers is None else papers
    chosen: dict[str, dict[Figure, Grid]] = {}
    for paper in papers:
        figures = paper.figures if figure is None else (paper.figure(figure),)
        chosen[paper.key] = {one: one.grid(full) for one in figures}
    grids = [grid for own in chosen.values() for grid in own.values()]
    if full and figure is None:
        grids += [grid for paper in papers for grid in _grids_of_reference(paper)]
    runs = measure(grids, results=results, progress=progress, backend=backend)
    done = tuple(_reproduced(paper, chosen[paper.key], runs) for paper in papers)
    return Reproduction(done, full, _command(papers, figure, full, backend), backend)


def _grids_of_reference(paper: Paper) -> list[Grid]:
    """Every point that ns-2's results with the paper's constants have."""
    return [
        Grid(tuple(samples), max(sample.n for sample in samples.values()))
        for samples in list(paper.samples().values())[:1]
    ]


def _reproduced(paper: Paper, figures: Mapping[Figure, Grid], runs: Runs) -> Reproduced:
    names = {figure.id for figure in figures}
    whole = names == {figure.id for figure in paper.figures}
    claims = [claim for claim in paper.claims if whole or names.issuperset(claim.figures)]
    samples = next(iter(paper.samples().values()), {})
    return Reproduced(
        paper,
        tuple(_shown(figure, grid, runs) for figure, grid in figures.items()),
        tuple(judge(paper, claim, runs) for claim in claims if whole or claim.figures),
        agreement(runs, samples),
    )


def _shown(figure: Figure, grid: Grid, runs: Runs) -> Shown:
    try:
        frame, chart = figure.draw(runs, grid)
    except NotImplementedYetError as error:
        return Shown(figure, grid, None, None, str(error))
    return Shown(figure, grid, frame, chart, "")


def _command(
    papers: Sequence[Paper], figure: str | None, full: bool, backend: Backend | None
) -> str:
    words = ["polypath-lab", "reproduce"]
    if len(papers) < len(PAPERS):
        words += [paper.key for paper in papers]
    words += [figure] if figure else []
    words.append("--full" if full else "--quick")
    words += ["--backend", backend] if backend else []
    return " ".join(words)


def write(reproduction: Reproduction, folder: str | PathLike[str]) -> Path:
    """Writes CSV, PNG and SVG of each figure, and `report.html`, which needs none of them.

    Returns:
        The report.

    Raises:
        OSError: The folder cannot be written.
    """
    from polypath.papers.report import html, svg

    root = Path(folder)
    for paper in reproduction.papers:
        own = root / paper.paper.key
        own.mkdir(parents=True, exist_ok=True)
        for shown in paper.figures:
            if shown.frame is not None and shown.chart is not None:
                shown.frame.to_csv(own / f"{shown.file}.csv", index=False)
                shown.chart.savefig(own / f"{shown.file}.png", dpi=150)
                (own / f"{shown.file}.svg").write_text(svg(shown.chart), encoding="utf-8")
        if not paper.agreement.empty:
            paper.agreement.to_csv(own / "agreement.csv", index=False)
    report = root / "report.html"
    report.write_text(html(reproduction), encoding="utf-8")
    return report
