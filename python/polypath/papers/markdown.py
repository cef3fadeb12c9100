"""Writes ``docs/claims.md``: every statement with its verdict, and summaries of figures."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill

import pandas as pd

from polypath.papers.judge import AS_DEBIAN_SHIPS_IT, Judged
from polypath.papers.record import FULL, recorded_engines, recorded_frame
from polypath.papers.registry import Figure, Paper
from polypath.papers.reproduction import AGREEMENT, Reproduced, Reproduction
from polypath.papers.verdict import Finding, Verdict
from polypath.papers.words import (
    AGREES,
    RULE,
    UNITS,
    allowed,
    cell,
    columns,
    still_open,
    tally,
    value,
)

_HEAD = """\
# What the papers say, and what comes out

Written by `polypath-lab claims --write docs/claims.md`; every number and verdict is computed.

{rule}

Each row has three answers: whether the statement holds in polypath (small grid, and full grid as
recorded), whether it holds in ns-2, and whether polypath equals ns-2 at its points. A statement
that does not hold names its proof: that ns-2 does not meet it either, that polypath equals ns-2
there, or traces and readings in its section below. Small grids have {seeds} seeds for most points
and are run again by this command; the full grids are the papers' own, with more seeds than theirs,
and stand here as they were [recorded](../python/polypath/data/recorded/README.md), judged by the
rules above, with engine {engine}. `polypath-lab reproduce --full` runs a grid that is not recorded.
Changes are of the transfer time: -21 % is 21 % shorter.

{summary}
"""


def markdown(reproduction: Reproduction) -> str:
    """The page. It does not mention engine builds, so it only changes when a result does."""
    seeds = max(
        (shown.grid.seeds for paper in reproduction.papers for shown in paper.figures), default=0
    )
    claims = reproduction.claims
    verdicts = {
        "Small grids": [one.verdict for one in claims],
        "Full grids": [one.full.verdict for one in claims if one.full],
    }
    summary = "  \n".join(
        f"{grids}, {len(own)} statements: {_tally(own)}." for grids, own in verdicts.items()
    )
    engine = ", ".join(recorded_engines(paper.paper.key for paper in reproduction.papers))
    head = _HEAD.format(seeds=seeds, summary=summary, rule=fill(RULE, 100), engine=engine)
    parts = [head]
    return "\n".join([*parts, *(_paper(paper) for paper in reproduction.papers)])


def _tally(verdicts: Iterable[Verdict]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in tally(verdicts).items() if count)


def _paper(paper: Reproduced) -> str:
    heads = ["", "place", "statement", "paper", "small grid", "full grid"]
    heads += ["in ns-2", "equals ns-2", "proof"]
    lines = [f"## {paper.paper.title}", "", *_table(heads, (_verdicts(c) for c in paper.claims))]
    for one in paper.claims:
        lines += _measured(one)
    for figure in paper.paper.figures:
        lines += _summary(paper.paper, figure)
    lines += _agreement(paper.paper)
    return "\n".join([*lines, ""])


def _verdicts(one: Judged) -> list[str]:
    row = one.row
    full = f"**{one.full.verdict}**" if one.full else ""
    statement = f"{row.setup}: {row.statement}"
    fails = one.decided is Verdict.FAILS
    return [
        row.id,
        row.place,
        statement,
        row.expected,
        f"**{one.verdict}**",
        full,
        str(one.in_ns2 or ""),
        str(one.equal.answer) if one.equal else "",
        (one.proof or "none") if fails else "",
    ]


def _measured(one: Judged) -> list[str]:
    """The results of each source for a statement."""
    if one.ours is None:
        return []
    ours = {"polypath, small grid": one.ours, "polypath, full grid": one.full}
    rows = [("the paper", one.row.expected, "")]
    for title, finding in {**one.ns2, **ours}.items():
        # If another point replaces the statement's in ns-2's results, show them without a verdict.
        judges = finding and (title in (*ours, AS_DEBIAN_SHIPS_IT) or not finding.notes)
        text = _finding(finding, plan=finding is one.full)
        rows.append((title, text, str(finding.verdict) if finding and judges else ""))
    remark = [one.remark, ""] if one.remark else []
    if one.equal:
        remark += [f"polypath equals ns-2: {one.equal}", ""]
    return ["", f"### {one.row.id}", "", *remark, *_table(["", "measured", "verdict"], rows)]


def _finding(finding: Finding | None, *, plan: bool = False) -> str:
    """The checks; with `plan`, also the number of runs that would decide an open statement."""
    if finding is None:
        return "no runs"
    plan &= finding.verdict is Verdict.UNDECIDED
    lines = []
    for check in finding.checks:
        missing = f"; {still_open(check)}" if plan and still_open(check) else ""
        lines.append(f"{check.label}: {value(check)} [{allowed(check)}{missing}]")
    return "<br>".join([*lines, *(f"({note})" for note in finding.notes)])


def _summary(paper: Paper, figure: Figure) -> list[str]:
    """The summary of a figure's recorded run."""
    frame = recorded_frame(paper.key, FULL, f"{figure.file}.csv")
    if frame is None:
        return []
    told = figure.summary(frame)
    command = f"`polypath-lab reproduce {paper.key} {figure.id} --full`"
    lines = ["", f"### {figure.name}: {figure.title}", "", " ".join([*told.says, f"({command})"])]
    return [*lines, "", *_frame(told.table)] if told.table is not None else lines


def _agreement(paper: Paper) -> list[str]:
    frame = recorded_frame(paper.key, FULL, AGREEMENT)
    if frame is None:
        return []
    outside = frame[~frame["agrees"].astype(bool)]
    command = f"`polypath-lab reproduce {paper.key} --full`"
    says = (
        f"{len(frame) - len(outside)} of {len(frame)} points agree with ns-2 with the papers' "
        f"constants: {AGREES} ({command})."
    )
    lines = ["", "### Beside ns-2", "", says]
    if outside.empty:
        return lines
    varied = outside.drop(columns=["agrees", "paths"], errors="ignore")
    return [*lines, "", f"Outside, {UNITS}:", "", *_frame(varied.dropna(axis="columns", how="all"))]


def _frame(frame: pd.DataFrame) -> list[str]:
    rows = ([cell(column, one) for column, one in row.items()] for row in frame.to_dict("records"))
    return _table(columns(frame), rows)


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    heads = list(heads)
    return [_line(heads), _line(["---"] * len(heads)), *(_line(row) for row in rows)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(text.replace('|', '/') for text in cells)} |"
