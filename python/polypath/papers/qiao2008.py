"""Qiao and others: the bandwidth differential and the path of fast retransmissions.

Fast retransmission over a slow alternate path blocks the receive buffer: when is it worth it?
"""

from polypath.papers.registry import Paper, not_yet

PAPER = Paper(
    key="qiao2008",
    source="qiao2008-bandwidth-differential",
    title="Bandwidth differential and fast retransmission in multihoming (Qiao and others 2008)",
    figures=(),
    claims=not_yet([f"Q{number:02}" for number in range(1, 8)]),
)
