"""The papers' figures and the verdicts on their statements.

    frame, figure = polypath.papers.caro2006_retransmission.figure_6()

runs a small grid of Figure 6 and returns its points and a matplotlib figure in the paper's layout;
``figure_6(full=True)`` takes the paper's own grid. :func:`reproduce` does that for whole papers and
judges their statements; ``polypath-lab reproduce`` is the same from the command line.
:func:`reference` returns the results of the papers' own simulator, and :func:`agreement` compares
them with polypath's.
"""

from polypath.papers import (
    caro2006_failover,
    caro2006_retransmission,
    iyengar2004,
    natarajan2009,
    qiao2008,
)
from polypath.papers.catalogue import PAPERS, find
from polypath.papers.further import Curve
from polypath.papers.judge import Judged, judge
from polypath.papers.reference import agreement, reference
from polypath.papers.registry import Claim, Figure, NoSuchError, Paper, rows
from polypath.papers.reproduce import reproduce
from polypath.papers.reproduction import Reproduction
from polypath.papers.runs import Grid, NotImplementedYetError, Runs, measure
from polypath.papers.verdict import Verdict

__all__ = [
    "PAPERS",
    "Claim",
    "Curve",
    "Figure",
    "Grid",
    "Judged",
    "NoSuchError",
    "NotImplementedYetError",
    "Paper",
    "Reproduction",
    "Runs",
    "Verdict",
    "agreement",
    "caro2006_failover",
    "caro2006_retransmission",
    "find",
    "iyengar2004",
    "judge",
    "measure",
    "natarajan2009",
    "qiao2008",
    "reference",
    "reproduce",
    "rows",
]
