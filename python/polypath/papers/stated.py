"""The papers' own precision, and the points at which a statement is judged.

``polypath/data/stated.csv`` has both for each statement with a number, fixed before the runs:
`runs`, the transfers behind each of the paper's means, from which their error follows; `at`, the
place in the figure that "as much as" or "at best" refers to; `basis`, where both come from.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Precision:
    """How well the paper knows a number, and where it is read."""

    #: Independent transfers of each mean.
    runs: int
    #: Losses of the alternate path, percent, or other positions in the figure.
    at: tuple[float, ...]
    basis: str


@cache
def _rows() -> dict[str, Precision]:
    file = resources.files("polypath") / "data" / "stated.csv"
    with file.open(encoding="utf-8") as text:
        return {
            row["id"]: Precision(
                int(row["runs"]), tuple(float(one) for one in row["at"].split()), row["basis"]
            )
            for row in csv.DictReader(text)
        }


def precision(id: str) -> Precision:  # noqa: A002 - what it is called everywhere
    """The precision of a statement of ``claims.csv``.

    Raises:
        KeyError: The file has no such statement.
    """
    return _rows()[id]


def known() -> frozenset[str]:
    """The statements of the file."""
    return frozenset(_rows())
