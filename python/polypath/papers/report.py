"""``report.html``: every statement and every figure in one self-contained file."""

from __future__ import annotations

import base64
import io
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

import pandas as pd

from polypath.papers.judge import Judged
from polypath.papers.reproduction import Reproduced, Reproduction, Shown
from polypath.papers.verdict import Finding, Verdict
from polypath.papers.words import AGREES, UNITS, allowed, cell, columns, tally, value
from polypath.simulate import engine_version

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

_CLASSES = {
    Verdict.HOLDS: "holds",
    Verdict.FAILS: "fails",
    Verdict.UNDECIDED: "undecided",
    Verdict.MISSING: "missing",
}


def html(reproduction: Reproduction) -> str:
    """The report. The same runs give the same text: it has no date and no local path."""
    style = (resources.files("polypath") / "papers" / "report.css").read_text(encoding="utf-8")
    papers = "\n".join(_paper(paper, reproduction) for paper in reproduction.papers)
    scale = "the papers' own grids" if reproduction.full else "small grids (quick)"
    backend = reproduction.backend or "polypath"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>polypath: the papers' statements</title>
<style>
{style}</style>
</head>
<body>
<h1>What the papers say, and what comes out</h1>
{_counts(reproduction.claims)}
<p>A statement holds if the 90 % interval of what was measured lies within what it allows, does
not hold if the interval lies outside, and is undecided in between, or with fewer than ten runs.
What is allowed follows from the paper's own error (each of its means is known within 10 %).</p>
<p>Settings: {scale}; simulator: {escape(backend)}; engine {escape(engine_version)}; seeds 1 to n,
where n stands with each figure; all policies meet the same losses.</p>
<pre>{escape(reproduction.command)}</pre>
{_contents(reproduction)}
{papers}
</body>
</html>
"""


def _counts(claims: tuple[Judged, ...]) -> str:
    parts = [
        f'<li><b class="{_CLASSES[Verdict(verdict)]}">{count}</b> {escape(verdict)}</li>'
        for verdict, count in tally(one.verdict for one in claims).items()
    ]
    return f'<ul class="counts">{"".join(parts)}<li><b>{len(claims)}</b> statements</li></ul>'


def _contents(reproduction: Reproduction) -> str:
    """Links to each statement and figure."""
    items = []
    for paper in reproduction.papers:
        rows = " ".join(
            f'<a class="{_CLASSES[one.verdict]}" href="#{one.row.id}">{one.row.id}</a>'
            for one in paper.claims
        )
        figures = " ".join(
            f'<a href="#{_anchor(paper, shown)}">{escape(shown.figure.name)}</a>'
            for shown in paper.figures
        )
        items.append(f"<li>{escape(paper.paper.title)}<br>{rows}<br>{figures}</li>")
    return f"<nav><ul>{''.join(items)}</ul></nav>"


def _anchor(paper: Reproduced, shown: Shown) -> str:
    return f"{paper.paper.key}-{shown.figure.file}"


def _paper(paper: Reproduced, reproduction: Reproduction) -> str:
    parts = [f'<section id="{paper.paper.key}"><h2>{escape(paper.paper.title)}</h2>']
    if paper.claims:
        parts.append(_counts(paper.claims))
    parts += [_claim(one, reproduction) for one in paper.claims]
    parts += [_figure(paper, shown, reproduction) for shown in paper.figures]
    if not paper.agreement.empty:
        parts.append(_agreement(paper.agreement))
    return "\n".join([*parts, "</section>"])


def _claim(one: Judged, reproduction: Reproduction) -> str:
    row = one.row
    grid = "the paper's grid" if reproduction.full else "small grid"
    simulator = reproduction.backend or "polypath"
    ours = _finding(one.ours, with_allowed=True) if one.ours else f"<p>{escape(one.reason)}</p>"
    sources = [f"<div><h4>the paper</h4><p>{escape(row.expected)}</p></div>"]
    for title, finding in one.ns2.items():
        text = _finding(finding) if finding else '<p class="soft">no reference runs</p>'
        sources.append(f"<div><h4>{escape(title)}</h4>{text}</div>")
    sources.append(f"<div><h4>{simulator}, {grid}</h4>{ours}</div>")
    recorded = one.full if not reproduction.full and not reproduction.backend else None
    if recorded:
        text = _finding(recorded, with_allowed=True)
        sources.append(f"<div><h4>polypath, the paper's grid, as recorded</h4>{text}</div>")
    remark = f"<p>{escape(one.remark)}</p>" if one.remark else ""
    heading = f'{row.id} <span class="verdict {_CLASSES[one.verdict]}">{one.verdict}</span>'
    if recorded:
        verdict = one.decided
        heading += f' (the paper\'s grid: <span class="{_CLASSES[verdict]}">{verdict}</span>)'
    return f"""<article class="claim" id="{row.id}">
<h3>{heading}</h3>
<p>{escape(row.statement)}</p>
<p class="soft">{escape(row.place)}: {escape(row.setup)}</p>
<div class="sources">{"".join(sources)}</div>{remark}
</article>"""


def _finding(finding: Finding, *, with_allowed: bool = False) -> str:
    items = []
    for check in finding.checks:
        text = f"{escape(check.label)}: <b>{escape(value(check))}</b>"
        if with_allowed:
            text += (
                f' <span class="soft">(allowed: {escape(allowed(check))}; {check.verdict})</span>'
            )
        items.append(f"<li>{text}</li>")
    notes = "".join(f'<p class="soft">{escape(note)}</p>' for note in finding.notes)
    # If another point replaces the statement's, show the numbers without a verdict.
    silent = with_allowed or finding.notes
    said = "" if silent else f'<p class="soft">judged alike: {finding.verdict}</p>'
    return f"<ul>{''.join(items)}</ul>{notes}{said}"


def _figure(paper: Reproduced, shown: Shown, reproduction: Reproduction) -> str:
    name = _anchor(paper, shown)
    head = f"<figcaption><h3>{escape(shown.figure.name)}. {escape(shown.figure.title)}</h3>"
    command = f"polypath-lab reproduce {paper.paper.key} {shown.figure.id}"
    command += " --full" if reproduction.full else ""
    command += f" --backend {reproduction.backend}" if reproduction.backend else ""
    judged = [c.id for c in paper.paper.claims if shown.figure.id in c.figures]
    there = {one.row.id for one in paper.claims}
    links = ", ".join(f'<a href="#{id_}">{id_}</a>' if id_ in there else id_ for id_ in judged)
    facts = f"{shown.grid.seeds} seeds a point; <code>{escape(command)}</code>"
    facts += f"; what the paper says of it: {links}" if judged else ""
    if shown.chart is None or shown.frame is None:
        why = f'<p class="missing">not yet implemented: {escape(shown.reason)}</p>'
        return f'<figure id="{name}">{head}<p class="soft">{facts}</p></figcaption>{why}</figure>'
    data = base64.b64encode(svg(shown.chart).encode()).decode()
    image = f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(shown.figure.title)}">'
    told = shown.figure.summary(shown.frame)
    says = f"<p>{escape(' '.join(told.says))}</p>" if told.says else ""
    says += _table(told.table) if told.table is not None else ""
    numbers = f"<details><summary>numbers</summary>{_table(shown.frame)}</details>"
    caption = f'{head}<p class="soft">{facts}</p></figcaption>'
    return f'<figure id="{name}">{caption}{image}{says}{numbers}</figure>'


def _table(frame: pd.DataFrame) -> str:
    shown = frame.dropna(axis="columns", how="all")
    heads = "".join(f"<th>{escape(head)}</th>" for head in columns(shown))
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell(*one))}</td>" for one in row.items()) + "</tr>"
        for row in shown.to_dict("records")
    )
    return f'<div class="wide"><table><tr>{heads}</tr>{rows}</table></div>'


def _agreement(frame: pd.DataFrame) -> str:
    outside = frame[~frame["agrees"].astype(bool)]
    within = len(frame) - len(outside)
    text = (
        f"<h3>Beside ns-2 with the papers' constants</h3><p>{within} of {len(frame)} points agree: "
        f"{AGREES} (a tenth of all points would lie outside of that by chance).</p>"
    )
    if outside.empty:
        return text
    return f"{text}<p>Outside, {UNITS}:</p>{_table(outside.drop(columns='agrees'))}"


def svg(chart: Chart) -> str:
    """A figure as SVG, the same for the same figure."""
    import matplotlib as mpl

    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "polypath", "svg.fonttype": "path"}):
        chart.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()
