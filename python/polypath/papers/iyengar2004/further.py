"""Beyond the paper: a limiting receive buffer, other networks, and the use of each algorithm."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from polypath._core import quantity
from polypath.figures import COLOURS
from polypath.papers import charts
from polypath.papers.iyengar2004 import measures
from polypath.papers.iyengar2004.settings import (
    APP_STRIPE,
    FURTHER_SEEDS,
    NETWORKS,
    POLICIES,
    PROFILE,
    QUICK_SEEDS,
    UNCONSTRAINED,
    VARIANTS,
    Transfer,
    grid,
)
from polypath.papers.registry import Figure, Summary
from polypath.papers.runs import Grid, NotImplementedYetError, Runs
from polypath.papers.tables import points_frame
from polypath.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: Receive buffers; the bandwidth-delay product of both paths is 225 kB.
_WINDOWS = ("32 KiB", "64 KiB", "128 KiB", "256 KiB", "512 KiB", UNCONSTRAINED)
_CURVES = (APP_STRIPE, *POLICIES, *PROFILE)


def _windows(full: bool) -> Grid:
    windows = _WINDOWS if full else ("64 KiB", UNCONSTRAINED)
    losses = (1, 5, 10) if full else (5,)
    settings = (
        Transfer(policy, loss, receive_buffer=window)
        for policy in _CURVES
        for loss in losses
        for window in windows
    )
    return grid(settings, FURTHER_SEEDS if full else QUICK_SEEDS)


def _draw_windows(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    frame = points_frame(runs, wanted.settings)
    losses = sorted(float(loss) for loss in frame["loss_2"].unique())
    figure, graphs = charts.blank(len(losses), "CMT where the receive buffer constrains")
    kibibytes = {window: quantity(window) / 1024 for window in _WINDOWS}
    for axes, loss in zip(graphs, losses, strict=True):
        for index, policy in enumerate(_CURVES):
            own = frame[(frame["loss_2"] == loss) & (frame["policy"] == policy)]
            own = own.assign(size=own["receive_buffer"].map(kibibytes)).sort_values("size")
            axes.errorbar(
                own["size"],
                own["mean"],
                yerr=np.where(np.isfinite(own["half_width"]), own["half_width"], 0.0),
                color=COLOURS[index % len(COLOURS)],
                marker=charts.MARKERS[index % len(charts.MARKERS)],
                markersize=4,
                capsize=2,
                linewidth=1.2,
                label=policy,
            )
        axes.set_xscale("log", base=2)
        axes.set_title(f"path 2 loss rate {loss:g} %", fontsize="medium")
        axes.set_xlabel("receive buffer [KiB]")
        axes.set_ylim(bottom=0)
    graphs[0].set_ylabel("transfer time [s]")
    charts.legend(figure, graphs[0], _CURVES, "with 90 % intervals")
    return frame, figure


further_1 = Figure(
    "further-1", "CMT where the receive buffer constrains the sender", _windows, _draw_windows
)


def _networks(full: bool) -> Grid:
    losses = (1, 3, 5, 7, 9, 10) if full else (5,)
    policies = _CURVES if full else (APP_STRIPE, "RTX-SAME", "RTX-CWND", *PROFILE)
    settings = (
        Transfer(policy, loss, network=network)
        for network in NETWORKS
        for policy in policies
        for loss in losses
    )
    return grid(settings, FURTHER_SEEDS if full else QUICK_SEEDS)


def _draw_networks(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    frame = points_frame(runs, wanted.settings)
    chart = charts.transfer_times(
        frame,
        [charts.Panel(name, {"network": name}) for name in NETWORKS],
        [charts.Curve(policy, {"policy": policy}) for policy in _CURVES],
        x="loss_2",
        x_label="loss rate of the other paths [%]",
        title="Three paths; unequal rates (10 and 2 Mbit/s) and round trips (90 and 290 ms)",
    )
    return frame, chart


further_2 = Figure(
    "further-2", "CMT over three paths and over unequal ones", _networks, _draw_networks
)

#: The network, and the losses of both paths: reordering alone, and the paper's.
_PLACES = (("path 2 longer", 0, 0), ("two paths", 1, 1), ("two paths", 1, 5), ("two paths", 1, 10))
_HEURISTIC = "SRTT heuristic"


def _variants(policy: str, network: str, loss_1: float, loss_2: float) -> Iterable[Transfer]:
    whole = Transfer(policy, loss_2, network=network, loss_1=loss_1)
    yield from (replace(whole, variant=variant) for variant in VARIANTS)
    yield replace(whole, heuristic=True)


def _algorithms(full: bool) -> Grid:
    places = _PLACES if full else (_PLACES[0], _PLACES[2])
    policies = ("RTX-SAME", "RTX-CWND") if full else ("RTX-CWND",)
    settings = (one for policy in policies for place in places for one in _variants(policy, *place))
    return grid(settings, FURTHER_SEEDS if full else QUICK_SEEDS)


def _row(runs: Runs, setting: Transfer) -> dict[str, object]:
    whole = replace(setting, variant="", heuristic=False)
    frame = runs.frame(setting)
    base, own = (
        measures.together(runs, [one], measures.seconds).sort_index() for one in (whole, setting)
    )
    change = measures.quotient(base, own)
    chunks = measures.mean(frame["data_chunks_sent"].astype(float)).mean

    def per_chunk(metric: str) -> float:
        return measures.mean(frame[metric].astype(float)).mean / chunks

    return {
        **setting.labels(),
        "variant": _HEURISTIC if setting.heuristic else setting.variant or "CMT",
        "n": change.n,
        "mean": measures.mean(own).mean,
        "change": change.mean - 1,
        "change_half_width": change.half_width,
        "timeouts": measures.mean(measures.timeouts(frame)).mean,
        "lost": measures.mean(measures.drops(frame)).mean,
        "retransmissions": measures.mean(measures.retransmissions(frame)).mean,
        "spurious": measures.mean(frame["duplicates_received"].astype(float)).mean,
        "sacks": per_chunk("sacks_sent"),
    }


def _draw_algorithms(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    settings = [one for one in wanted.settings if isinstance(one, Transfer)]
    known = [one for one in settings if one not in runs.unknown]
    if not known:
        raise NotImplementedYetError(runs.unknown[settings[0]])
    frame = pd.DataFrame([_row(runs, one) for one in known])
    places = [
        (place, policy)
        for place in _PLACES
        for policy in POLICIES
        if not _of(frame, place, policy).empty
    ]
    figure, graphs = charts.blank(len(places), "What each algorithm of CMT is for", height=4.2)
    for axes, (place, policy) in zip(graphs, places, strict=True):
        own = _of(frame, place, policy)
        half = own["change_half_width"].to_numpy(dtype=float)
        axes.barh(
            own["variant"],
            100 * own["change"],
            xerr=100 * np.where(np.isfinite(half), half, 0.0),
            color=COLOURS[0],
        )
        network, loss_1, loss_2 = place
        axes.set_title(f"{policy}\n{network}, {loss_1:g} % / {loss_2:g} %", fontsize="small")
        axes.set_xlabel("change of the transfer time [%]")
        axes.invert_yaxis()
        if axes is not graphs[0]:
            axes.set_yticklabels([])
    return frame, figure


def _of(frame: pd.DataFrame, place: tuple[str, float, float], policy: str) -> pd.DataFrame:
    network, loss_1, loss_2 = place
    return frame[
        (frame["network"] == network)
        & (frame["loss_1"] == loss_1)
        & (frame["loss_2"] == loss_2)
        & (frame["policy"] == policy)
    ]


def _told(frame: pd.DataFrame) -> Summary:
    """Numbers of each variant, and the gain of MFR over CMT, which the paper left open (IV.B)."""
    says = []
    for place in _PLACES[1:]:
        for policy in POLICIES:
            own = _of(frame, place, policy).set_index("variant")
            if {"CMT", "over MFR"} <= set(own.index):
                (cmt,), (mfr,) = (
                    own.loc[[name]].to_dict("records") for name in ("CMT", "over MFR")
                )
                half = _finite(100 * mfr["change_half_width"])
                says.append(
                    f"MFR over CMT, {policy} at {place[1]:g} % / {place[2]:g} %: "
                    f"{cmt['timeouts']:.1f} timeouts become {mfr['timeouts']:.1f}, the time "
                    f"changes by {100 * mfr['change']:+.1f} % ± {half:.1f}."
                )
    table = pd.DataFrame(
        {
            "policy": frame["policy"],
            "network": frame["network"],
            "loss [%]": [
                f"{a:g} / {b:g}" for a, b in zip(frame["loss_1"], frame["loss_2"], strict=True)
            ],
            "variant": frame["variant"],
            "time [s]": frame["mean"].map("{:.2f}".format),
            "change": [
                _change(Interval(a, b, 0.9, n))
                for a, b, n in zip(
                    frame["change"], frame["change_half_width"], frame["n"], strict=True
                )
            ],
            **{
                name: frame[name].map("{:.1f}".format)
                for name in ("timeouts", "lost", "retransmissions", "spurious")
            },
            "SACKs a chunk": frame["sacks"].map("{:.2f}".format),
        }
    )
    return Summary(tuple(says), table)


def _change(estimate: Interval) -> str:
    if not estimate.mean and not _finite(estimate.half_width):
        return ""
    return f"{100 * estimate.mean:+.1f} % ± {100 * _finite(estimate.half_width):.1f}"


def _finite(half_width: float) -> float:
    return half_width if math.isfinite(half_width) else 0.0


further_3 = Figure(
    "further-3",
    "What each algorithm of CMT is for: each switched off alone, and CMT over MFR",
    _algorithms,
    _draw_algorithms,
    _told,
)
