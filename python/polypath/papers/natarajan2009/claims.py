"""Every statement of the paper, P01 to P10, with its judgement."""

from polypath.papers.natarajan2009 import congested, failing, growth, lossy
from polypath.papers.natarajan2009.remarks import REMARKS
from polypath.papers.registry import Claim

_ALL = (*failing.CLAIMS, *congested.CLAIMS, *lossy.CLAIMS, *growth.CLAIMS)
CLAIMS = tuple(
    Claim(one.id, one.figures, one.judge, REMARKS.get(one.id, ""))
    for one in sorted(_ALL, key=lambda claim: claim.id)
)
