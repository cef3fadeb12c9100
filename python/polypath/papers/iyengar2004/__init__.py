"""Iyengar, Amer, Stewart: Retransmission policies for concurrent multipath transfer.

New data is sent over all paths at once; the policies differ in the path of a retransmission.
Transfers of 8 MB over two paths, of which the first loses 1 % and the second 1 to 10 %, in both
directions.
"""

from polypath.papers.iyengar2004.claims import CLAIMS
from polypath.papers.iyengar2004.figures import (
    figure_5a,
    figure_5b,
    figure_6,
    figure_7a,
    figure_7b,
    figure_7c,
    figure_7d,
    section_5_a,
)
from polypath.papers.iyengar2004.further import further_1, further_2, further_3
from polypath.papers.iyengar2004.settings import nearest, samples
from polypath.papers.registry import Paper

#: The public names; the figures are in the order of the report.
__all__ = [  # noqa: RUF022 - that order
    "PAPER",
    "figure_5a",
    "figure_5b",
    "figure_6",
    "figure_7a",
    "figure_7b",
    "figure_7c",
    "figure_7d",
    "section_5_a",
    "further_1",
    "further_2",
    "further_3",
]

PAPER = Paper(
    key="iyengar2004",
    source="iyengar2004-cmt-retransmission",
    title="Retransmission policies for concurrent multipath transfer using SCTP multihoming "
    "(Iyengar, Amer, Stewart 2004)",
    figures=tuple(globals()[name] for name in __all__[1:]),
    claims=CLAIMS,
    samples=samples,
    nearest=nearest,
)
