"""Judges each statement, with the paper's value, ns-2's results and polypath's results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polypath.papers.equality import Answer, Equality, equality
from polypath.papers.record import FULL, NS2, judged_as, recorded, recorded_frame
from polypath.papers.registry import Claim, Judge, Paper, Row
from polypath.papers.runs import NotImplementedYetError, NotThereError, Runs, Source
from polypath.papers.verdict import Finding, Verdict

#: Name of Debian's module in a report.
AS_DEBIAN_SHIPS_IT = "ns-2 as Debian ships it"


@dataclass(frozen=True, slots=True)
class Judged:
    """A statement and its verdict."""

    row: Row
    verdict: Verdict
    #: Finding of polypath's runs; None if the engine or the lab does not support it yet.
    ours: Finding | None
    #: Reason why `ours` is None.
    reason: str
    #: Findings of ns-2's results, by variant; None without results for the statement.
    ns2: Mapping[str, Finding | None]
    #: Finding of the last recorded run of the paper's own grid; None if it is not recorded.
    full: Finding | None = None
    #: Reason why it does not hold, or why paper, ns-2 and polypath differ.
    remark: str = ""
    #: Whether polypath equals ns-2 with the papers' constants at the points of the statement; None
    #: without common points.
    equal: Equality | None = None

    @property
    def in_ns2(self) -> Verdict | None:
        """The verdict of ns-2's results, those with the paper's constants first; None without.

        Results of another point in place of the statement's do not count.
        """
        for title, finding in self.ns2.items():
            judges = finding and (title == AS_DEBIAN_SHIPS_IT or not finding.notes)
            if finding and judges and finding.verdict is not Verdict.UNDECIDED:
                return finding.verdict
        return None

    @property
    def proof(self) -> str:
        """Why a statement that does not hold is no fault of polypath; empty without proof."""
        if self.in_ns2 is Verdict.FAILS:
            return "ns-2 does not meet it either"
        if self.equal and self.equal.answer is Answer.YES:
            return "polypath equals ns-2 at its points"
        return "traces or a reading: see below" if self.remark else ""

    @property
    def decided(self) -> Verdict:
        """The verdict of the paper's own grid if it is recorded, else that of these runs."""
        return self.full.verdict if self.full else self.verdict


def judge(paper: Paper, claim: Claim, runs: Runs) -> Judged:
    """Judges a statement by polypath's runs, and by ns-2's results in the same way.

    Raises:
        NotThereError: The runs lack points that the claim needs (another figure's).
    """
    ns2: dict[str, Finding | None] = {
        title: _or_none(claim.judge, source) if claim.judge else None
        for title, source in paper.references().items()
    }
    if recorded(paper.key, NS2):
        ns2[AS_DEBIAN_SHIPS_IT] = recorded(paper.key, NS2).get(claim.id)
    full = recorded(paper.key, FULL).get(claim.id)
    if claim.judge is None:
        reason = "the lab does not measure it yet"
        return Judged(claim.row, Verdict.MISSING, None, reason, ns2, full, claim.remark)
    # Copy the runs, because notes belong to one statement.
    own = Runs(runs.frames, runs.unknown, runs.traces)
    try:
        finding = _with_notes(claim.judge, own)
    except NotImplementedYetError as error:
        return Judged(claim.row, Verdict.MISSING, None, str(error), ns2, full, claim.remark)
    full = judged_as(full, finding) if full else None
    samples = next(iter(paper.samples().values()), {})
    equal = equality(runs, own.used, samples, recorded_frame(paper.key, FULL, "agreement.csv"))
    return Judged(claim.row, finding.verdict, finding, "", ns2, full, claim.remark, equal)


def _or_none(judge: Judge, source: Source) -> Finding | None:
    try:
        return _with_notes(judge, source)
    except NotThereError:
        return None


def _with_notes(judge: Judge, source: Source) -> Finding:
    finding = judge(source)
    return Finding(finding.checks, (*finding.notes, *dict.fromkeys(source.notes)))
