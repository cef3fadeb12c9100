"""Figures: a run over time, and the scenarios of a sweep side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from polypath._core import PathSeries
from polypath.metrics import METRICS
from polypath.ns2.variables import PathSeries as Ns2Series
from polypath.statistics import LEVEL, WITHIN, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Distinguishable with colour blindness (Okabe and Ito, and a dark red).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255")
#: The first of the states of a path that does not work.
_POTENTIALLY_FAILED = 2


def plot_run(
    series: Sequence[PathSeries | Ns2Series],
    switches: Iterable[float],
    title: str,
    names: Mapping[int, str],
    goodput: pd.DataFrame,
) -> Figure:
    """Goodput (Mbit/s), window (kB), round-trip time and RTO (s) of each path over time (s).

    Grey lines: changes of the path for new data.
    Light bands: a path is potentially failed or inactive.

    Args:
        series: The samples of each path.
        switches: Times of the changes of the path for new data, in seconds.
        title: The title of the figure.
        names: The names of paths by their numbers.
        goodput: The frame of :meth:`polypath.Result.goodput`; no panel if it is empty.
    """
    figure, panels = _panels(2 if goodput.empty else 3, height=4.5 if goodput.empty else 6.2)
    windows, times = panels[-2:]
    several = len({(one.association, one.side) for one in series}) > 1
    for index, one in enumerate(series):
        colour = COLOURS[index % len(COLOURS)]
        label = names.get(one.path, f"path {one.path}")
        if several:
            label = f"{one.association}, {one.side}, {label}"
        windows.step(one.time, one.cwnd / 1e3, where="post", color=colour, label=label)
        known = one.srtt > 0
        times.step(one.time[known], one.srtt[known], where="post", color=colour)
        times.step(one.time, one.rto, where="post", color=colour, linestyle=":")
        low, high = windows.get_ylim()
        windows.fill_between(
            one.time,
            0,
            1,
            where=one.state >= _POTENTIALLY_FAILED,
            step="post",
            transform=windows.get_xaxis_transform(),
            color=colour,
            alpha=0.12,
            linewidth=0,
        )
        windows.set_ylim(low, high)
    if not goodput.empty:
        _goodputs(panels[0], goodput)
    for at in switches:
        windows.axvline(at, color="0.6", linewidth=0.8, zorder=0)
    windows.set_ylabel("congestion window [kB]")
    windows.set_ylim(bottom=0)
    if series:
        windows.legend(loc="upper right", frameon=False)
        times.set_yscale("log")
    times.set_ylabel("RTT —, RTO ··· [s]")
    times.set_xlabel("time [s]")
    figure.suptitle(title, fontsize="medium")
    return figure


def _goodputs(axes: Axes, goodput: pd.DataFrame) -> None:
    for path, own in goodput.groupby("path"):
        rate = own["goodput"] * 8 / 1e6
        colour = COLOURS[int(str(path)) % len(COLOURS)]
        axes.step(own["time"], rate, where="post", color=colour, label=own["name"].iloc[0])
    axes.set_ylabel("goodput [Mbit/s]")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right", frameon=False)


def plot(
    frame: pd.DataFrame,
    metric: str = "time_from_first_data",
    *,
    level: float = LEVEL,
    within: float = WITHIN,
) -> Figure:
    """The scenarios of a sweep side by side: mean of a metric and its interval.

    Open circles have too few runs or too wide an interval (see :func:`polypath.summary`).

    Raises:
        ValueError: The frame has no such metric.
    """
    table = summary(frame, metric, level=level, within=within)
    figure, (axes,) = _panels(1, height=1.2 + 0.3 * len(table))
    for place, row in enumerate(table.to_dict("records")):
        face = "none" if row["too_few"] else COLOURS[0]
        axes.errorbar(
            float(row["mean"]),
            place,
            xerr=float(row["half_width"]) if row["n"] > 1 else 0.0,
            fmt="o",
            color=COLOURS[0],
            markerfacecolor=face,
            capsize=3,
        )
    axes.set_yticks(range(len(table)), list(table["scenario"]))
    axes.set_ylim(len(table) - 0.5, -0.5)
    axes.set_xlabel(METRICS.get(metric.rpartition(".")[2], metric).partition(";")[0])
    axes.set_title(f"{metric}, mean and {level:.0%} interval", fontsize="medium")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    return figure


def plot_log(samples: pd.DataFrame, events: pd.DataFrame) -> Figure:
    """Rate (Mbit/s), congestion window (kB) and round-trip time (ms) of each path over time (s).

    Grey lines: changes of the path for new data.
    Light bands: a path is potentially failed or inactive.

    Args:
        samples: The samples of an event log (:class:`polypath.EventLog`).
        events: Its other events.
    """
    figure, (rates, windows, times) = _panels(3, height=6.0)
    several = len(set(samples["association"])) > 1
    for index, ((association, path), own) in enumerate(samples.groupby(["association", "path"])):
        colour = COLOURS[index % len(COLOURS)]
        label = f"association {association}, path {path}" if several else f"path {path}"
        if "sending_rate" in own:
            # The larger one of both directions: a receiver sends only acknowledgements.
            most = own[["sending_rate", "receiving_rate"]].max(axis="columns") / 1e6
            rates.step(own["time"], most, where="pre", color=colour, label=label)
        windows.step(own["time"], own["congestion_window"] / 1e3, where="post", color=colour)
        if "smoothed_rtt" in own:
            times.step(own["time"], own["smoothed_rtt"], where="post", color=colour)
        failed = own["state"].isin(["potentially_failed", "inactive"])
        rates.fill_between(
            own["time"],
            0,
            1,
            where=failed,
            step="post",
            transform=rates.get_xaxis_transform(),
            color=colour,
            alpha=0.12,
            linewidth=0,
        )
    for at in events.loc[events["event"] == "current_path_updated", "time"]:
        rates.axvline(at, color="0.6", linewidth=0.8, zorder=0)
    rates.set_ylabel("rate [Mbit/s]")
    rates.set_ylim(bottom=0)
    windows.set_ylabel("congestion window [kB]")
    windows.set_ylim(bottom=0)
    times.set_ylabel("RTT [ms]")
    times.set_xlabel("time [s]")
    if rates.get_legend_handles_labels()[0]:
        rates.legend(loc="upper right", frameon=False)
    return figure


def _panels(count: int, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of 7 inches with panels above each other that share their horizontal axis."""
    import matplotlib.pyplot as plt  # half a second, which workers do not need

    figure, panels = plt.subplots(
        count, 1, sharex=True, squeeze=False, figsize=(7.0, height), layout="constrained"
    )
    return figure, list(panels[:, 0])
