"""The results of a reproduction: figures, statements, and the agreement with ns-2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from polypath.papers.judge import Judged
from polypath.papers.registry import Figure, Paper
from polypath.papers.runs import Grid
from polypath.simulation import Backend

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: The file of :attr:`Reproduced.agreement`.
AGREEMENT = "agreement.csv"


@dataclass(frozen=True, slots=True)
class Shown:
    """A drawn figure, or the reason why it could not be drawn."""

    figure: Figure
    grid: Grid
    frame: pd.DataFrame | None
    chart: Chart | None
    #: Reason why the engine does not support it yet; empty if it does.
    reason: str


@dataclass(frozen=True, slots=True)
class Reproduced:
    """The requested part of a paper."""

    paper: Paper
    figures: tuple[Shown, ...]
    claims: tuple[Judged, ...]
    #: polypath's means compared with ns-2's with the same constants; see
    #: :func:`polypath.papers.agreement`.
    agreement: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The results of a reproduction, and its settings."""

    papers: tuple[Reproduced, ...]
    full: bool
    #: The command that repeats it.
    command: str
    backend: Backend | None

    @property
    def claims(self) -> tuple[Judged, ...]:
        """All statements, in the order of the papers."""
        return tuple(one for paper in self.papers for one in paper.claims)
