"""Judges single statements by many runs of the points that decide them, and of no others.

The points of a small grid that a judgement uses are run again with more seeds. A full grid has
further points, which only its figure shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike

from polypath.papers.registry import Claim, Paper
from polypath.papers.runs import Grid, NotImplementedYetError, Runs, Setting, measure
from polypath.papers.verdict import Finding
from polypath.progress import Progress


def decide(
    paper: Paper,
    claims: Sequence[Claim],
    seeds: int | Mapping[str, int],
    *,
    results: str | PathLike[str] | None = None,
    progress: bool | Callable[[Progress], object] = True,
) -> dict[str, Finding]:
    """The finding of each statement by `seeds` runs of each of its points.

    Args:
        paper: The paper of the statements.
        claims: The statements; one that cannot be judged is left out.
        seeds: Runs of a point, for all statements or for each by its id.
        results: A folder that keeps every run.
        progress: As in :func:`polypath.sweep`.

    Raises:
        NotThereError: A statement needs runs that a small grid does not have.
        RuntimeError: A run failed.
    """
    wanted: dict[Setting, int] = {}
    traced: dict[Setting, int] = {}
    used: dict[str, list[Setting]] = {}
    for claim in claims:
        if claim.judge is None:
            continue
        grids = [paper.figure(name).grid(False) for name in claim.figures]
        few = measure([_least(grid) for grid in grids], results=results, progress=False)
        try:
            claim.judge(few)
        except NotImplementedYetError:
            continue
        count = seeds if isinstance(seeds, int) else seeds[claim.id]
        used[claim.id] = list(few.used)
        for setting in few.used:
            into = traced if setting in few.traces else wanted
            into[setting] = max(into.get(setting, 0), count)
    grids = [Grid((), count, traced=(setting,)) for setting, count in traced.items()]
    grids.append(Grid((), 1, more=tuple(wanted.items())))
    runs = measure(grids, results=results, progress=progress)
    found = {}
    for claim in claims:
        if claim.judge is not None and claim.id in used:
            frames = {one: runs.frames[one] for one in used[claim.id] if one in runs.frames}
            own = Runs(frames, runs.unknown, runs.traces)
            finding = claim.judge(own)
            found[claim.id] = Finding(finding.checks, (*finding.notes, *dict.fromkeys(own.notes)))
    return found


def _least(grid: Grid) -> Grid:
    """The grid with two runs of each point, enough to see which points decide."""
    return Grid(grid.settings, min(grid.seeds, 2), traced=grid.traced)
