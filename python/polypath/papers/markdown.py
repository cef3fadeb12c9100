"""``docs/claims.md``: every statement and what becomes of it, from the small grids."""

from __future__ import annotations

from polypath.papers.judge import Judged
from polypath.papers.reproduce import Reproduced, Reproduction
from polypath.papers.verdict import Finding
from polypath.papers.words import allowed, tally, value

_HEAD = """\
# What the papers say, and what comes out

Written by `polypath-lab claims --write docs/claims.md`; every number and verdict is computed. A
statement holds if the 90 % interval of what was measured lies within what it allows (in brackets),
does not hold if it lies outside, and is undecided in between, or with fewer than ten runs. What is
allowed follows from the papers' own error: each of their means is known within 10 %. These are the
small grids, with {seeds} seeds for most points; `polypath-lab reproduce --full` has the papers'
own. Changes are of the transfer time: -21 % is 21 % shorter.

{tally}
"""


def markdown(reproduction: Reproduction) -> str:
    """The page. It says nothing of engine builds, so that it changes only when a result does."""
    counts = ", ".join(
        f"{count} {verdict}" for verdict, count in tally(reproduction.claims).items()
    )
    seeds = max(
        (shown.grid.seeds for paper in reproduction.papers for shown in paper.figures), default=0
    )
    summary = f"{len(reproduction.claims)} statements: {counts}."
    parts = [_HEAD.format(seeds=seeds, tally=summary)]
    return "\n".join([*parts, *(_paper(paper) for paper in reproduction.papers)])


def _paper(paper: Reproduced) -> str:
    titles = list(paper.paper.samples())
    heads = ["", "place", "statement", "paper", *titles, "polypath", "verdict"]
    lines = [f"## {paper.paper.title}", "", _line(heads), _line(["---"] * len(heads))]
    lines += [_line(_cells(one, titles)) for one in paper.claims]
    return "\n".join([*lines, ""])


def _cells(one: Judged, titles: list[str]) -> list[str]:
    row = one.row
    ours = _finding(one.ours, with_allowed=True) if one.ours else one.reason
    theirs = [_finding(finding) if (finding := one.ns2.get(title)) else "" for title in titles]
    statement = f"{row.setup}: {row.statement}"
    return [row.id, row.place, statement, row.expected, *theirs, ours, f"**{one.verdict}**"]


def _finding(finding: Finding, *, with_allowed: bool = False) -> str:
    lines = []
    for check in finding.checks:
        bounds = f" [{allowed(check)}]" if with_allowed else ""
        lines.append(f"{check.label}: {value(check)}{bounds}")
    return "<br>".join([*lines, *(f"({note})" for note in finding.notes)])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
