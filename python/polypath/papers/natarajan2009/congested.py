"""Section 3: transfers among cross-traffic (Figures 4 and 6, Tables 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.figures import COLOURS
from polypath.papers import charts, delaware
from polypath.papers.further import Further
from polypath.papers.natarajan2009.settings import (
    LOAD_1,
    LOADS,
    LOADS_2,
    PAIRS,
    RELEASE_37,
    VARIANTS,
    Congested,
    samples,
)
from polypath.papers.reference import reference
from polypath.papers.registry import Claim, Figure, Summary
from polypath.papers.runs import TRANSFER_TIME, Grid, NotThereError, Runs, Setting, Source
from polypath.papers.stated import precision
from polypath.papers.verdict import (
    Check,
    Finding,
    Unit,
    minus_one,
    number,
    similar,
    widest,
)
from polypath.statistics import Interval, interval, ratio
from polypath.statistics import rate as event_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

FULL_SEEDS, QUICK_SEEDS = 20, 1
BYTES = 32 << 20
#: Section 3: goodputs "with 5 % error margin"; of a quotient of two.
ON_PAR = math.hypot(0.05, 0.05)
#: The tables' loads of path 2, percent.
TABLE_LOADS = (90, 100)
#: Table 1: mean numbers of two, three, four and five consecutive data timeouts of path 2.
TABLE_1: Mapping[tuple[str, int], tuple[float, ...]] = {
    ("CMT-CWND", 90): (3.89, 0.49, 0.20, 0.02),
    ("CMT-PF-CWND", 90): (0.22, 0.07, 0, 0),
    ("CMT-CWND", 100): (8.80, 1.36, 0.24, 0.16),
    ("CMT-PF-CWND", 100): (0.22, 0.11, 0, 0),
    ("CMT-SSTHRESH", 90): (5.44, 0.56, 0.02, 0.02),
    ("CMT-PF-SSTHRESH", 90): (0.29, 0.02, 0, 0),
    ("CMT-SSTHRESH", 100): (9.44, 1.80, 0.51, 0.09),
    ("CMT-PF-SSTHRESH", 100): (0.36, 0.07, 0, 0),
}
#: Table 2: transmissions on path 1 and on path 2, and their quotient.
TABLE_2: Mapping[tuple[str, int], tuple[float, ...]] = {
    ("CMT-CWND", 90): (15_186, 8822, 1.7),
    ("CMT-PF-CWND", 90): (16_115, 7944, 2.0),
    ("CMT-CWND", 100): (16_842, 7256, 2.3),
    ("CMT-PF-CWND", 100): (18_843, 5233, 3.6),
    ("CMT-SSTHRESH", 90): (15_096, 8902, 1.7),
    ("CMT-PF-SSTHRESH", 90): (16_113, 7940, 2.0),
    ("CMT-SSTHRESH", 100): (16_670, 7421, 2.2),
    ("CMT-PF-SSTHRESH", 100): (18_963, 5097, 3.7),
}
_IN_A_ROW = ("second_timeouts", "third_timeouts", "fourth_timeouts", "fifth_timeouts")


def _points(pairs: Sequence[tuple[float, float]]) -> tuple[Congested, ...]:
    return tuple(Congested(variant, *pair) for pair in pairs for variant in VARIANTS)


def _grid_4(full: bool) -> Grid:
    loads = LOADS if full else (40, 80)
    return Grid(_points([(load, load) for load in loads]), FULL_SEEDS if full else QUICK_SEEDS)


def _grid_6(full: bool) -> Grid:
    loads = LOADS_2 if full else (100,)
    return Grid(_points([(LOAD_1, load) for load in loads]), FULL_SEEDS if full else QUICK_SEEDS)


def _grid_tables(full: bool) -> Grid:
    # Every report has both loads: 56 values are compared with the paper's.
    pairs = [(LOAD_1, load) for load in TABLE_LOADS]
    return Grid(_points(pairs), FULL_SEEDS if full else QUICK_SEEDS)


def _goodputs(runs: Runs, settings: Sequence[Any]) -> pd.DataFrame:
    theirs = samples()[delaware.WITH_THE_PAPERS_CONSTANTS]
    rows = []
    for setting in settings:
        frame = runs.frame(setting)
        estimate = interval(BYTES / frame[TRANSFER_TIME].astype(float))
        known = theirs.get(setting) or theirs.get(
            Congested(setting.variant, setting.load_1, setting.load_2, "off")
        )
        rows.append(
            {
                **setting.labels(),
                "n": estimate.n,
                "goodput": estimate.mean,
                "half_width": estimate.half_width,
                "time": float(frame[TRANSFER_TIME].mean()),
                "blocked_time": float(frame["blocked_time"].mean()),
                # From ns-2's mean transfer time.
                "ns2": BYTES / known.mean if known else None,
                "ns2_n": known.n if known else 0,
            }
        )
    return pd.DataFrame(rows)


def _draw(runs: Runs, wanted: Grid, x: str, x_label: str, title: str) -> tuple[pd.DataFrame, Chart]:
    frame = _goodputs(runs, wanted.settings)
    figure, (goodput, blocked) = charts.blank(2, title)
    for index, (name, own) in enumerate(frame.groupby("variant", sort=False)):
        style: dict[str, Any] = {"color": COLOURS[index], "marker": charts.MARKERS[index]}
        goodput.errorbar(
            own[x],
            own["goodput"] / 1000,
            yerr=own["half_width"].where(own["n"] > 1, 0) / 1000,
            capsize=2,
            markersize=4,
            label=str(name),
            **style,
        )
        goodput.plot(
            own[x], own["ns2"].astype(float) / 1000, ls="none", mfc="none", markersize=9, **style
        )
        blocked.plot(own[x], own["blocked_time"], markersize=4, **style)
    for axes in (goodput, blocked):
        axes.set_xlabel(x_label)
        axes.set_ylim(bottom=0)
    goodput.set_ylabel("goodput [kB/s]")
    blocked.set_ylabel("blocked by the receive buffer [s]")
    note = "filled: polypath, with 90 % intervals; large open marks: ns-2, the papers' constants"
    charts.legend(figure, goodput, list(VARIANTS), note)
    return frame, figure


def _comparison(frame: pd.DataFrame) -> Summary:
    table = pd.DataFrame(
        {
            "variant": frame["variant"],
            "loads [%]": [
                f"{one:g} / {two:g}"
                for one, two in zip(frame["load_1"], frame["load_2"], strict=True)
            ],
            "runs": frame["n"],
            "polypath [kB/s]": (frame["goodput"] / 1000).round(1),
            "ns-2 [kB/s]": (frame["ns2"].astype(float) / 1000).round(1),
            "blocked [s]": frame["blocked_time"].round(1),
            "transfer [s]": frame["time"].round(1),
        }
    )
    return Summary((), table)


def _further_values(runs: Runs, point: Setting) -> dict[int, Interval]:
    frame = runs.frame(point)
    goodputs = interval(BYTES / frame[TRANSFER_TIME].astype(float) / 1000)
    return {0: goodputs, 1: interval(frame["blocked_time"].astype(float))}


def _further(x: str) -> Further:
    def base(one: Any) -> bool:
        return isinstance(one, Congested) and one.variant == "CMT-CWND"

    return Further(base, "failover", x, values=_further_values)


figure_4 = Figure(
    "4",
    "Goodput under the same cross-traffic on both paths",
    _grid_4,
    lambda runs, wanted: _draw(
        runs, wanted, "load_1", "load of both paths [%]", "Figure 4: symmetric loss"
    ),
    _comparison,
    _further("load_1"),
)
figure_6 = Figure(
    "6",
    "Goodput under cross-traffic of 70 % on path 1 and more on path 2",
    _grid_6,
    lambda runs, wanted: _draw(
        runs, wanted, "load_2", "load of path 2 [%]", "Figure 6: path 1 with a load of 70 %"
    ),
    _comparison,
    _further("load_2"),
)


def in_a_row(frame: pd.DataFrame) -> list[Interval]:
    """Numbers of two, three, four and five consecutive data timeouts of path 2, per transfer.

    Three in a row do not count as two in a row as well.
    """
    reached = [frame[f"path.1.{name}"].astype(float) for name in _IN_A_ROW]
    longer = [*reached[1:], 0 * reached[0]]
    pairs = zip(reached, longer, strict=True)
    return [interval((one - more).tolist()) for one, more in pairs]


def transmissions(frame: pd.DataFrame) -> tuple[Interval, Interval, Interval]:
    """DATA chunks sent on path 1 and on path 2, retransmissions included; their quotient."""
    first, second = (frame[f"path.{path}.data_sent"].astype(float) for path in (0, 1))
    quotient = ratio(second.tolist(), first.tolist())
    return interval(first), interval(second), quotient


@cache
def _sent_by_ns2() -> Mapping[tuple[str, int], tuple[float, float]]:
    rows = reference("natarajan2009").query("experiment == 'cross-traffic' and load_1 == 70")
    return {
        (row["scheme"], int(row["load_2"])): (float(row["sent_0"]), float(row["sent_1"]))
        for row in rows.to_dict("records")
    }


def _rows(runs: Runs, wanted: Grid) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    return [
        ({"variant": one.variant, "load_2": int(one.load_2)}, runs.frame(one))
        for one in wanted.settings
        if isinstance(one, Congested)
    ]


def _draw_table_1(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    rows = []
    for labels, frame in _rows(runs, wanted):
        stated = TABLE_1[labels["variant"], labels["load_2"]]
        row: dict[str, Any] = {**labels, "n": len(frame)}
        for length, (own, paper) in enumerate(zip(in_a_row(frame), stated, strict=True), start=2):
            row |= {f"{length}": own.mean, f"{length} paper": paper}
        rows.append(row)
    frame = pd.DataFrame(rows)
    figure, (axes,) = charts.blank(1, "Table 1: two data timeouts in a row on path 2")
    _bars(frame, axes, "2", "2 paper", "times a transfer")
    return frame, figure


def _draw_table_2(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    rows = []
    for labels, frame in _rows(runs, wanted):
        where = (labels["variant"], labels["load_2"])
        row: dict[str, Any] = {**labels, "n": len(frame)}
        names = ("path 1", "path 2", "ratio")
        for name, own, paper in zip(names, transmissions(frame), TABLE_2[where], strict=True):
            row |= {name: own.mean, f"{name} paper": paper}
        sent = _sent_by_ns2().get(where)
        row |= {"path 1 ns-2": sent and sent[0], "path 2 ns-2": sent and sent[1]}
        rows.append(row)
    frame = pd.DataFrame(rows)
    figure, (axes,) = charts.blank(1, "Table 2: transmissions on path 1 by those on path 2")
    _bars(frame, axes, "ratio", "ratio paper", "path 1 / path 2")
    return frame, figure


def _bars(frame: pd.DataFrame, axes: Any, ours: str, paper: str, label: str) -> None:
    names = [f"{v}\n{load} %" for v, load in zip(frame["variant"], frame["load_2"], strict=True)]
    places = range(len(names))
    axes.bar([p - 0.2 for p in places], frame[ours], 0.4, color=COLOURS[0], label="polypath")
    axes.bar([p + 0.2 for p in places], frame[paper], 0.4, color="0.7", label="the paper")
    axes.set_xticks(list(places), names, fontsize=7, rotation=45)
    axes.set_ylabel(label)
    axes.legend(frameon=False, fontsize="small")


def _whole(frame: pd.DataFrame) -> Summary:
    return Summary((), frame.round(2))


table_1 = Figure(
    "table-1", "Mean consecutive data timeouts of path 2", _grid_tables, _draw_table_1, _whole
)
table_2 = Figure("table-2", "Mean number of transmissions", _grid_tables, _draw_table_2, _whole)


def _loads(source: Source, first: float | None) -> list[tuple[float, float]]:
    known = [one for one in source.settings if isinstance(one, Congested)]
    pairs = {(one.load_1, one.load_2) for one in known}
    wanted = [p for p in pairs if (p[0] == p[1] if first is None else p[0] == first)]
    found = [p for p in sorted(wanted) if all(_there(source, v, p) for v in VARIANTS)]
    if not found:
        raise NotThereError("no transfers among cross-traffic")
    return found


def _there(source: Source, variant: str, loads: tuple[float, float]) -> bool:
    return any(
        Congested(variant, *loads, start) in source.settings for start in (RELEASE_37, "off")
    )


def _p05(source: Source) -> Finding:
    checks = []
    for loads in _loads(source, None):
        base = Congested("CMT-CWND", *loads)
        checks += [
            similar(
                f"{other} against CMT-CWND, {loads[0]:g} %",
                source.ratio(base, Congested(other, *loads)),
                ON_PAR,
            )
            for other in list(VARIANTS)[1:]
        ]
    return Finding((widest(checks),))


def _advantage(source: Source, pair: tuple[str, str], load: float) -> Interval:
    """CMT-PF's goodput as a multiple of CMT's."""
    plain, failed = pair
    return source.ratio(Congested(failed, LOAD_1, load), Congested(plain, LOAD_1, load))


def _p07(source: Source) -> Finding:
    loads = [load for _, load in _loads(source, LOAD_1)]
    checks = []
    for pair in PAIRS:
        most = _advantage(source, pair, loads[-1])
        label = f"{pair[1]} against {pair[0]}"
        checks.append(Check(f"{label}, path 2 at {loads[-1]:g} %", minus_one(most), low=0.0))
        if len(loads) > 1:
            least = _advantage(source, pair, loads[0])
            half = (most.half_width**2 + least.half_width**2) ** 0.5
            more = Interval(most.mean - least.mean, half, most.level, min(most.n, least.n))
            checks.append(Check(f"{label}, more than at {loads[0]:g} %", more, low=0.0))
    return Finding(tuple(checks))


def _tables_there(source: Source) -> list[int]:
    found = [
        load
        for load in TABLE_LOADS
        if all(Congested(variant, LOAD_1, load) in source.settings for variant in VARIANTS)
    ]
    if not found:
        raise NotThereError("no transfers of Tables 1 and 2")
    return found


def _p08(source: Source) -> Finding:
    """Two in a row, as the paper counts them; with CMT-PF at most a tenth of those with CMT."""
    checks, notes = [], []
    for load in _tables_there(source):
        for plain, failed in PAIRS:
            twice = []
            for variant in (plain, failed):
                rows = in_a_row(source.frame(Congested(variant, LOAD_1, load)))
                stated = TABLE_1[variant, load]
                twice.append(rows[0])
                label = f"{variant}, path 2 at {load} %: two in a row"
                checks.append(_counted(label, rows[0], stated[0]))
                told = ", ".join(
                    f"{own.mean:.2f} ({paper:g})" for own, paper in zip(rows, stated, strict=True)
                )
                notes.append(f"{variant}, {load} %: 2, 3, 4, 5 in a row: {told}")
            fewer = twice[1].mean / twice[0].mean if twice[0].mean else float("nan")
            share = Interval(fewer, twice[1].half_width / max(twice[0].mean, 1e-9), 0.9, twice[1].n)
            label = f"{failed} of those of {plain}, {load} %"
            checks.append(Check(label, share, high=0.1, unit=Unit.RATIO))
    return Finding(tuple(checks), tuple(notes))


def _counted(label: str, measured: Interval, stated: float) -> Check:
    """A mean number of events, with the exact intervals of both counts."""
    runs = precision("P08").runs
    paper = event_rate(stated * runs, runs)
    own = event_rate(measured.mean * measured.n, measured.n)
    return Check(label, own, paper.low, paper.high, Unit.COUNT, stated=stated)


def _p09(source: Source) -> Finding:
    """Ratios with one decimal."""
    checks, notes, runs = [], [], precision("P09").runs
    for load in _tables_there(source):
        for variant in VARIANTS:
            first, second, quotient = transmissions(source.frame(Congested(variant, LOAD_1, load)))
            stated = TABLE_2[variant, load]
            label = f"{variant}, path 2 at {load} %: path 1 / path 2"
            checks.append(number(label, quotient, stated[2], 0.05, Unit.RATIO, runs=runs))
            notes.append(
                f"{variant}, {load} %: {first.mean:.0f} ({stated[0]:.0f}) on path 1, "
                f"{second.mean:.0f} ({stated[1]:.0f}) on path 2"
            )
    return Finding(tuple(checks), tuple(notes))


CLAIMS = (
    Claim("P05", ("4",), _p05),
    Claim("P07", ("6",), _p07),
    Claim("P08", ("table-1",), _p08),
    Claim("P09", ("table-2",), _p09),
)
