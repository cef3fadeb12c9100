"""``report.html``: every statement and every figure in one self-contained file.

The page is the template ``report.html.j2``, which this module gives its functions.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import pandas as pd

from polypath.papers.judge import Judged
from polypath.papers.reproduction import Reproduced, Reproduction, Shown
from polypath.papers.verdict import Verdict
from polypath.papers.words import AGREES, RULE, UNITS, allowed, cell, columns, tally, value
from polypath.simulation import engine_version

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure as Chart

#: The class of each verdict in the style sheet.
_CLASSES = {
    str(Verdict.HOLDS): "holds",
    str(Verdict.FAILS): "fails",
    str(Verdict.UNDECIDED): "undecided",
    str(Verdict.MISSING): "missing",
}


def html(reproduction: Reproduction) -> str:
    """The report. The same runs give the same text: it has no date and no local path."""

    def command_of(paper: Reproduced, shown: Shown) -> str:
        words = ["polypath-lab reproduce", paper.paper.key, shown.figure.id]
        words += ["--full"] * reproduction.full
        words += [f"--backend {reproduction.backend}"] if reproduction.backend else []
        return " ".join(words)

    return _template().render(
        papers=reproduction.papers,
        claims=reproduction.claims,
        full=reproduction.full,
        backend=reproduction.backend,
        simulator=reproduction.backend or "polypath",
        engine=engine_version,
        command=reproduction.command,
        command_of=command_of,
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    folder = resources.files("polypath") / "papers"
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.globals |= {
        "agrees": AGREES,
        "allowed": allowed,
        "anchor": _anchor,
        "cell": cell,
        "classes": _CLASSES,
        "columns": columns,
        "disagreeing": _disagreeing,
        "drawing": _drawing,
        "fails": _fails,
        "judged_by": _judged_by,
        "known": _known,
        "rule": RULE,
        "style": (folder / "report.css").read_text(encoding="utf-8"),
        "tally": _tally,
        "units": UNITS,
        "value": value,
    }
    return environment.from_string((folder / "report.html.j2").read_text(encoding="utf-8"))


def _anchor(paper: Reproduced, shown: Shown) -> str:
    return f"{paper.paper.key}-{shown.figure.file}"


def _disagreeing(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[~frame["agrees"].astype(bool)]


def _drawing(chart: Chart) -> str:
    return base64.b64encode(svg(chart).encode()).decode()


def _fails(one: Judged) -> bool:
    return one.decided is Verdict.FAILS


def _judged_by(paper: Reproduced, shown: Shown) -> list[str]:
    return [claim.id for claim in paper.paper.claims if shown.figure.id in claim.figures]


def _known(paper: Reproduced) -> set[str]:
    return {one.row.id for one in paper.claims}


def _tally(claims: Sequence[Judged]) -> dict[str, int]:
    return tally(one.verdict for one in claims)


def svg(chart: Chart) -> str:
    """A figure as SVG, the same for the same figure."""
    import matplotlib as mpl

    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "polypath", "svg.fonttype": "path"}):
        chart.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()
