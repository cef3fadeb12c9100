"""Natarajan, Ekiz, Amer, Iyengar, Stewart: the potentially-failed destination state.

What concurrent transfer loses while a path is failing, and what a state between
active and inactive gives back.
"""

from polypath.papers.registry import Paper, not_yet

PAPER = Paper(
    key="natarajan2009",
    source="natarajan2009-cmt-pf",
    title="Concurrent multipath transfer using SCTP multihoming: introducing the "
    "potentially-failed destination state (Natarajan and others 2009)",
    figures=(),
    claims=not_yet([f"P{number:02}" for number in range(1, 11)]),
)
