"""Each statement with what the paper says, what ns-2 gave and what our runs gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polypath.papers.record import FULL, NS2, recorded
from polypath.papers.registry import Claim, Judge, Paper, Row
from polypath.papers.runs import NotImplementedYetError, NotThereError, Runs, Source
from polypath.papers.verdict import Finding, Verdict

#: What Debian's module is called in a report.
AS_DEBIAN_SHIPS_IT = "ns-2 as Debian ships it"


@dataclass(frozen=True, slots=True)
class Judged:
    """A statement and what became of it."""

    row: Row
    verdict: Verdict
    #: What our runs say; None if the engine or the lab cannot do it yet.
    ours: Finding | None
    #: Why there is nothing of ours.
    reason: str
    #: What ns-2's results say, by variant; None where they have nothing to say.
    ns2: Mapping[str, Finding | None]
    #: What the paper's own grid gave when it was run last; None if it is not recorded.
    full: Finding | None = None
    #: Why it does not hold, or why paper, ns-2 and polypath differ.
    remark: str = ""

    @property
    def decided(self) -> Verdict:
        """That of the paper's own grid, where it is recorded."""
        return self.full.verdict if self.full else self.verdict


def judge(paper: Paper, claim: Claim, runs: Runs) -> Judged:
    """Judges a statement: by our runs, and by ns-2's results in the very same way.

    Raises:
        NotThereError: The runs lack points that the claim needs (another figure's).
    """
    ns2 = {
        title: _or_none(claim.judge, source) if claim.judge else None
        for title, source in paper.references().items()
    }
    if recorded(paper.key, NS2):
        ns2[AS_DEBIAN_SHIPS_IT] = recorded(paper.key, NS2).get(claim.id)
    full = recorded(paper.key, FULL).get(claim.id)
    if claim.judge is None:
        reason = "the lab does not measure it yet"
        return Judged(claim.row, Verdict.MISSING, None, reason, ns2, full, claim.remark)
    # Notes belong to one statement, runs to many.
    own = Runs(runs.frames, runs.unknown, runs.traces)
    try:
        finding = _with_notes(claim.judge, own)
    except NotImplementedYetError as error:
        return Judged(claim.row, Verdict.MISSING, None, str(error), ns2, full, claim.remark)
    return Judged(claim.row, finding.verdict, finding, "", ns2, full, claim.remark)


def _or_none(judge: Judge, source: Source) -> Finding | None:
    try:
        return _with_notes(judge, source)
    except NotThereError:
        return None


def _with_notes(judge: Judge, source: Source) -> Finding:
    finding = judge(source)
    return Finding(finding.checks, (*finding.notes, *dict.fromkeys(source.notes)))
