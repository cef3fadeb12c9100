"""Runs the grids of papers, draws figures, judges statements, and writes the results."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

import pandas as pd

from polypath.papers.catalogue import PAPERS
from polypath.papers.further import Wanted
from polypath.papers.judge import judge
from polypath.papers.record import CLAIMS, claims_frame
from polypath.papers.reference import agreement
from polypath.papers.registry import Figure, Paper
from polypath.papers.report import html, svg
from polypath.papers.reproduction import AGREEMENT, Reproduced, Reproduction, Shown
from polypath.papers.runs import Grid, NotImplementedYetError, Runs, measure
from polypath.progress import Progress
from polypath.simulation import Backend, engine


def reproduce(
    papers: Sequence[Paper] | None = None,
    figures: Sequence[str] = (),
    *,
    full: bool = False,
    seeds: int | None = None,
    results: str | PathLike[str] | None = None,
    backend: Backend | None = None,
    policies: Sequence[Wanted] = (),
    progress: bool | Callable[[Progress], object] = True,
) -> Reproduction:
    """Reproduces papers, or some figures of one paper.

    Args:
        papers: The papers; all by default.
        figures: Only these of the one paper, and the statements that need no other figure.
        full: The papers' own grids instead of small ones.
        seeds: Upper limit of the runs of a point.
        results: A folder that keeps every run, so that an interrupted reproduction can go on.
        backend: Another simulator, as in :func:`polypath.sweep`.
        policies: Further curves in each figure that takes them, as in :class:`Figure`.
        progress: As in :func:`polypath.sweep`.

    Raises:
        NoSuchError: There is no such figure; the message has a suggestion.
        RuntimeError: A run failed.
        ScenarioError: There is no such profile or policy; one line with what is allowed.
        ValueError: A figure that was asked for takes no further curves.
    """
    papers = PAPERS if papers is None else papers
    chosen: dict[str, dict[Figure, Grid]] = {}
    for paper in papers:
        wanted = [paper.figure(name) for name in figures] if figures else paper.figures
        chosen[paper.key] = {
            one: one.with_further(
                _at_most(one.grid(full), seeds), policies if one.further or figures else ()
            )
            for one in wanted
        }
    grids = [grid for own in chosen.values() for grid in own.values()]
    if full and not figures:
        grids += [_at_most(grid, seeds) for paper in papers for grid in _grids_of_reference(paper)]
    runs = measure(grids, results=results, progress=progress, backend=backend)
    done = tuple(_reproduced(paper, chosen[paper.key], runs) for paper in papers)
    command = _command(papers, figures, full, seeds, backend, policies)
    return Reproduction(done, full, command, backend)


def _at_most(grid: Grid, seeds: int | None) -> Grid:
    if seeds is None:
        return grid
    more = tuple((setting, min(count, seeds)) for setting, count in grid.more)
    return replace(grid, seeds=min(grid.seeds, seeds), more=more)


def _grids_of_reference(paper: Paper) -> list[Grid]:
    """All points of ns-2's results with the paper's constants."""
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
        _with_causes(agreement(runs, samples), paper),
    )


def _with_causes(frame: pd.DataFrame, paper: Paper) -> pd.DataFrame:
    """Replaces each point's object by the cause of its disagreement, if any."""
    if frame.empty:
        return frame
    causes = [
        "" if agrees else paper.cause(setting)
        for setting, agrees in zip(frame["setting"], frame["agrees"], strict=True)
    ]
    return frame.drop(columns="setting").assign(cause=causes)


def _shown(figure: Figure, grid: Grid, runs: Runs) -> Shown:
    try:
        frame, chart = figure.drawn(runs, grid)
    except NotImplementedYetError as error:
        return Shown(figure, grid, None, None, str(error))
    return Shown(figure, grid, frame, chart, "")


def _command(
    papers: Sequence[Paper],
    figures: Sequence[str],
    full: bool,
    seeds: int | None,
    backend: Backend | None,
    policies: Sequence[Wanted],
) -> str:
    words = ["polypath-lab", "reproduce"]
    if len(papers) < len(PAPERS):
        words += [paper.key for paper in papers]
    words += figures
    words.append("--full" if full else "--quick")
    words += ["--seeds", str(seeds)] if seeds else []
    words += ["--backend", backend] if backend else []
    for one in policies:
        words += ["--curve", shlex.quote(str(one))]
    return " ".join(words)


def write(reproduction: Reproduction, folder: str | PathLike[str]) -> Path:
    """Writes all results, and a self-contained `report.html`.

    A folder for each paper: CSV, PNG and SVG of each figure, every check of the statements
    (`claims.csv`), the comparison with ns-2's points (`agreement.csv`).

    Returns:
        The path of the report.

    Raises:
        OSError: The folder cannot be written.
    """
    root = Path(folder)
    for paper in reproduction.papers:
        own = root / paper.paper.key
        own.mkdir(parents=True, exist_ok=True)
        for shown in paper.figures:
            if shown.frame is not None and shown.chart is not None:
                name = shown.figure.file
                shown.frame.to_csv(own / f"{name}.csv", index=False)
                shown.chart.savefig(own / f"{name}.png", dpi=150)
                (own / f"{name}.svg").write_text(svg(shown.chart), encoding="utf-8")
        findings = [(one.row.id, one.ours) for one in paper.claims if one.ours]
        if findings:
            table = claims_frame(findings, engine(reproduction.backend or "polypath"))
            table.to_csv(own / CLAIMS, index=False, float_format="%.9g")
        if not paper.agreement.empty:
            paper.agreement.to_csv(own / AGREEMENT, index=False)
    report = root / "report.html"
    report.write_text(html(reproduction), encoding="utf-8")
    return report
