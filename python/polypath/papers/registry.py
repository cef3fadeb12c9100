"""The registry of papers, their figures and their statements."""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from os import PathLike
from typing import TYPE_CHECKING, TypeVar

import pandas as pd

from polypath.papers.further import Further, FurtherPoint, Wanted
from polypath.papers.reference import Nearest, Ns2, Sample
from polypath.papers.runs import Grid, Runs, Setting, Source, measure
from polypath.papers.verdict import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart


_T = TypeVar("_T")


class NoSuchError(ValueError):
    """There is no such paper, figure or claim; the message lists the existing ones."""


@dataclass(frozen=True, slots=True)
class Row:
    """A statement of a paper: a row of ``polypath/data/claims.csv``."""

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
    """Sentences and a table beneath a figure, computed from its frame."""

    #: The sentences, in order.
    says: tuple[str, ...] = ()
    #: The table, always visible, with readable heads of its columns.
    table: pd.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, table or result of a paper: its runs and how it is drawn.

    A call runs its grid and returns a frame and a figure in the paper's layout.
    """

    #: The paper's number: "6", "2a", "table-1", or "5.4" ("section-1") for a section whose results
    #: have no figure; "further-1" for results beyond the paper.
    id: str
    title: str
    #: The grid: with True the paper's own, with False a small one.
    grid: Callable[[bool], Grid]
    #: Makes a tidy frame and the figure from runs and the requested grid.
    draw: Callable[[Runs, Grid], tuple[pd.DataFrame, Chart]]
    #: Makes the text beneath the figure from its frame.
    summary: Callable[[pd.DataFrame], Summary] = lambda _frame: Summary()
    #: How it takes further curves; None if it shows single packets or values of the paper alone.
    further: Further | None = None

    def __call__(
        self,
        *,
        policies: Sequence[Wanted] = (),
        full: bool = False,
        results: str | PathLike[str] | None = None,
        progress: bool = True,
    ) -> tuple[pd.DataFrame, Chart]:
        """Runs the grid and draws the figure.

        Args:
            policies: Further curves: profiles such as "modern", policies of the decision that the
                figure is about, or a :class:`Curve` with any of them.
            full: The paper's own grid instead of a small one.
            results: A folder that keeps every run, as in :func:`polypath.sweep`.
            progress: Whether to show progress on stderr.

        Returns:
            A tidy frame with a row for each point (times in seconds), and the figure. Points of
            further curves have its name in the column "curve".

        Raises:
            NotImplementedYetError: The engine supports none of its points yet.
            ScenarioError: There is no such profile or policy; one line with what is allowed.
            ValueError: The figure takes no further curves.
        """
        grid = self.with_further(self.grid(full), policies)
        return self.drawn(measure([grid], results=results, progress=progress), grid)

    def with_further(self, grid: Grid, policies: Sequence[Wanted]) -> Grid:
        """A grid with the points of further curves.

        Raises:
            ScenarioError: There is no such profile or policy.
            ValueError: The figure takes no further curves.
        """
        if not policies:
            return grid
        if self.further is None:
            raise ValueError(f"{self.name} takes no further curves: it has no curves of policies")
        points = grid.traced if self.further.traced else grid.settings
        based = [one for one in points if self.further.base(one)]
        added = tuple(self.further.points(self.further.curves(policies, based), based))
        if self.further.traced:
            return replace(grid, traced=(*grid.traced, *added))
        return replace(grid, settings=(*grid.settings, *added))

    def drawn(self, runs: Runs, grid: Grid) -> tuple[pd.DataFrame, Chart]:
        """The frame and the figure from runs of a grid, with further curves if it has any.

        Raises:
            NotImplementedYetError: The engine supports none of its points yet.
        """
        added = [one for one in (*grid.settings, *grid.traced) if isinstance(one, FurtherPoint)]
        own = replace(
            grid,
            settings=tuple(one for one in grid.settings if not isinstance(one, FurtherPoint)),
            traced=tuple(one for one in grid.traced if not isinstance(one, FurtherPoint)),
        )
        frame, chart = self.draw(runs, own)
        if self.further is None or not added:
            return frame, chart
        return self.further.draw(runs, added, frame, chart), chart

    @property
    def name(self) -> str:
        """Its name in a heading."""
        return figure_name(self.id)

    @property
    def file(self) -> str:
        """Name of its files, without suffix: "figure-6"."""
        return self.name.lower().replace(" ", "-")


def figure_name(id: str) -> str:  # noqa: A002 - what it is called
    """Name of a figure, table or result in a heading."""
    if id.startswith("table-"):
        return f"Table {id.removeprefix('table-')}"
    if id.startswith("section-"):
        return f"Section {id.removeprefix('section-')}"
    if id.startswith("further-"):
        return f"Further figure {id.removeprefix('further-')}"
    return f"Figure {id}" if re.fullmatch(r"\d+[a-z]?", id) else f"Section {id}"


#: Judges a statement by the results of a source.
Judge = Callable[[Source], Finding]


@dataclass(frozen=True, slots=True)
class Claim:
    """The judgement of a statement: the figures that it needs, and a function (None: not yet)."""

    id: str
    figures: tuple[str, ...] = ()
    judge: Judge | None = None
    #: Reason why it does not hold, or why paper, ns-2 and polypath differ; from traces.
    remark: str = ""

    @property
    def row(self) -> Row:
        """The statement itself."""
        return next(row for row in rows() if row.id == self.id)


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper with its figures and its statements."""

    #: Name on the command line.
    key: str
    #: Name in ``claims.csv``.
    source: str
    title: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    #: ns-2's results by variant, named as in a heading.
    samples: Callable[[], Mapping[str, Mapping[Setting, Sample]]] = dict
    nearest: Nearest = field(default=lambda _setting, _known: None)
    #: Single runs of ns-2 by variant, where they are known.
    frames: Callable[[], Mapping[str, Mapping[Setting, pd.DataFrame]]] = dict
    #: Explains the difference between polypath's and ns-2's mean at a point.
    cause: Callable[[Setting], str] = lambda _setting: ""

    def figure(self, name: str) -> Figure:
        """The figure of this name.

        Raises:
            NoSuchError: There is none; the message has a suggestion.
        """
        return _find(name, {figure.id: figure for figure in self.figures}, f"figure of {self.key}")

    def claim(self, name: str) -> Claim:
        """The statement of this id.

        Raises:
            NoSuchError: There is none; the message has a suggestion.
        """
        return _find(name, {claim.id: claim for claim in self.claims}, f"statement of {self.key}")

    def references(self) -> dict[str, Ns2]:
        """ns-2's results as sources for claims; new ones for each call, as they collect notes."""
        frames = self.frames()
        return {
            title: Ns2(own, self.nearest, frames.get(title))
            for title, own in self.samples().items()
        }


def not_yet(ids: Sequence[str]) -> tuple[Claim, ...]:
    """Statements that cannot be judged yet."""
    return tuple(Claim(id) for id in ids)  # noqa: A001 - what it is called everywhere


def find_paper(name: str, papers: Sequence[Paper]) -> Paper:
    """The paper of this name.

    Raises:
        NoSuchError: There is none; the message has a suggestion.
    """
    return _find(name, {paper.key: paper for paper in papers}, "paper")


def _find(name: str, known: Mapping[str, _T], what: str) -> _T:
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f'did you mean "{close[0]}"? ' if close else ""
    raise NoSuchError(f'{what}: no "{name}"; {hint}allowed: {", ".join(known) or "none yet"}')
