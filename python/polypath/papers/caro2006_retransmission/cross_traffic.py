"""Section 2: AllRtxAlt against AllRtxSame with losses by cross-traffic (Figure 3).

The loss of a path is observed, not set: a transfer belongs to the group of its own loss rates
(packets lost of packets sent on each path, to the nearest percent).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.papers import charts, delaware
from polypath.papers.caro2006_retransmission.figures import alternate_losses
from polypath.papers.caro2006_retransmission.settings import PRIMARY, Transfer, point
from polypath.papers.further import Further, FurtherPoint
from polypath.papers.reference import RELEASE_36, Sample, quotient, release_36, sample_of
from polypath.papers.registry import Claim, Figure, Summary
from polypath.papers.runs import (
    TRANSFER_TIME,
    Grid,
    NotImplementedYetError,
    NotThereError,
    Runs,
    Setting,
    Source,
)
from polypath.papers.verdict import (
    OF_A_MEAN,
    Check,
    Finding,
    faster,
    greatest,
    least,
    minus_one,
    number,
    slower,
)
from polypath.scenario import Scenario
from polypath.statistics import LEVEL, TOO_FEW, Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: Cross-traffic on each path, Mbit/s (Section 2.1), and the few loads of the small grid.
FULL_LOADS, QUICK_LOADS = tuple(range(5, 12)), (9, 10)
#: Smaller steps of the load: on the primary path, where it loses between 3 and 8 %, and on the
#: alternate path.
FINE_PRIMARY, FINE_ALTERNATE = (8.5, 8.75, 9, 9.5, 10, 10.5), (*FULL_LOADS, 7.5, 8.5, 9.5, 10.5)
#: AllRtxSame has one load of the alternate path only: more loads of the primary fill its groups.
FINEST_PRIMARY = tuple(8.25 + step / 4 for step in range(11))
QUICK_SEEDS, FULL_SEEDS = 6, 30
#: Seconds from the start of the cross-traffic to that of the transfer.
WARM_UP = 5.0


@dataclass(frozen=True, slots=True)
class Congested:
    """A transfer of 4 MB among cross-traffic, Mbit/s in each direction of each path."""

    policy: str
    primary_load: float
    alternate_load: float

    def scenario(self) -> Scenario:
        """The scenario of this point."""
        confirmation = point(self.policy, "none", 0).confirmation
        return delaware.transfer(
            4,
            delaware.cross_traffic(self.primary_load, self.alternate_load),
            delaware.policy(self.policy, "none"),
            transport={"path_confirmation": confirmation},
            start=WARM_UP,
        )

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point."""
        return {
            "policy": self.policy,
            "primary_load": self.primary_load,
            "alternate_load": self.alternate_load,
        }


def congested(policy: str, primary: float, alternate: float) -> Congested:
    """A point; for AllRtxSame all loads of the alternate path, which it does not use, are one."""
    least_load = FULL_LOADS[0]
    return Congested(policy, primary, least_load if policy == "AllRtxSame" else alternate)


@cache
def ns2_frames() -> Mapping[str, Mapping[Setting, pd.DataFrame]]:
    """Single transfers of the module of the papers' year, with queues of 150 packets."""
    rows = release_36("cross-traffic")
    frames: dict[Setting, pd.DataFrame] = {}
    for place, own in rows.groupby(["policy", "primary_load", "alternate_load"]):
        policy, primary, alternate = map(str, place)
        frames[Congested(policy, float(primary), float(alternate))] = pd.DataFrame(
            {
                TRANSFER_TIME: own["time"],
                "path.0.packets_sent": own["sent_p"],
                "path.0.packets_arrived": own["sent_p"] - own["lost_p"],
                "path.1.packets_sent": own["sent_a"],
                "path.1.packets_arrived": own["sent_a"] - own["lost_a"],
            }
        )
    return {RELEASE_36: frames}


#: Loads at which the primary path loses about 3 %, which R01 and R02 are about, and their runs.
_THREE_PERCENT = (
    *((congested("AllRtxSame", load, 0), 20) for load in (8.5, 8.75)),
    *((congested("AllRtxAlt", 8.75, load), 30) for load in (8.5, 9.5)),
)


def _grid(full: bool) -> Grid:
    """The transfers among cross-traffic, and those with uniform loss to compare them with."""
    loads = FULL_LOADS if full else QUICK_LOADS
    among = [
        congested(policy, primary, alternate)
        for policy in ("AllRtxAlt", "AllRtxSame")
        for primary in loads
        for alternate in loads
    ]
    if full:
        among += [congested("AllRtxAlt", *pair) for pair in product(FINE_PRIMARY, FINE_ALTERNATE)]
        among += [congested("AllRtxSame", primary, 0) for primary in FINEST_PRIMARY]
    uniform = [
        point(policy, "none", primary, alternate)
        for policy in ("AllRtxAlt", "AllRtxSame")
        for primary in PRIMARY
        for alternate in alternate_losses(full)
    ]
    seeds = FULL_SEEDS if full else QUICK_SEEDS
    points: tuple[Setting, ...] = (*dict.fromkeys(among), *dict.fromkeys(uniform))
    return Grid(points, seeds, more=() if full else _THREE_PERCENT)


def observed(source: Source) -> pd.DataFrame:
    """A row for each transfer among cross-traffic.

    Columns: policy, `primary_loss` and `alternate_loss` in percent (nearest; 0 for a path that
    carried nothing), transfer time in seconds.

    Raises:
        NotImplementedYetError: The engine has no cross-traffic or does not report losses by path.
        NotThereError: There are no such runs.
    """
    parts = [
        _observed(setting.policy, source.frame(setting))
        for setting in source.settings
        if isinstance(setting, Congested)
    ]
    if not parts:
        raise NotThereError("no transfers among cross-traffic")
    return pd.concat(parts, ignore_index=True)


def _observed(policy: str, runs: pd.DataFrame) -> pd.DataFrame:
    losses = {
        f"{name}_loss": _loss(runs, path) for path, name in enumerate(("primary", "alternate"))
    }
    return pd.DataFrame({"policy": policy, **losses, "time": runs[TRANSFER_TIME].astype(float)})


def _loss(runs: pd.DataFrame, path: int) -> pd.Series:
    sent, arrived = (
        runs[f"path.{path}.packets_{what}"].astype(float) for what in ("sent", "arrived")
    )
    if arrived.isna().any():
        raise NotImplementedYetError("the simulator does not tell what arrived on each path")
    return (100 * (1 - arrived / sent)).fillna(0).round().astype(int)


def _group(
    transfers: pd.DataFrame, policy: str, primary: int, alternate: int | None = None
) -> Sample:
    chosen = (transfers["policy"] == policy) & (transfers["primary_loss"] == primary)
    if alternate is not None:
        chosen &= transfers["alternate_loss"] == alternate
    return sample_of(transfers.loc[chosen, "time"])


#: Causes of loss, in the frame of Figure 3.
_AMONG, _UNIFORM = "cross-traffic", "uniform loss"


def _draw(runs: Runs, _wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    transfers = observed(runs)
    rows = []
    for primary in PRIMARY:
        same = _group(transfers, "AllRtxSame", primary)
        rows.append(_row(_AMONG, "AllRtxSame", primary, 0, same.interval()))
        for alternate in range(11):
            group = _group(transfers, "AllRtxAlt", primary, alternate)
            if group.n:
                row = _row(_AMONG, "AllRtxAlt", primary, alternate, group.interval())
                change = minus_one(quotient(same, group))
                uniform = _uniform(runs, primary, alternate)
                row |= {"change": change.mean, "change_half_width": change.half_width}
                row |= {"uniform_change": uniform, "same_order": same_order(change, uniform)}
                rows.append(row)
        rows += _rows_of_figure_6(runs, primary)
    frame = pd.DataFrame(rows)
    curves = [
        charts.Curve(f"{policy}, {loss}", {"policy": policy, "loss": loss}, policy == "AllRtxSame")
        for loss in (_AMONG, _UNIFORM)
        for policy in ("AllRtxAlt", "AllRtxSame")
    ]
    panels = [charts.Panel(f"primary path loss {p} %", {"primary_loss": p}) for p in PRIMARY]
    chart = charts.transfer_times(
        frame,
        panels,
        curves,
        x="alternate_loss",
        x_label="alternate path loss rate, observed [%]",
        title="Figure 3: 4 MB among cross-traffic, and with uniform loss (Figure 6)",
    )
    return frame, chart


def _row(
    loss: str, policy: str, primary: int, alternate: float, estimate: Interval
) -> dict[str, Any]:
    return {
        "loss": loss,
        "policy": policy,
        "primary_loss": primary,
        "alternate_loss": alternate,
        "n": estimate.n,
        "mean": estimate.mean,
        "half_width": estimate.half_width,
    }


def _rows_of_figure_6(runs: Runs, primary: int) -> list[dict[str, Any]]:
    rows = []
    for setting in runs.settings:
        if isinstance(setting, Transfer) and setting == point(
            setting.policy, "none", primary, setting.alternate_loss
        ):
            where = (setting.policy, primary, setting.alternate_loss)
            with suppress(NotImplementedYetError):
                rows.append(_row(_UNIFORM, *where, runs.mean(setting)))
    return [row for row in rows if row["policy"] in ("AllRtxAlt", "AllRtxSame")]


def _summary(frame: pd.DataFrame) -> Summary:
    """Whether the orders of Figure 6 also hold when queues drop packets."""
    if "same_order" not in frame:
        return Summary(("No transfer of AllRtxAlt lost as much on the primary path.",))
    groups = frame[frame["n"].ge(TOO_FEW) & frame["same_order"].isin(["yes", "no", "open"])]
    orders = groups["same_order"]
    if groups.empty:
        return Summary((f"No group has {TOO_FEW} transfers.",))
    precise = groups["half_width"] <= OF_A_MEAN * groups["mean"]
    says = (
        f"Of {len(groups)} groups of at least {TOO_FEW} transfers, AllRtxAlt is on the side of "
        f"AllRtxSame that it is on with uniform loss in {int((orders == 'yes').sum())}, on the "
        f"other in {int((orders == 'no').sum())}; in {int((orders == 'open').sum())} the interval "
        "of the difference has both signs.",
        f"The paper's stopping rule, 10 % of the mean, is met by {int(precise.sum())}.",
    )
    table = pd.DataFrame(
        {
            "primary loss [%]": groups["primary_loss"].astype(int),
            "alternate loss [%]": groups["alternate_loss"].astype(int),
            "transfers": groups["n"].astype(int),
            "AllRtxAlt [s]": _with_half_width(groups["mean"], groups["half_width"]),
            "against AllRtxSame [%]": _with_half_width(
                100 * groups["change"], 100 * groups["change_half_width"], sign="+"
            ),
            "with uniform loss [%]": [f"{100 * one:+.1f}" for one in groups["uniform_change"]],
            "same order": groups["same_order"],
        }
    )
    return Summary(says, table)


def _with_half_width(means: pd.Series, half_widths: pd.Series, sign: str = "") -> list[str]:
    pairs = zip(means, half_widths, strict=True)
    return [f"{mean:{sign}.1f} ± {half:.1f}" for mean, half in pairs]


def _uniform(runs: Runs, primary: int, alternate: int) -> float:
    """The same change with uniform loss at these rates (Figure 6); NaN if it was not run."""
    try:
        pair = (
            point("AllRtxSame", "none", primary),
            point("AllRtxAlt", "none", primary, alternate),
        )
        return runs.ratio(*pair).mean - 1
    except (NotImplementedYetError, NotThereError):
        return float("nan")


def same_order(change: Interval, uniform: float) -> str:
    """Whether AllRtxAlt and AllRtxSame have the same order as with uniform loss.

    "open" without results for uniform loss, or if the change's interval has both signs.
    """
    if math.isnan(uniform) or not (change.low > 0 or change.high < 0):
        return "open"
    return "yes" if (change.mean > 0) == (uniform > 0) else "no"


def _further(
    runs: Runs, points: Sequence[FurtherPoint], chart: Chart, style: dict[str, Any]
) -> tuple[list[dict[str, Any]], Any]:
    """The transfers of a further curve, by the losses that they had."""
    transfers = pd.concat([_observed("", runs.frame(one)) for one in points], ignore_index=True)
    rows, drawn = [], None
    for axes, primary in zip(chart.axes, PRIMARY, strict=True):
        groups = {a: _group(transfers, "", primary, a) for a in range(11)}
        own = [_row(_AMONG, "", primary, a, one.interval()) for a, one in groups.items() if one.n]
        half = [row["half_width"] if math.isfinite(row["half_width"]) else 0.0 for row in own]
        drawn = axes.errorbar(
            [row["alternate_loss"] for row in own], [row["mean"] for row in own], half, **style
        )
        rows += own
    return rows, drawn


figure_3 = Figure(
    "3",
    "AllRtxAlt against AllRtxSame at {3, 5, 8} % primary path loss, among cross-traffic",
    _grid,
    _draw,
    _summary,
    Further(
        lambda one: isinstance(one, Congested) and one.policy == "AllRtxAlt",
        "retransmission",
        "alternate_loss",
        lines=_further,
    ),
)


def _r01(source: Source) -> Finding:
    """The paper's 90 % interval is from 34.3 to 35.1 s."""
    group = _group(observed(source), "AllRtxSame", 3).interval()
    return Finding((number("AllRtxSame, primary 3 %", group, 34.7, 0.4),))


def _r02(source: Source) -> Finding:
    """The paper's 90 % interval is from 41.1 to 44.5 s."""
    group = _group(observed(source), "AllRtxAlt", 3, 2).interval()
    return Finding((number("AllRtxAlt, primary 3 %, alternate 2 %", group, 42.8, 1.7),))


def _against_same(
    transfers: pd.DataFrame,
    primary: int,
    alternates: Sequence[int],
    make: Callable[[str, Interval], Check],
) -> list[Check]:
    """The checks of all groups with enough runs."""
    same = _group(transfers, "AllRtxSame", primary)
    groups = {a: _group(transfers, "AllRtxAlt", primary, a) for a in alternates}
    return [
        make(f"AllRtxAlt, {primary} % / {alternate} % against AllRtxSame", quotient(same, group))
        for alternate, group in groups.items()
        if min(group.n, same.n) >= TOO_FEW
    ]


def _r03(source: Source) -> Finding:
    transfers = observed(source)
    return Finding(
        tuple(
            _nearest_to_failing(_against_same(transfers, primary, range(1, 11), slower), least)
            for primary in (3, 5)
        )
    )


def _r04(source: Source) -> Finding:
    transfers = observed(source)
    better = _against_same(transfers, 8, range(3), faster)
    worse = _against_same(transfers, 8, range(4, 11), slower)
    return Finding((_nearest_to_failing(better, greatest), _nearest_to_failing(worse, least)))


def _nearest_to_failing(
    checks: Sequence[Check], choose: Callable[[Sequence[Check]], Check]
) -> Check:
    if checks:
        return choose(checks)
    return Check("no group of ten transfers", Interval(math.nan, math.nan, LEVEL, 0))


CLAIMS = (
    Claim("R01", ("3",), _r01),
    Claim("R02", ("3",), _r02),
    Claim("R03", ("3",), _r03),
    Claim("R04", ("3",), _r04),
)
