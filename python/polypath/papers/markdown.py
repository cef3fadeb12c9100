"""Writes ``docs/claims.md``, a summary, and ``docs/claims.tsv``, each check of a statement."""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import fill

import pandas as pd

from polypath.papers.judge import AS_DEBIAN_SHIPS_IT, Judged
from polypath.papers.record import FULL, recorded_frame
from polypath.papers.registry import Figure, Paper
from polypath.papers.reproduction import AGREEMENT, Reproduced, Reproduction
from polypath.papers.verdict import Verdict
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
# The statements of five papers

Written by `polypath-lab claims --write docs/claims.md`; every number and verdict is computed.
[claims.tsv](claims.tsv) has each measured value and the range in which it holds, for polypath and
for ns-2.

{summary}

{rule}

Each row has three results: whether the statement holds in polypath (small grid, and full grid as
recorded), whether it holds in ns-2, and whether polypath equals ns-2 at its points. A statement
that does not hold names its proof: that ns-2 does not meet it either, that polypath equals ns-2
there, or traces and readings in the remarks below its table. Small grids have {seeds} seeds for
most points and are run again by this command; the full grids are the papers' own, with more seeds
than in the papers, as they were [recorded](../python/polypath/data/recorded/README.md), judged by
the rules above. `polypath-lab reproduce --full` runs a grid that is not recorded. Changes are of
the transfer time: -21 % is 21 % shorter.
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
    summary = "\n".join(
        f"- {grids}, {len(own)} statements: {_tally(own)}." for grids, own in verdicts.items()
    )
    head = _HEAD.format(seeds=seeds, summary=summary, rule=fill(RULE, 100))
    parts = [head]
    return "\n".join([*parts, *(_paper(paper) for paper in reproduction.papers)])


def _tally(verdicts: Iterable[Verdict]) -> str:
    plural = {"holds": "hold", "does not hold": "do not hold", "undecided": "are undecided"}
    text = ", ".join(f"{count} {verdict}" for verdict, count in tally(verdicts).items() if count)
    return re.sub("|".join(plural), lambda found: plural[found[0]], text)


def measurements(reproduction: Reproduction) -> str:
    """Tab-separated values of every check of each statement, a row for each source of results."""
    heads = ["paper", "statement", "source", "check", "measured", "allowed", "verdict", "note"]
    rows = (row for paper in reproduction.papers for one in paper.claims for row in _measured(one))
    papers = {one.row.id: paper.paper.key for paper in reproduction.papers for one in paper.claims}
    lines = [heads, *([papers[row[0]], *row] for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _paper(paper: Reproduced) -> str:
    heads = ["", "place", "statement", "paper", "small grid", "full grid"]
    heads += ["in ns-2", "equals ns-2", "proof"]
    lines = [f"## {paper.paper.title}", "", *_table(heads, (_verdicts(c) for c in paper.claims))]
    remarks = [f"- **{one.row.id}**: {one.remark.strip()}" for one in paper.claims if one.remark]
    if remarks:
        lines += ["", f"### Remarks on {paper.paper.key}", "", *remarks]
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


def _measured(one: Judged) -> list[list[str]]:
    """The checks of each source of results for a statement."""
    if one.ours is None:
        return []
    own = {"polypath, small grid": one.ours, "polypath, full grid": one.full}
    rows = []
    for title, finding in {**one.ns2, **own}.items():
        if finding is None:
            continue
        # If another point replaces the statement's in ns-2's results, show them without a verdict.
        judges = title in (*own, AS_DEBIAN_SHIPS_IT) or not finding.notes
        note = "; ".join(finding.notes)
        for check, verdict in zip(finding.checks, finding.verdicts, strict=True):
            decide = (
                still_open(check) if finding is one.full and verdict is Verdict.UNDECIDED else ""
            )
            notes = "; ".join(filter(None, (note, decide)))
            cells = [one.row.id, title, check.label, value(check), allowed(check)]
            rows.append([*cells, str(verdict) if judges else "", notes])
    if one.equal:
        rows.append([one.row.id, "polypath against ns-2", "equality", str(one.equal), "", "", ""])
    return rows


def _summary(paper: Paper, figure: Figure) -> list[str]:
    """The summary of a figure's recorded run, with a link to its data."""
    name = f"{figure.file}.csv"
    frame = recorded_frame(paper.key, FULL, name)
    if frame is None:
        return []
    says = " ".join(figure.summary(frame).says)
    command = f"`polypath-lab reproduce {paper.key} {figure.id} --full`"
    data = f"[{name}](../python/polypath/data/recorded/{paper.key}/{FULL}/{name})"
    return ["", f"### {figure.name}: {figure.title}", "", f"{says} ({command}; {data})"]


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
    lines = ["", f"### {paper.key} compared with ns-2", "", says]
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
