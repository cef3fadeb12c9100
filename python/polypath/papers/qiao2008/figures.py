"""Tables 1 and 2, equation (8) against the crossovers, and the policy that decides by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from polypath.figures import COLOURS
from polypath.papers import charts
from polypath.papers.further import Further
from polypath.papers.qiao2008.model import BlockingModel
from polypath.papers.qiao2008.settings import (
    A_MOMENT_LATER,
    DEBIANS_RELEASE,
    FULL_LINKS,
    QUICK_LINKS,
    TABLES,
    TIED,
    WITH_THE_PAPERS_CONSTANTS,
    Transfer,
    further_links,
    samples,
    stated,
    table,
)
from polypath.papers.registry import Figure
from polypath.papers.runs import Grid, Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Chart

FIXED = ("FRtxOnAlt", "FRtxOnSame")
_BYTES = 1000 / 8


def _table_grid(secondary: int) -> Callable[[bool], Grid]:
    def grid(_full: bool) -> Grid:
        both = [setting for strategy in FIXED for setting in table(secondary, strategy)]
        near = [one for one in (*TIED, A_MOMENT_LATER) if one.secondary_rate == secondary]
        return Grid((*both, *table(secondary, "FRtxOnAlt", DEBIANS_RELEASE), *near), 1)

    return grid


def percentage(alternate: float, same: float) -> float:
    """P of equation (9), percent: the time that FRtxOnSame saves."""
    return 100 * (alternate - same) / alternate


def table_rows(runs: Runs, secondary: int) -> pd.DataFrame:
    """The rows of a table; times in seconds, percentages by equation (9).

    Columns for each strategy: polypath's, the paper's (`..._paper`) and ns-2's (`..._ns2`). For
    FRtxOnAlt also those with Max.Burst as in Debian's release of the module (`FRtxOnAlt_module`);
    if ties decide, `..._module_tied` breaks them the other way.
    """
    theirs = samples()[WITH_THE_PAPERS_CONSTANTS]
    rows = []
    for primary in TABLES[secondary]:
        row: dict[str, Any] = {"primary_rate": primary, "secondary_rate": secondary}
        for strategy in FIXED:
            row[strategy] = runs.mean(Transfer(strategy, primary, secondary)).mean
            row[f"{strategy}_paper"] = stated()[strategy, primary, secondary]
        row["percentage"] = percentage(row["FRtxOnAlt"], row["FRtxOnSame"])
        row["percentage_paper"] = percentage(row["FRtxOnAlt_paper"], row["FRtxOnSame_paper"])
        module = Transfer("FRtxOnAlt", primary, secondary, DEBIANS_RELEASE)
        row["FRtxOnAlt_module"] = runs.mean(module).mean
        tied = replace(module, edge_rate=TIED[0].edge_rate)
        row["FRtxOnAlt_module_tied"] = runs.mean(tied).mean if tied in TIED else np.nan
        row["FRtxOnAlt_ns2"] = theirs[module].mean
        row["FRtxOnSame_ns2"] = theirs[Transfer("FRtxOnSame", primary, secondary)].mean
        rows.append(row)
    return pd.DataFrame(rows)


def _draw_table(secondary: int) -> Callable[[Runs, Grid], tuple[pd.DataFrame, Chart]]:
    def draw(runs: Runs, _wanted: Grid) -> tuple[pd.DataFrame, Chart]:
        frame = table_rows(runs, secondary)
        figure, (times, changes) = charts.blank(2, f"20 MB, secondary path of {secondary} kbit/s")
        for colour, strategy in zip(COLOURS, FIXED, strict=False):
            times.plot(
                frame["primary_rate"] / 1e3,
                frame[strategy],
                marker="o",
                markersize=4,
                color=colour,
                label=strategy,
            )
            times.plot(
                frame["primary_rate"] / 1e3,
                frame[f"{strategy}_paper"],
                "x",
                color=colour,
                label=f"{strategy}, the paper",
            )
        times.plot(
            frame["primary_rate"] / 1e3,
            frame["FRtxOnAlt_ns2"],
            "o",
            mfc="none",
            markersize=9,
            color=COLOURS[0],
            label="FRtxOnAlt, ns-2",
        )
        times.set_yscale("log")
        times.set_ylabel("transfer time [s]")
        changes.plot(frame["primary_rate"] / 1e3, frame["percentage"], marker="o", color=COLOURS[2])
        changes.plot(frame["primary_rate"] / 1e3, frame["percentage_paper"], "x", color=COLOURS[2])
        changes.set_ylabel("FRtxOnSame is shorter by [%]")
        _rate_axis(times, changes)
        charts.legend(
            figure, times, [*FIXED, *(f"{s}, the paper" for s in FIXED), "FRtxOnAlt, ns-2"]
        )
        return frame, figure

    return draw


def _rate_axis(*graphs: Axes) -> None:
    for axes in graphs:
        axes.set_xscale("log")
        axes.set_xlabel("primary path [Mbit/s]")


_FURTHER = Further(
    lambda one: isinstance(one, Transfer) and one.strategy == "FRtxOnSame",
    "retransmission",
    "primary_rate",
    x_factor=1e-3,
)

table_1 = Figure(
    "table-1",
    "Transfer times for primary paths of various bandwidths and a secondary path of 36 kbit/s",
    _table_grid(36),
    _draw_table(36),
    further=_FURTHER,
)
table_2 = Figure(
    "table-2",
    "Transfer times for primary paths of various bandwidths and a secondary path of 384 kbit/s",
    _table_grid(384),
    _draw_table(384),
    further=_FURTHER,
)


def model_of(setting: Transfer) -> BlockingModel:
    """The model of a transfer's network."""
    return BlockingModel(
        primary_bandwidth=setting.primary_rate * _BYTES,
        primary_rtt=2 * setting.primary_delay / 1000,
        primary_queue=50 * 1500,
        secondary_bandwidth=setting.secondary_rate * _BYTES,
        secondary_rtt=2 * setting.secondary_delay / 1000,
        receive_buffer=setting.receive_buffer,
    )


def model(primary: float, secondary: float) -> BlockingModel:
    """The model of the paper's network; rates in kbit/s."""
    return model_of(Transfer("model", primary, secondary))


def fills_the_path(setting: Transfer) -> bool:
    """The model's assumption: the receive buffer holds W, the data that slow start has sent.

    The paper (5): "the receive buffer size is large enough to fully use the bandwidth".
    """
    return setting.receive_buffer >= model_of(setting).sent_before()


def threshold(secondary: float) -> float:
    """The primary rate up to which equation (8) allows this secondary one; both in kbit/s."""
    return model(1000, secondary).largest_primary_bandwidth() / _BYTES


def _draw_5_1(runs: Runs, _wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    rows = []
    for secondary, primaries in TABLES.items():
        for primary in primaries:
            alternate, same = (
                runs.mean(Transfer(strategy, primary, secondary)).mean for strategy in FIXED
            )
            rows.append(
                {
                    "primary_rate": primary,
                    "secondary_rate": secondary,
                    "least_secondary_rate": model(primary, secondary).least_secondary_bandwidth()
                    / _BYTES,
                    "equation_8": model(primary, secondary).secondary_is_fast_enough(),
                    "alternate_is_faster": alternate < same,
                    "threshold": threshold(secondary),
                }
            )
    frame = pd.DataFrame(rows)
    figure, (axes,) = charts.blank(1, "Equation (8) and what was simulated")
    curve = np.geomspace(36, 30_000, 200)
    least = [model(rate, 36).least_secondary_bandwidth() / _BYTES for rate in curve]
    axes.plot(curve / 1e3, least, color="0.3", label="equation (8)")
    for faster, label, marker in ((True, "FRtxOnAlt is faster", "o"), (False, "slower", "x")):
        own = frame[frame["alternate_is_faster"] == faster]
        axes.plot(
            own["primary_rate"] / 1e3, own["secondary_rate"], marker, color=COLOURS[0], label=label
        )
    _rate_axis(axes)
    axes.set_yscale("log")
    axes.set_ylabel("secondary path [kbit/s]")
    axes.legend(frameon=False, fontsize="small")
    return frame, figure


section_5_1 = Figure(
    "5.1",
    "Verification of the model: equation (8) and the simulated crossovers",
    lambda _full: Grid(
        tuple(one for secondary in TABLES for s in FIXED for one in table(secondary, s)), 1
    ),
    _draw_5_1,
)


def points(strategy: str, links: int) -> list[Transfer]:
    """The points of both tables, and of further links."""
    in_tables = [one for secondary in TABLES for one in table(secondary, strategy)]
    return [*in_tables, *further_links(strategy, links)]


#: The strategies that are compared everywhere; the decoupled one only at the tables' points.
_DECIDED = (*FIXED, "model")
_DECOUPLED = "FRtxOnAlt, decoupled"


def _grid_5_2(full: bool) -> Grid:
    links = FULL_LINKS if full else QUICK_LINKS
    decoupled = points(_DECOUPLED, 0)
    return Grid((*(one for strategy in _DECIDED for one in points(strategy, links)), *decoupled), 1)


def _draw_5_2(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    frame = decided(runs, [one for one in wanted.settings if isinstance(one, Transfer)])
    figure, (axes,) = charts.blank(1, "Compared with the better of FRtxOnAlt and FRtxOnSame")
    ordered = frame.sort_values("alternate_over_same", ignore_index=True)
    for colour, column, label in (
        (COLOURS[0], "FRtxOnAlt", "FRtxOnAlt"),
        (COLOURS[1], "FRtxOnSame", "FRtxOnSame"),
        (COLOURS[2], "model", "by equation (8) from estimates"),
        (COLOURS[4], _DECOUPLED, "FRtxOnAlt, new data does not wait"),
    ):
        change = 100 * (ordered[column] / ordered["better"] - 1)
        axes.plot(ordered.index, change, ".", color=colour, label=label)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xlabel("links, ordered by FRtxOnAlt / FRtxOnSame")
    axes.set_ylabel("longer than the better one by [%]")
    axes.legend(frameon=False, fontsize="small")
    return frame, figure


def decided(runs: Runs, settings: Sequence[Transfer]) -> pd.DataFrame:
    """A row for each pair of links with every strategy's time (s), and the better fixed one's."""
    rows = []
    for setting in settings:
        if setting.strategy != "model":
            continue
        row: dict[str, Any] = {**setting.labels(), "links": setting.links}
        row.pop("strategy")
        for strategy in _DECIDED:
            row[strategy] = runs.mean(replace(setting, strategy=strategy)).mean
        decoupled = replace(setting, strategy=_DECOUPLED)
        row[_DECOUPLED] = runs.mean(decoupled).mean if decoupled in runs.frames else np.nan
        row["better"] = min(row[strategy] for strategy in FIXED)
        row["alternate_over_same"] = row["FRtxOnAlt"] / row["FRtxOnSame"]
        rows.append(row)
    return pd.DataFrame(rows)


section_5_2 = Figure(
    "5.2",
    "The path of each fast retransmission by equation (8), from estimates",
    _grid_5_2,
    _draw_5_2,
)
