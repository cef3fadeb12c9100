"""The list of papers."""

from polypath.papers import (
    caro2006_failover,
    caro2006_retransmission,
    iyengar2004,
    natarajan2009,
    qiao2008,
)
from polypath.papers.registry import Paper, find_paper

#: The papers in the order of ``claims.csv``.
PAPERS: tuple[Paper, ...] = (
    caro2006_retransmission.PAPER,
    caro2006_failover.PAPER,
    qiao2008.PAPER,
    iyengar2004.PAPER,
    natarajan2009.PAPER,
)


def find(paper: str) -> Paper:
    """The paper of this name, as on the command line.

    Raises:
        NoSuchError: There is none; the message has a suggestion.
    """
    return find_paper(paper, PAPERS)
