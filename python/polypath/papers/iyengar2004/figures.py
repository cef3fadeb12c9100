"""The paper's figures in its layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.papers import charts, delaware
from polypath.papers.further import Further
from polypath.papers.iyengar2004 import measures
from polypath.papers.iyengar2004.settings import (
    APP_STRIPE,
    FULL_SEEDS,
    LOSSES,
    POLICIES,
    QUICK_SEEDS,
    Transfer,
    grid,
    samples,
)
from polypath.papers.registry import Figure
from polypath.papers.runs import Grid, NotImplementedYetError, Runs, Setting
from polypath.papers.tables import points_frame
from polypath.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: Losses of path 2 in the small grids, percent: those of ns-2's results at the ends and between.
QUICK_LOSSES = (1, 5, 9)
_LOSS = "path 2 loss rate [%]"
#: Maps a point to the values that panels and curves show, by the name of the panel.
Values = Callable[[Runs, Setting], Mapping[str, Interval]]


def _is_same(one: Any) -> bool:
    return isinstance(one, Transfer) and one.policy == "RTX-SAME"


def further(values: Values | None = None) -> Further:
    """Further curves with the settings of RTX-SAME."""

    def by_panel(runs: Runs, one: Setting) -> dict[int, Interval]:
        assert values is not None
        return dict(enumerate(values(runs, one).values()))

    return Further(_is_same, "retransmission", "loss_2", values=by_panel if values else None)


def curve(policy: str, losses: Iterable[float] = LOSSES, **more: Any) -> list[Transfer]:
    """The points of a policy."""
    return [Transfer(policy, loss, **more) for loss in losses]


def points(policies: Iterable[str], **more: Any) -> Callable[[bool], Grid]:
    """The grid of these curves."""
    policies = tuple(policies)

    def wanted(full: bool) -> Grid:
        losses = LOSSES if full else QUICK_LOSSES
        settings = [one for policy in policies for one in curve(policy, losses, **more)]
        return grid(settings, FULL_SEEDS if full else QUICK_SEEDS)

    return wanted


def measured(runs: Runs, settings: Iterable[Transfer], values: Values) -> pd.DataFrame:
    """A row for each point and panel: `panel`, `n`, `mean`, `half_width` of the 90 % interval.

    Raises:
        NotImplementedYetError: The engine rejects every point.
    """
    rows, reason = [], ""
    for setting in settings:
        if setting in runs.unknown:
            reason = runs.unknown[setting]
            continue
        for panel, estimate in values(runs, setting).items():
            own = {"n": estimate.n, "mean": estimate.mean, "half_width": estimate.half_width}
            rows.append({**setting.labels(), "panel": panel, **own})
    if not rows:
        raise NotImplementedYetError(reason)
    return pd.DataFrame(rows)


def _over_losses(
    id: str,  # noqa: A002 - what it is called
    title: str,
    policies: Sequence[str],
    values: Values,
    y_label: str,
    **more: Any,
) -> Figure:
    def draw(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
        settings = [one for one in wanted.settings if isinstance(one, Transfer)]
        frame = measured(runs, settings, values)
        chart = charts.transfer_times(
            frame,
            [charts.Panel(panel, {"panel": panel}) for panel in frame["panel"].unique()],
            [charts.Curve(policy, {"policy": policy}) for policy in policies],
            x="loss_2",
            x_label=_LOSS,
            title=title,
            y_label=y_label,
        )
        return frame, chart

    return Figure(id, title, points(policies, **more), draw, further=further(values))


def _times(id: str, title: str, policies: Sequence[str], **more: Any) -> Figure:  # noqa: A002
    def draw(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
        frame = points_frame(runs, wanted.settings, samples()[delaware.WITH_THE_PAPERS_CONSTANTS])
        chart = charts.transfer_times(
            frame,
            [charts.Panel("path 1 loss rate 1 %", {})],
            [charts.Curve(policy, {"policy": policy}) for policy in policies],
            x="loss_2",
            x_label=_LOSS,
            title=title,
        )
        return frame, chart

    return Figure(id, title, points(policies, **more), draw, further=further())


def _per_drop(runs: Runs, setting: Setting) -> dict[str, Interval]:
    lost, again = (
        measures.together(runs, [setting], one)
        for one in (measures.drops, measures.retransmissions)
    )
    return {"": measures.quotient(lost, again)}


def _timeouts(runs: Runs, setting: Setting) -> dict[str, Interval]:
    return {"": measures.mean(measures.timeouts(runs.frame(setting)))}


def _arrived(runs: Runs, setting: Setting) -> dict[str, Interval]:
    frame = runs.frame(setting)
    return {f"over path {n + 1}": measures.mean(measures.arrived(n)(frame)) for n in (0, 1)}


def _retransmitted(runs: Runs, setting: Setting) -> dict[str, Interval]:
    frame = runs.frame(setting)
    return {f"over path {n + 1}": measures.mean(measures.retransmitted(n)(frame)) for n in (0, 1)}


_PER_DROP = "retransmissions per packet dropped"
figure_5a = _over_losses(
    "5a", "Spurious retransmissions without the SRTT heuristic", [*POLICIES], _per_drop, _PER_DROP
)
figure_5b = _over_losses(
    "5b",
    "Spurious retransmissions with the SRTT heuristic",
    [*POLICIES],
    _per_drop,
    _PER_DROP,
    heuristic=True,
)
figure_6 = _times("6", "AppStripe and CMT with each retransmission policy", [APP_STRIPE, *POLICIES])
figure_7a = _times(
    "7a",
    "AppStripe and CMT without reverse path loss and delayed acks",
    [APP_STRIPE, "RTX-SAME"],
    reverse_loss=False,
    delayed_ack=False,
)
figure_7b = _over_losses("7b", "Retransmission timeouts", [*POLICIES], _timeouts, "timeouts")
figure_7c = _over_losses(
    "7c", "Successful transmissions by path", [*POLICIES], _arrived, "packets that arrived"
)
figure_7d = _over_losses(
    "7d", "Retransmissions by path", [*POLICIES], _retransmitted, "retransmissions"
)
#: V.A, reverse loss alone: delayed acks as in Figure 6.
section_5_a = _times(
    "V.A",
    "AppStripe and CMT without reverse path loss, with delayed acks",
    [APP_STRIPE, "RTX-SAME"],
    reverse_loss=False,
)
