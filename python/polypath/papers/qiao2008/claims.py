"""Judges each statement of the paper. Nothing here is random: one run is enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from polypath.papers.qiao2008.figures import FIXED, fills_the_path, model_of, threshold
from polypath.papers.qiao2008.settings import (
    A_MOMENT_LATER,
    DEBIANS_RELEASE,
    EDGE,
    PAPERS_RELEASE,
    TABLES,
    TIED,
    WITH_THE_PAPERS_CONSTANTS,
    Transfer,
    further_links,
    rate,
    samples,
    stated,
    table,
)
from polypath.papers.qiao2008.traces import ALT, SAME, events
from polypath.papers.registry import Claim, Judge
from polypath.papers.runs import NotThereError, Runs, Source
from polypath.papers.verdict import (
    Check,
    Finding,
    Unit,
    Verdict,
    about,
    faster,
    greatest,
    slower,
    widest,
)
from polypath.statistics import Interval, interval

#: Tolerance for the paper's digits and for the few microseconds of another handshake.
_TO_THE_DIGIT = 0.001
#: Tolerance within which a policy that decides is as good as the better fixed one.
_AS_GOOD = 0.02
#: Tolerance for the paper's instants, as a share of the stated value.
_INSTANT = 0.01


def _q01(source: Source) -> Finding:
    checks = [
        about(
            setting.strategy,
            source.mean(setting),
            seconds,
            within=_TO_THE_DIGIT,
            exact=True,
        )
        for setting, seconds in ((ALT, 38.1697), (SAME, 18.1355))
    ]
    return Finding(tuple(checks))


def _q02(source: Source) -> Finding:
    found = events(source.results(ALT)[0])
    fills = found["F"] - found["C"]
    note = (
        "the paper reads the last instant off ns-2's trace of variables, which has a line for each "
        f"sample of the round-trip time; the window closes {found['F'] - found['blocked']:.3f} s "
        "before"
    )

    def counted(label: str, key: str, stated: int) -> Check:
        return Check(label, _one(found[key]), stated, stated, Unit.COUNT, exact=True)

    return Finding(
        (
            counted("lost in slow start", "lost_in_slow_start", 68),
            counted("of the retransmissions lost on the secondary path", "lost_on_secondary", 18),
            about(
                "from the first fast retransmission to the full buffer",
                _one(fills),
                0.664396,
                within=_INSTANT,
                exact=True,
            ),
            counted("window of the peer then, bytes", "window_at_F", 292),
        ),
        (note,),
    )


def _one(value: float) -> Interval:
    return interval([value])


def _change(value: float) -> Interval:
    """A quotient as a change, which :func:`polypath.papers.verdict.about` does not compute."""
    return interval([value - 1])


def _differences(source: Source, settings: Sequence[Transfer]) -> list[Check]:
    """Checks each time against the paper's."""
    checks = []
    for one in settings:
        theirs = stated()[one.strategy, int(one.primary_rate), int(one.secondary_rate)]
        label = f"{one.strategy}, {rate(one.primary_rate)}: against the table's {theirs:g} s"
        quotient = source.mean(one).mean / theirs
        checks.append(Check(label, _change(quotient), -_TO_THE_DIGIT, _TO_THE_DIGIT, exact=True))
    return checks


def _table(secondary: int) -> Judge:
    """The value that is farthest from the table's, for each column.

    ns-2's results are those of Debian's release, which applies Max.Burst differently.
    """

    def judge(source: Source) -> Finding:
        own = isinstance(source, Runs)
        module = _differences(source, table(secondary, "FRtxOnAlt", DEBIANS_RELEASE))
        same = _differences(source, table(secondary, "FRtxOnSame"))
        columns = [_differences(source, table(secondary, "FRtxOnAlt")) if own else module, same]
        outside = [one for one in module if abs(one.measured.mean) > _TO_THE_DIGIT]
        sizes = [abs(one.measured.mean) for one in outside]
        notes = [
            f"farthest of {len(same)} values each",
            f"with Max.Burst as Debian's release of the module has it, {len(outside)} of "
            f"{len(module)} values of FRtxOnAlt differ from the table's by "
            f"{100 * min(sizes):.0f} to {100 * max(sizes):.0f} %",
        ]
        if own:
            notes += _near(source, secondary)
        return Finding(tuple(widest(column) for column in columns), tuple(notes))

    return judge


def _near(source: Source, secondary: int) -> list[str]:
    """Notes on values that depend on microseconds: on a longer primary path, and on ties."""
    notes = []
    if A_MOMENT_LATER.secondary_rate == secondary:
        primary = int(A_MOMENT_LATER.primary_rate)
        as_given = replace(A_MOMENT_LATER, primary_delay=50)
        paper = stated()["FRtxOnAlt", primary, secondary]
        later = 1000 * (A_MOMENT_LATER.primary_delay - as_given.primary_delay)
        notes.append(
            f"FRtxOnAlt, {rate(primary)}: {source.mean(as_given).mean:.3f} s, and with a primary "
            f"path longer by {later:.1f} us {source.mean(A_MOMENT_LATER).mean:.3f} s, which is the "
            f"paper's {paper:g} s: which chunk takes a place in the full queue hangs on 2 us"
        )
    theirs = samples()[WITH_THE_PAPERS_CONSTANTS]
    for tied in TIED:
        if tied.secondary_rate != secondary:
            continue
        module = replace(tied, edge_rate=EDGE)
        times = (source.mean(module).mean, source.mean(tied).mean, theirs[module].mean)
        notes.append(
            "{}, as in Debian's release: {:.3f} s; {:.3f} s if what comes to the full queue in the "
            "very instant in which a packet leaves comes first; ns-2 {:.3f} s".format(
                rate(tied.primary_rate), *times
            )
        )
    return notes


def _q05(source: Source) -> Finding:
    if not isinstance(source, Runs):
        raise NotThereError("equation (8) needs no simulator")
    return Finding(
        tuple(
            Check(
                f"B1 for a secondary path of {secondary} kbit/s",
                _one(threshold(secondary)),
                kbits - digit / 2,
                kbits + digit / 2,
                Unit.KBITS,
                exact=True,
            )
            for secondary, kbits, digit in ((36, 801.6, 0.1), (384, 4860.0, 10.0))
        )
    )


def _against(source: Source, primary: int, secondary: int, burst: str) -> Interval:
    alternate = source.mean(Transfer("FRtxOnAlt", primary, secondary, burst))
    same = source.mean(Transfer("FRtxOnSame", primary, secondary))
    return interval([alternate.mean / same.mean])


def _q06(source: Source) -> Finding:
    """FRtxOnAlt is shorter up to one rate of the primary path, and longer from the next on."""
    checks = []
    for secondary, last, first in ((36, 800, 900), (384, 5000, 5100)):
        for primary in sorted(TABLES[secondary]):
            if not last <= primary <= first:
                continue
            make: Callable[[str, Interval], Check] = faster if primary <= last else slower
            label = f"FRtxOnAlt against FRtxOnSame, {rate(primary)} and {rate(secondary)}"
            burst = PAPERS_RELEASE if isinstance(source, Runs) else DEBIANS_RELEASE
            quotient = _against(source, primary, secondary, burst)
            checks.append(replace(make(label, quotient), exact=True))
    return Finding(tuple(checks))


def _beside(source: Source, settings: Sequence[Transfer]) -> list[Check]:
    checks = []
    for one in settings:
        quotient = source.mean(one).mean / _better(source, one)
        label = f"{one.links}, against the better fixed policy"
        checks.append(Check(label, _change(quotient), high=_AS_GOOD, exact=True))
    return checks


def _q07(source: Source) -> Finding:
    """Links whose buffer is smaller than the model assumes are a check of their own."""
    if not isinstance(source, Runs):
        raise NotThereError("ns-2's module has no such policy")
    there = set(source.settings)
    tables = [one for secondary in TABLES for one in table(secondary, "model")]
    links = [one for one in further_links("model", _MOST) if one in there]
    groups = (
        ("the tables", tables),
        ("further links", [one for one in links if fills_the_path(one)]),
        ("with a buffer below W of (4)", [one for one in links if not fills_the_path(one)]),
    )
    checks, notes = [], []
    for name, group in groups:
        own = [replace(one, label=f"{name}: {one.label}") for one in _beside(source, group)]
        within = sum(one.verdict is Verdict.HOLDS for one in own)
        notes.append(f"{name}: {within} of {len(own)} are within {_AS_GOOD:.0%}")
        if own:
            checks.append(greatest(own))
    points = [*tables, *links]
    notes += _why_outside(source, links)
    notes += [
        "; ".join(
            f"{strategy} is at worst {100 * (_worst(source, strategy, points) - 1):+.1f} %"
            for strategy in FIXED
        ),
        "over the tables' points FRtxOnAlt whose new data does not wait is at worst "
        f"{100 * (_worst(source, 'FRtxOnAlt, decoupled', tables) - 1):+.1f} %, FRtxOnAlt "
        f"{100 * (_worst(source, 'FRtxOnAlt', tables) - 1):+.1f} %",
    ]
    return Finding(tuple(checks), tuple(notes))


def _better(source: Source, setting: Transfer) -> float:
    return min(source.mean(replace(setting, strategy=strategy)).mean for strategy in FIXED)


def _worst(source: Source, strategy: str, settings: Sequence[Transfer]) -> float:
    """The longest time of a strategy as a multiple of the better fixed one's."""
    return max(
        source.mean(replace(one, strategy=strategy)).mean / _better(source, one) for one in settings
    )


def _why_outside(source: Source, links: Sequence[Transfer]) -> list[str]:
    """Links at which the policy is worse: its choice, and the times of the fixed policies."""
    notes = []
    for one in links:
        alternate, same, model = (
            source.mean(replace(one, strategy=strategy)).mean for strategy in (*FIXED, "model")
        )
        if model <= (1 + _AS_GOOD) * min(alternate, same):
            continue
        choice = "FRtxOnSame" if abs(model - same) < abs(model - alternate) else "FRtxOnAlt"
        notes.append(
            f"outside: {one.links}: {model:.2f} s, as {choice}; FRtxOnAlt {alternate:.2f} s, "
            f"FRtxOnSame {same:.2f} s; equation (8) asks for "
            f"{model_of(one).least_secondary_bandwidth() / 125:.0f} kbit/s"
        )
    return notes


#: More links than any grid has.
_MOST = 1000

_ON_Q04 = """
25 of the table's 26 times are met within 0.02 %. The other (25 Mbit/s) hangs on 2 us: the chunks of
a burst come 12 us apart to a queue that is full, and TSN 1452 finds a place because a packet has
left 1.9 us before. A primary path longer by 1.5 us gives the place to TSN 1455, and the transfer
the paper's time. The paper does not state its links and headers to that precision.
"""
_ON_Q07 = """
Of the full grid's nine points that are not as good, eight have a receive buffer smaller than the
model supposes (below W, what slow start has sent when the first loss is found). There FRtxOnAlt is
faster although its retransmissions take longer than equation (8) allows. In five of them because
nothing new leaves meanwhile: FRtxOnSame goes on into the queue that has just overflowed, loses a
second time and cuts its window again (10.7 Mbit/s, 282 ms, 409 kB: to 103 kB in place of 205 kB),
and what grows by one packet in a round trip has not grown back when the transfer ends. In the
others each of the same cuts costs FRtxOnSame more, as what is sent again takes the place of new
data in the small window. Equation (8) is about the time that the buffer takes to fill and knows of
neither. The ninth (5.96 Mbit/s and 720 kbit/s) lies on the threshold, where (8) asks for
732 kbit/s.
"""

CLAIMS = (
    Claim("Q01", ("2", "3"), _q01),
    Claim("Q02", ("2",), _q02),
    Claim("Q03", ("table-1",), _table(36)),
    Claim("Q04", ("table-2",), _table(384), remark=" ".join(_ON_Q04.split())),
    Claim("Q05", ("5.1",), _q05),
    Claim("Q06", ("5.1",), _q06),
    Claim("Q07", ("5.2",), _q07, remark=" ".join(_ON_Q07.split())),
)
