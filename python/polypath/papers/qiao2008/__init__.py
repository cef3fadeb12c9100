"""Qiao and others: the bandwidth differential and the path of fast retransmissions.

With fast retransmission over a slow alternate path (FRtxOnAlt), later data stays in the receive
buffer until that is full; over the same path (FRtxOnSame) it does not. Equation (8) is the
condition under which FRtxOnAlt is faster; the policy "receive-buffer" decides by it, which the
paper leaves as future work.
"""

from polypath.papers.qiao2008.claims import CLAIMS
from polypath.papers.qiao2008.figures import section_5_1, section_5_2, table_1, table_2
from polypath.papers.qiao2008.settings import samples
from polypath.papers.qiao2008.traces import figure_2, figure_3
from polypath.papers.registry import Paper

PAPER = Paper(
    key="qiao2008",
    source="qiao2008-bandwidth-differential",
    title="Bandwidth differential and fast retransmission in multihoming (Qiao and others 2008)",
    figures=(figure_2, figure_3, table_1, table_2, section_5_1, section_5_2),
    claims=CLAIMS,
    samples=samples,
)

__all__ = [
    "PAPER",
    "figure_2",
    "figure_3",
    "section_5_1",
    "section_5_2",
    "table_1",
    "table_2",
]
