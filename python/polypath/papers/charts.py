"""Charts in the papers' style: panels side by side, one curve per policy, intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from polypath.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Chart

#: The papers' axes of loss rates, percent.
LOSSES = (0.0, 10.0)
#: Markers, so that curves also differ without colours.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve of a panel: its points are the rows of the frame that have these values."""

    label: str
    where: dict[str, object]
    #: Whether it is drawn as a level line, because it does not depend on the horizontal axis.
    level: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph of a figure."""

    title: str
    where: dict[str, object]


def transfer_times(
    frame: pd.DataFrame,
    panels: Sequence[Panel],
    curves: Sequence[Curve],
    *,
    x: str,
    x_label: str,
    title: str,
    y_label: str = "transfer time [s]",
) -> Chart:
    """Means over a loss rate, with 90 % intervals as bars, ns-2's means as open marks.

    Columns of the frame: those by which panels and curves select, `x`, `mean`, `half_width` and, if
    ns-2 has the point, `ns2` (all in seconds).
    """
    figure, graphs = blank(len(panels), title)
    for panel, axes in zip(panels, graphs, strict=True):
        rows = _rows(frame, panel.where)
        for index, curve in enumerate(curves):
            own = _rows(rows, curve.where).sort_values(x)
            if not own.empty:
                _curve(axes, own, curve, index, x)
        if rows["mean"].isna().all():
            axes.text(
                0.5,
                0.5,
                "nothing measured",
                color="0.4",
                ha="center",
                va="center",
                transform=axes.transAxes,
            )
        axes.set_title(panel.title, fontsize="medium")
        axes.set_xlim(LOSSES[0] - 0.4, LOSSES[1] + 0.4)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(x_label)
    graphs[0].set_ylabel(y_label)
    legend(figure, graphs[0], [curve.label for curve in curves], _notes(frame))
    return figure


def _rows(frame: pd.DataFrame, where: dict[str, object]) -> pd.DataFrame:
    chosen = pd.Series(True, index=frame.index)
    for column, value in where.items():
        chosen &= frame[column] == value
    return frame[chosen]


def _curve(axes: Axes, own: pd.DataFrame, curve: Curve, index: int, x: str) -> None:
    colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
    if curve.level:
        mean, half = float(own["mean"].iloc[0]), float(_finite(own["half_width"])[0])
        axes.fill_between(LOSSES, mean - half, mean + half, color=colour, alpha=0.2, lw=0)
        axes.plot(LOSSES, [mean, mean], color=colour, label=curve.label)
        if "ns2" in own:
            axes.plot(LOSSES, [own["ns2"].iloc[0]] * 2, color=colour, linestyle=":")
    else:
        axes.errorbar(
            own[x],
            own["mean"],
            yerr=_finite(own["half_width"]),
            color=colour,
            marker=marker,
            markersize=4,
            capsize=2,
            linewidth=1.2,
            label=curve.label,
        )
    if "ns2" in own and not curve.level:
        axes.plot(
            own[x],
            own["ns2"],
            linestyle="none",
            marker=marker,
            markersize=9,
            mfc="none",
            color=colour,
            markeredgewidth=0.8,
        )


def _finite(half_widths: pd.Series) -> NDArray[np.float64]:
    """The interval of a single run is infinite: it is not drawn."""
    values = half_widths.to_numpy(dtype=np.float64)
    return np.where(np.isfinite(values), values, 0.0)


def _notes(frame: pd.DataFrame) -> str:
    ours = "filled marks and lines: polypath, with 90 % intervals as bars and bands"
    if "ns2" not in frame or frame["ns2"].isna().all():
        return ours
    return f"{ours}; large open marks and dotted lines: ns-2 with the papers' constants"


def legend(figure: Chart, axes: Axes, order: Sequence[str], note: str = "") -> None:
    """One legend below all panels, in the paper's order, and the vertical label on each row."""
    label_rows(figure, axes.get_ylabel())
    known = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    labels = [label for label in order if label in known]
    handles = [known[label] for label in labels]
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=2 if max(map(len, labels), default=0) > 30 else 3,
        frameon=False,
        title=fill(note, 95) if note else None,
        fontsize="small",
        title_fontsize="small",
    )


def label_rows(figure: Chart, label: str) -> None:
    """The vertical label of each row of panels, if it has none."""
    for axes in figure.axes:
        spec = axes.get_subplotspec()
        if spec and spec.is_first_col() and not axes.get_ylabel():
            axes.set_ylabel(label)


def blank(panels: int, title: str, *, height: float = 3.6) -> tuple[Chart, list[Axes]]:
    """A figure with two panels a row, each with its own vertical axis as in the papers.

    Its width is that of a printed page, so that fonts are printed in their size.
    """
    from matplotlib.figure import Figure

    rows, columns = -(-panels // 2), min(panels, 2)
    size = (6.6 if columns == 2 else 5.2, height * rows + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    graphs = figure.subplots(rows, columns, squeeze=False)
    figure.suptitle(title, fontsize="medium")
    for axes in graphs.flat[panels:]:
        axes.remove()
    for axes in graphs.flat[:panels]:
        axes.grid(color="0.9")
        axes.set_axisbelow(True)
    return figure, list(graphs.flat[:panels])
