"""Papers, their figures and their statements: what there is, and how to find it."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from os import PathLike
from typing import TYPE_CHECKING, TypeVar

import pandas as pd

from polypath.papers.reference import Nearest, Ns2, Sample
from polypath.papers.runs import Grid, Runs, Setting, Source, measure
from polypath.papers.verdict import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart


_T = TypeVar("_T")


class NoSuchError(ValueError):
    """A paper, figure or claim that there is not; says which there are."""


@dataclass(frozen=True, slots=True)
class Row:
    """A statement of a paper, as ``polypath/data/claims.csv`` has it."""

    id: str
    paper: str
    place: str
    setup: str
    statement: str
    expected: str


@cache
def rows() -> tuple[Row, ...]:
    """Every statement, in the order of the file."""
    file = resources.files("polypath") / "data" / "claims.csv"
    with file.open(encoding="utf-8") as text:
        return tuple(Row(**row) for row in csv.DictReader(text))


@dataclass(frozen=True, slots=True)
class Summary:
    """What a reader of a figure should know, computed from its frame."""

    #: Sentences.
    says: tuple[str, ...] = ()
    #: Shown open, as it is, with words for its columns.
    table: pd.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, table or result of a paper: what to run, and how it is drawn.

    Called, it runs its grid and gives a frame and a figure in the paper's layout.
    """

    #: As the paper numbers it: "6", "2a", "table-1", or "5.4" ("section-1") for a section whose
    #: results it does not show.
    id: str
    title: str
    #: What to run; with True the paper's own grid, with False a small one.
    grid: Callable[[bool], Grid]
    #: From runs and what was asked for to a tidy frame and the figure.
    draw: Callable[[Runs, Grid], tuple[pd.DataFrame, Chart]]
    #: From the frame to what is written beneath the figure.
    summary: Callable[[pd.DataFrame], Summary] = lambda _frame: Summary()

    def __call__(
        self,
        *,
        full: bool = False,
        results: str | PathLike[str] | None = None,
        progress: bool = True,
    ) -> tuple[pd.DataFrame, Chart]:
        """Runs the grid and draws the figure.

        Args:
            full: The paper's own grid instead of a small one.
            results: A folder that keeps every run, as in :func:`polypath.sweep`.
            progress: Whether to show progress on stderr.

        Returns:
            A tidy frame with a row for each point (times in seconds), and the figure.

        Raises:
            NotImplementedYetError: The engine knows no point of it yet.
        """
        grid = self.grid(full)
        return self.draw(measure([grid], results=results, progress=progress), grid)

    @property
    def name(self) -> str:
        """What to call it in a heading."""
        return figure_name(self.id)

    @property
    def file(self) -> str:
        """Its files are called so: "figure-6"."""
        return self.name.lower().replace(" ", "-")


def figure_name(id: str) -> str:  # noqa: A002 - what it is called
    """What to call a figure, table or result in a heading."""
    if id.startswith("table-"):
        return f"Table {id.removeprefix('table-')}"
    if id.startswith("section-"):
        return f"Section {id.removeprefix('section-')}"
    return f"Figure {id}" if id[0].isdigit() and id.isalnum() else f"Section {id}"


#: From a source to what it says about a statement.
Judge = Callable[[Source], Finding]


@dataclass(frozen=True, slots=True)
class Claim:
    """How a statement is judged: from which figures, and by which function; None: not yet."""

    id: str
    figures: tuple[str, ...] = ()
    judge: Judge | None = None
    #: Why it does not hold, or why paper, ns-2 and polypath differ; from traces.
    remark: str = ""

    @property
    def row(self) -> Row:
        """The statement itself."""
        return next(row for row in rows() if row.id == self.id)


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper with its figures and its statements."""

    #: As on the command line.
    key: str
    #: As in ``claims.csv``.
    source: str
    title: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    #: ns-2's results by variant, named as in a heading.
    samples: Callable[[], Mapping[str, Mapping[Setting, Sample]]] = dict
    nearest: Nearest = field(default=lambda _setting, _known: None)
    #: Why our mean and that of ns-2 differ at a point, for those where they do.
    cause: Callable[[Setting], str] = lambda _setting: ""

    def figure(self, name: str) -> Figure:
        """The figure of this name.

        Raises:
            NoSuchError: There is none; with a suggestion.
        """
        return _find(name, {figure.id: figure for figure in self.figures}, f"figure of {self.key}")

    def references(self) -> dict[str, Ns2]:
        """ns-2's results as sources for claims; made anew, as each keeps notes."""
        return {title: Ns2(own, self.nearest) for title, own in self.samples().items()}


def not_yet(ids: Sequence[str]) -> tuple[Claim, ...]:
    """Statements that nothing here can judge yet."""
    return tuple(Claim(id) for id in ids)  # noqa: A001 - what it is called everywhere


def find_paper(name: str, papers: Sequence[Paper]) -> Paper:
    """The paper of this name.

    Raises:
        NoSuchError: There is none; with a suggestion.
    """
    return _find(name, {paper.key: paper for paper in papers}, "paper")


def _find(name: str, known: Mapping[str, _T], what: str) -> _T:
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f'did you mean "{close[0]}"? ' if close else ""
    raise NoSuchError(f'{what}: no "{name}"; {hint}allowed: {", ".join(known) or "none yet"}')
