"""Iyengar, Amer, Stewart: Retransmission policies for concurrent multipath transfer.

New data goes over all paths at once: over which of them does a retransmission go?
"""

from polypath.papers.registry import Paper, not_yet

PAPER = Paper(
    key="iyengar2004",
    source="iyengar2004-cmt-retransmission",
    title="Retransmission policies for concurrent multipath transfer using SCTP multihoming "
    "(Iyengar, Amer, Stewart 2004)",
    figures=(),
    claims=not_yet([f"C{number:02}" for number in range(1, 9)]),
)
