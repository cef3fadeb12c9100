"""The paper's figures in its layout, and figures of results that the paper only states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.papers import charts, delaware
from polypath.papers.caro2006_retransmission.settings import (
    BEST,
    EXTENSIONS,
    FULL_ALTERNATE,
    FULL_SEEDS,
    MANY_SEEDS,
    PRIMARY,
    QUICK_ALTERNATE,
    QUICK_SEEDS,
    Transfer,
    point,
    samples,
)
from polypath.papers.further import Further
from polypath.papers.registry import Figure, figure_name
from polypath.papers.runs import Grid, Runs
from polypath.papers.tables import points_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: The break of Figure 15, and that of Figure 16 in the last round trip of the transfer, seconds.
EARLY, LATE = 4.0, 6.8
#: Primary loss of the panels of Figure 15, percent.
PRIMARY_WITH_BREAK = (0, *PRIMARY)
#: Primary loss on the horizontal axis of Figure 9, percent.
_QUICK_PRIMARY, _FULL_PRIMARY = (0, 3, 5, 8, 10), tuple(range(11))


def alternate_losses(full: bool, *more: float) -> Sequence[float]:
    """The horizontal axis; the small grid has few points, and those of `more`."""
    return FULL_ALTERNATE if full else sorted({*QUICK_ALTERNATE, *more})


def grid(settings: Iterable[Transfer], full: bool, seeds: int = FULL_SEEDS) -> Grid:
    """A grid of these points, each once, with this number of seeds or that of the small grid."""
    return Grid(tuple(dict.fromkeys(settings)), seeds if full else QUICK_SEEDS)


def _over_alternate_loss(
    pairs: Iterable[tuple[str, str]],
    full: bool,
    *,
    primaries: Sequence[float] = PRIMARY,
    equal: bool = False,
    seeds: int = FULL_SEEDS,
    **more: Any,
) -> Grid:
    """Curves over the alternate path's loss, in a panel for each loss of the primary.

    `equal` adds the point at which both paths have the same loss.
    """
    settings = [
        point(policy, extensions, primary, alternate, **more)
        for policy, extensions in pairs
        for primary in primaries
        for alternate in alternate_losses(full, *((primary,) if equal else ()))
    ]
    return grid(settings, full, seeds)


def _draw(
    title: str,
    curves: Sequence[charts.Curve],
    panels: Sequence[charts.Panel],
    x: str = "alternate_loss",
) -> Callable[[Runs, Grid], tuple[pd.DataFrame, Chart]]:
    def draw(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
        ns2 = samples()[delaware.WITH_THE_PAPERS_CONSTANTS]
        frame = points_frame(runs, wanted.settings, ns2)
        label = f"{x.replace('_', ' path ')} rate [%]"
        chart = charts.transfer_times(frame, panels, curves, x=x, x_label=label, title=title)
        return frame, chart

    return draw


def _panels(primaries: Sequence[float] = PRIMARY) -> list[charts.Panel]:
    return [charts.Panel(f"primary path loss {p} %", {"primary_loss": p}) for p in primaries]


def _curve(policy: str, extensions: str, *, level: bool = False) -> charts.Curve:
    label = policy if extensions == "none" else f"{policy}+{extensions}"
    return charts.Curve(label, {"policy": policy, "extensions": extensions}, level)


def based_on(
    policy: str,
    extensions: str = "none",
    *,
    x: str = "alternate_loss",
    panel: str | None = "primary_loss",
) -> Further:
    """Further curves with the settings of this one, over all losses of the alternate path."""

    def base(one: Any) -> bool:
        own = isinstance(one, Transfer) and (one.policy, one.extensions) == (policy, extensions)
        return bool(own)

    return Further(base, "retransmission", x, panel=panel)


_PLAIN = [(policy, "none") for policy in BEST]
_BEST = list(BEST.items())
_BEST_CURVES = [_curve(p, e, level=p == "AllRtxSame") for p, e in _BEST]


_BEST_HYBRID = based_on("FrSameRtoAlt", BEST["FrSameRtoAlt"])


def _extensions(policy: str) -> list[tuple[str, str]]:
    return [(policy, extensions) for extensions in EXTENSIONS[policy]]


def _grid_6(full: bool) -> Grid:
    own = _over_alternate_loss(_PLAIN, full, equal=True, seeds=MANY_SEEDS)
    return replace(own, more=_ALIKE) if full else own


#: The points that decide R12: both paths lose 3 %.
_ALIKE = tuple((point(policy, "none", 3, 3), 1800) for policy in ("AllRtxSame", "AllRtxAlt"))

figure_6 = Figure(
    "6",
    "AllRtxAlt, AllRtxSame and FrSameRtoAlt at {3, 5, 8} % primary path loss",
    _grid_6,
    _draw(
        "Figure 6: uniform loss, 4 MB, no extensions",
        [_curve(p, e, level=p == "AllRtxSame") for p, e in _PLAIN],
        _panels(),
    ),
    further=based_on("FrSameRtoAlt"),
)

figure_8 = Figure(
    "8",
    "AllRtxAlt and its extensions at {3, 5, 8} % primary path loss",
    lambda full: _over_alternate_loss(_extensions("AllRtxAlt"), full, seeds=MANY_SEEDS),
    _draw(
        "Figure 8: AllRtxAlt and its extensions",
        [_curve(p, e) for p, e in _extensions("AllRtxAlt")],
        _panels(),
    ),
    further=based_on("AllRtxAlt"),
)

figure_9 = Figure(
    "9",
    "AllRtxSame and its extensions across all primary path loss rates",
    lambda full: grid(
        [
            point("AllRtxSame", extensions, primary)
            for extensions in EXTENSIONS["AllRtxSame"]
            for primary in (_FULL_PRIMARY if full else _QUICK_PRIMARY)
        ],
        full,
    ),
    _draw(
        "Figure 9: AllRtxSame and its extensions",
        [_curve(p, e) for p, e in _extensions("AllRtxSame")],
        [charts.Panel("", {})],
        x="primary_loss",
    ),
    further=based_on("AllRtxSame", x="primary_loss", panel=None),
)

figure_10 = Figure(
    "10",
    "FrSameRtoAlt with its extensions at {3, 5, 8} % primary path loss",
    lambda full: _over_alternate_loss(_extensions("FrSameRtoAlt"), full, seeds=MANY_SEEDS // 2),
    _draw(
        "Figure 10: FrSameRtoAlt and its extensions",
        [_curve(p, e) for p, e in _extensions("FrSameRtoAlt")],
        _panels(),
    ),
    further=based_on("FrSameRtoAlt"),
)


def _best_with(id: str, what: str, **more: Any) -> Figure:  # noqa: A002 - what it is called
    return Figure(
        id,
        f"The policies with their best extensions, {what}",
        lambda full: _over_alternate_loss(_BEST, full, **more),
        _draw(f"{figure_name(id)}: best extensions, {what}", _BEST_CURVES, _panels()),
        further=_BEST_HYBRID,
    )


figure_12 = _best_with("12", "90 ms primary path RTT, 90 ms alternate path RTT", seeds=MANY_SEEDS)
figure_13 = _best_with(
    "13", "90 ms primary path RTT, 1040 ms alternate path RTT", alternate_rtt=1040
)
section_5_3 = _best_with(
    "5.3", "90 ms primary path RTT, 210 ms alternate path RTT", alternate_rtt=210
)
section_5_4 = _best_with("5.4", "three paths, both alternates alike", paths=3)

figure_15 = Figure(
    "15",
    "The policies with their best extensions; the primary path breaks at 4 s",
    lambda full: _over_alternate_loss(_BEST, full, primaries=PRIMARY_WITH_BREAK, breaks_at=EARLY),
    _draw(
        "Figure 15: primary path failure at 4 s",
        [_curve(p, e) for p, e in _BEST],
        _panels(PRIMARY_WITH_BREAK),
    ),
    further=_BEST_HYBRID,
)

#: The point that decides R31: 300 transfers give it within 1.5 s, its distance from the limit.
_LONG = (point("AllRtxAlt", BEST["AllRtxAlt"], 0, 10, breaks_at=LATE), 600)


def _grid_16(full: bool) -> Grid:
    own = _over_alternate_loss(_BEST, full, primaries=(0,), breaks_at=LATE, seeds=MANY_SEEDS)
    return replace(own, more=(_LONG,)) if full else own


figure_16 = Figure(
    "16",
    "The policies with their best extensions; the primary path breaks at 6.8 s",
    _grid_16,
    _draw(
        "Figure 16: primary path failure at 6.8 s", [_curve(p, e) for p, e in _BEST], _panels((0,))
    ),
    further=_BEST_HYBRID,
)
