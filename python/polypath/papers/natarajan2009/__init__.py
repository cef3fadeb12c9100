"""Natarajan, Ekiz, Amer, Iyengar, Stewart: the potentially-failed destination state.

The goodput that concurrent transfer loses while a path is failing, and the part that a state
between active and inactive recovers.
"""

from polypath.papers.natarajan2009.blocking import section_1
from polypath.papers.natarajan2009.claims import CLAIMS
from polypath.papers.natarajan2009.congested import figure_4, figure_6, table_1, table_2
from polypath.papers.natarajan2009.failing import figure_2a, figure_2b
from polypath.papers.natarajan2009.growth import section_3_1
from polypath.papers.natarajan2009.lossy import figure_5
from polypath.papers.natarajan2009.settings import cause, nearest, samples
from polypath.papers.natarajan2009.shared_bottleneck import section_4
from polypath.papers.registry import Paper

#: The public names; the figures are in the order of the report.
__all__ = [  # noqa: RUF022 - that order
    "PAPER",
    "section_1",
    "figure_2a",
    "figure_2b",
    "figure_4",
    "figure_5",
    "figure_6",
    "table_1",
    "table_2",
    "section_3_1",
    "section_4",
]

PAPER = Paper(
    key="natarajan2009",
    source="natarajan2009-cmt-pf",
    title="Concurrent multipath transfer using SCTP multihoming: introducing the "
    "potentially-failed destination state (Natarajan and others 2009)",
    figures=tuple(globals()[name] for name in __all__[1:]),
    claims=CLAIMS,
    samples=samples,
    nearest=nearest,
    cause=cause,
)
