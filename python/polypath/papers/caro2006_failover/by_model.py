"""Section IV.2's future work: a permanent failover that the throughput model decides.

Compared with the best fixed threshold of each point, over the grids of Figures 10 to 12. The best
threshold is only known afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from polypath.papers.caro2006_failover.figures import (
    LONGER_ALTERNATE,
    LONGER_PRIMARY,
    SYMMETRIC,
    over_losses,
    using,
)
from polypath.papers.caro2006_failover.settings import CPT, Transfer, permanent
from polypath.papers.registry import Summary
from polypath.papers.runs import Grid, NotThereError, Runs, Source
from polypath.papers.verdict import SIMILAR

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

_BY_MODEL = {
    f"{rtts['primary_rtt']} / {rtts['alternate_rtt']} ms": using("model", 0, **rtts)
    for rtts in (SYMMETRIC, LONGER_ALTERNATE, LONGER_PRIMARY)
}


def thresholds(source: Source, point: Transfer) -> Iterator[Transfer]:
    """The fixed thresholds at the losses and round trips of a point, if they have runs."""
    rtts = {"primary_rtt": point.primary_rtt, "alternate_rtt": point.alternate_rtt}
    all_of_them = (permanent(c, point.primary_loss, point.alternate_loss, **rtts) for c in CPT)
    return (one for one in all_of_them if one in source.settings)


def best_threshold(source: Source, point: Transfer) -> Transfer:
    """The fixed threshold with the shortest transfers at the losses and round trips of a point.

    Raises:
        NotThereError: None of them has runs.
    """
    there = list(thresholds(source, point))
    if not there:
        raise NotThereError("no threshold to compare with")
    return min(there, key=lambda one: source.mean(one).mean)


_drawn = over_losses(
    "IV.2",
    "Permanent failover by the throughput model",
    _BY_MODEL,
    {
        "90 / 90 ms": ((5, 0),),
        "90 / 210 ms": ((5, 5),),
        "210 / 90 ms": ((5, 8),),
    },
)


def _draw(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    frame, chart = _drawn.draw(runs, wanted)
    points = [one for one in wanted.settings if isinstance(one, Transfer)]
    return frame.join(pd.DataFrame([_beside(runs, one) for one in points])), chart


def _beside(runs: Runs, point: Transfer) -> dict[str, Any]:
    """The best threshold, the change against it, and each threshold's excess over the best."""
    fixed = {_name(one): runs.mean(one).mean for one in thresholds(runs, point)}
    if not fixed:
        return {}
    best = best_threshold(runs, point)
    change = runs.ratio(best, point)
    return {
        "best": _name(best),
        "change": change.mean - 1,
        "change_half_width": change.half_width,
        **{name: mean / min(fixed.values()) - 1 for name, mean in fixed.items()},
    }


def _name(point: Transfer) -> str:
    return "CPT infinite" if point.cpt is None else f"CPT {point.cpt}"


def _summary(frame: pd.DataFrame) -> Summary:
    """Change against the best threshold: a row for each panel, a column for each alternate loss."""
    if "change" not in frame:
        return Summary()
    rows = []
    where = ["primary_rtt", "alternate_rtt", "primary_loss"]
    for (primary, alternate, loss), panel in frame.groupby(where, sort=False):
        cells = {
            f"{row['alternate_loss']:g} %": _cell(row)
            for row in panel.sort_values("alternate_loss").to_dict("records")
        }
        rows.append({"RTT [ms]": f"{primary:g} / {alternate:g}", "primary": f"{loss:g} %", **cells})
    return Summary(tuple(_sentences(frame)), pd.DataFrame(rows))


def _cell(row: dict[Any, Any]) -> str:
    if not math.isfinite(row["change"]):
        return ""
    return f"{100 * row['change']:+.0f} ± {100 * row['change_half_width']:.0f}"


def _sentences(frame: pd.DataFrame) -> Iterator[str]:
    change, half = frame["change"].to_numpy(float), frame["change_half_width"].to_numpy(float)
    known = np.isfinite(change)
    near, surely = change <= SIMILAR, change - half > SIMILAR
    yield (
        "Transfer time against the best fixed Change Primary Threshold of each point, percent, "
        f"with the 90 % interval, n = {int(frame['n'].min())}; columns are the alternate path's "
        "loss."
    )
    yield (
        f"At {int(near[known].sum())} of {int(known.sum())} points the model is at most "
        f"{100 * SIMILAR:g} % longer, at {int(surely[known].sum())} surely more than that."
    )
    names = [str(name) for name in frame if str(name).startswith("CPT ")]
    told = {"the model": change, **{name: frame[name].to_numpy(float) for name in names}}
    costs = (
        f"{name} {100 * np.nanmean(own):+.1f} % (at worst {100 * np.nanmax(own):+.0f} %)"
        for name, own in told.items()
    )
    yield f"Mean over the points: {', '.join(costs)}."


section_4_2 = replace(_drawn, draw=_draw, summary=_summary)
