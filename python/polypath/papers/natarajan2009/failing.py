"""Section 2: the goodput while the failure of path 2 is being detected (Figures 2a and 2b)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.figures import COLOURS
from polypath.papers import charts, delaware
from polypath.papers.further import Further, scaled
from polypath.papers.natarajan2009.settings import (
    PAIRS,
    PMR,
    VARIANTS,
    Alone,
    Failure,
    samples,
)
from polypath.papers.reference import quotient, sample_of
from polypath.papers.registry import Claim, Figure, Summary
from polypath.papers.runs import Grid, NotThereError, Runs, Setting, Source, metric_of
from polypath.papers.tables import points_frame
from polypath.papers.verdict import (
    OF_A_MEAN,
    Check,
    Finding,
    least,
    minus_one,
    similar,
    widest,
)
from polypath.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

FULL_SEEDS, QUICK_SEEDS = 120, 6
QUICK_PMR = (0, 1, 3)
CMT, CMT_PF = (tuple(pair[place] for pair in PAIRS) for place in (0, 1))


def _points(variants: Sequence[str], full: bool) -> list[Setting]:
    pmrs = PMR if full else QUICK_PMR
    return [Failure(variant, pmr) for variant in variants for pmr in pmrs]


def _frame(runs: Runs, settings: Sequence[Setting]) -> pd.DataFrame:
    theirs = samples()[delaware.WITH_THE_PAPERS_CONSTANTS]
    parts = [
        points_frame(runs, [setting], theirs, metric=metric_of(setting)) for setting in settings
    ]
    frame = pd.concat(parts, ignore_index=True)
    times = [
        float(runs.frame(one)["detection_time"].mean()) if isinstance(one, Failure) else None
        for one in settings
    ]
    return frame.assign(detection_time=pd.Series(times, dtype=float))


def _draw(runs: Runs, settings: Sequence[Setting], title: str) -> tuple[pd.DataFrame, Chart]:
    frame = _frame(runs, settings)
    figure, (axes,) = charts.blank(1, title)
    variants = [name for name in VARIANTS if name in set(frame["variant"])]
    for name in variants:
        index = list(VARIANTS).index(name)
        own = frame[frame["variant"] == name].sort_values("pmr")
        style: dict[str, Any] = {"color": COLOURS[index], "marker": charts.MARKERS[index]}
        axes.errorbar(
            own["pmr"],
            own["mean"] / 1000,
            yerr=own["half_width"] / 1000,
            capsize=2,
            markersize=4,
            label=name,
            **style,
        )
        if "ns2" in own:
            axes.plot(own["pmr"], own["ns2"] / 1000, ls="none", mfc="none", markersize=9, **style)
    alone = frame[frame["variant"] == str(Alone())]
    for mean in alone["mean"]:
        axes.axhline(mean / 1000, color="0.3", linestyle="--", label=str(Alone()))
    axes.set_xlabel("Path.Max.Retrans")
    axes.set_ylabel("goodput during failure detection [kB/s]")
    axes.set_ylim(bottom=0)
    note = "filled: polypath, with 90 % intervals; large open marks: ns-2, the papers' constants"
    charts.legend(figure, axes, [*variants, str(Alone())], note)
    return frame, figure


def _summary(frame: pd.DataFrame) -> Summary:
    if "ns2" not in frame:
        return Summary()
    both = frame.dropna(subset=["ns2", "mean"])
    says = (
        "Goodput is the user data received from the failure until path 2 is inactive, by the "
        "detection time; means in bytes a second.",
    )
    table = pd.DataFrame(
        {
            "variant": both["variant"],
            "PMR": ["" if math.isnan(pmr) else f"{pmr:g}" for pmr in both["pmr"]],
            "polypath [kB/s]": (both["mean"] / 1000).round(1),
            "± (90 %)": (both["half_width"] / 1000).round(1),
            "ns-2 [kB/s]": (both["ns2"] / 1000).round(1),
            "detected after [s]": both["detection_time"].round(2),
        }
    )
    return Summary(says, table)


_FURTHER = Further(
    lambda one: isinstance(one, Failure) and one.variant == CMT[0],
    "failover",
    "pmr",
    values=scaled(1e-3),
)

figure_2a = Figure(
    "2a",
    "Goodput of CMT during failure detection, by Path.Max.Retrans",
    lambda full: Grid(tuple(_points(CMT, full)), FULL_SEEDS if full else QUICK_SEEDS),
    lambda runs, wanted: _draw(runs, wanted.settings, "Figure 2a: CMT while path 2 fails"),
    _summary,
    _FURTHER,
)
figure_2b = Figure(
    "2b",
    "Goodput of CMT and CMT-PF during failure detection, by Path.Max.Retrans",
    lambda full: Grid(
        (*_points(tuple(VARIANTS), full), Alone()), FULL_SEEDS if full else QUICK_SEEDS
    ),
    lambda runs, wanted: _draw(
        runs, wanted.settings, "Figure 2b: CMT and CMT-PF while path 2 fails"
    ),
    _summary,
    _FURTHER,
)


def _mean(source: Source, setting: Setting) -> Interval:
    return source.mean(setting, metric_of(setting))


def against(source: Source, base: Setting, other: Setting) -> Interval:
    """The goodput of a point as a multiple of another's."""
    if isinstance(source, Runs):
        below, above = (
            sample_of(source.frame(one)[metric_of(one)].astype(float)) for one in (base, other)
        )
        return quotient(below, above)
    return source.ratio(base, other)


def _pmrs(source: Source, above: int = -1, variants: Sequence[str] = tuple(VARIANTS)) -> list[int]:
    """The thresholds at which these variants were run."""
    known = set(source.settings)
    found = [p for p in PMR if p > above and all(Failure(v, p) in known for v in variants)]
    if not found:
        raise NotThereError("no transfers in which path 2 fails")
    return found


def _higher(label: str, measured: Interval) -> Check:
    return Check(label, minus_one(measured), low=0.0)


def _p01(source: Source) -> Finding:
    return Finding(
        tuple(
            _higher(
                f"CMT-CWND against CMT-SSTHRESH, PMR {pmr}",
                against(source, Failure("CMT-SSTHRESH", pmr), Failure("CMT-CWND", pmr)),
            )
            for pmr in _pmrs(source, 0, CMT)
        )
    )


def _p02(source: Source) -> Finding:
    """All variants are similar at PMR 0; then the highest PMR against PMR 0, for each variant."""
    pmrs = _pmrs(source)
    first = Failure("CMT-CWND", 0)
    alike = [
        similar(f"{other} against CMT-CWND, PMR 0", against(source, first, Failure(other, 0)), 0.35)
        for other in list(VARIANTS)[1:]
    ]
    checks = [widest(alike)]
    last = pmrs[-1]
    for variant in VARIANTS:
        change = minus_one(against(source, Failure(variant, 0), Failure(variant, last)))
        rises = variant in CMT_PF
        label = f"{variant}, PMR {last} against PMR 0"
        checks.append(Check(label, change, low=0.0) if rises else Check(label, change, high=0.0))
    note = "at PMR 0 a second of one stalled window is measured: thirty chunks, more or less"
    return Finding(tuple(checks), (note,))


def _p03(source: Source) -> Finding:
    checks = []
    for pmr in _pmrs(source, above=2):
        for variant in CMT_PF:
            label = f"{variant}, PMR {pmr}, against SCTP on path 1"
            measured = against(source, Alone(), Failure(variant, pmr))
            checks.append(similar(label, measured, OF_A_MEAN))
    return Finding((widest(checks),))


def _p04(source: Source) -> Finding:
    checks = []
    pmrs = _pmrs(source, above=0)
    alike = [
        similar(
            f"CMT-PF-SSTHRESH against CMT-PF-CWND, PMR {pmr}",
            against(source, Failure(CMT_PF[0], pmr), Failure(CMT_PF[1], pmr)),
            OF_A_MEAN,
        )
        for pmr in pmrs
    ]
    checks.append(widest(alike))
    for plain, failed in PAIRS:
        better = [
            _higher(
                f"{failed} against {plain}, PMR {pmr}",
                against(source, Failure(plain, pmr), Failure(failed, pmr)),
            )
            for pmr in pmrs
        ]
        checks.append(least(better))
    return Finding(tuple(checks))


CLAIMS = (
    Claim("P01", ("2a",), _p01),
    Claim("P02", ("2b",), _p02),
    Claim("P03", ("2b",), _p03),
    Claim("P04", ("2b",), _p04),
)
