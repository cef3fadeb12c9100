"""Caro, Amer, Stewart: Rethinking end-to-end failover with transport layer multihoming.

How small may Path.Max.Retrans be where paths lose packets but none breaks, and should a failover be
permanent? All transfers are of 80 MB with FrSameRtoAlt+MFR (III.1).
"""

from polypath.papers.caro2006_failover.by_model import section_4_2
from polypath.papers.caro2006_failover.claims import CLAIMS
from polypath.papers.caro2006_failover.figures import (
    figure_5,
    figure_6,
    figure_10,
    figure_11,
    figure_12,
    section_3_2,
    section_3_3,
    section_3_5,
    section_3_6,
    section_5,
)
from polypath.papers.caro2006_failover.ladders import figure_8
from polypath.papers.caro2006_failover.settings import cause, nearest, samples
from polypath.papers.caro2006_failover.spurious import figure_3, figure_4
from polypath.papers.registry import Paper

#: The public names; the figures are in the order of the report.
__all__ = [  # noqa: RUF022 - that order
    "PAPER",
    "section_3_2",
    "section_3_3",
    "figure_3",
    "figure_4",
    "figure_5",
    "figure_6",
    "section_3_5",
    "section_3_6",
    "figure_8",
    "figure_10",
    "figure_11",
    "figure_12",
    "section_4_2",
    "section_5",
]

PAPER = Paper(
    key="caro2006-failover",
    source="caro2006-failover",
    title="Rethinking end-to-end failover with transport layer multihoming "
    "(Caro, Amer, Stewart 2006)",
    figures=tuple(globals()[name] for name in __all__[1:]),
    claims=CLAIMS,
    samples=samples,
    nearest=nearest,
    cause=cause,
)
