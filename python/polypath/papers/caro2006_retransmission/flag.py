"""Section 4.2: the retransmission flag, which the paper proposes, compared with timestamps.

Timestamps identify the transmission that is acknowledged, and cost 12 bytes in each packet.
The paper: "One alternative solution, incurring less packet overhead, may be to use flag(s) in the
data and sack headers". All these transfers start without confirmation of paths, as the paper's
rows with timestamps did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.papers import charts, delaware
from polypath.papers.caro2006_retransmission.figures import alternate_losses
from polypath.papers.caro2006_retransmission.settings import (
    FULL_SEEDS,
    PRIMARY,
    QUICK_SEEDS,
    Transfer,
    point,
)
from polypath.papers.further import Further
from polypath.papers.registry import Figure, Summary
from polypath.papers.runs import TRANSFER_TIME, Grid, Runs
from polypath.papers.tables import points_frame
from polypath.statistics import interval, ratio

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

    from polypath.result import Result

#: Extensions of each policy for RTT samples by Karn's rule, by timestamps, and by the flag.
_ROWS = {
    "AllRtxAlt": ("none", "TS", "flag"),
    "FrSameRtoAlt": ("MFR", "MFR+TS", "MFR+flag"),
}
#: Losses of the transfer whose RTOs are examined, percent: those of Figure 4.
_PRIMARY, _ALTERNATE = 8, 5


def _flagged(policy: str, extensions: str, primary: float, alternate: float) -> Transfer:
    return replace(point(policy, extensions, primary, alternate), confirmation="off")


#: Transfers that are run with their samples over time.
TRACED = tuple(
    _flagged(policy, extensions, _PRIMARY, _ALTERNATE)
    for policy, several in _ROWS.items()
    for extensions in several
)


def _grid(full: bool) -> Grid:
    settings = [
        _flagged(policy, extensions, primary, alternate)
        for policy, several in _ROWS.items()
        for extensions in several
        for primary in PRIMARY
        for alternate in alternate_losses(full)
    ]
    settings = [setting for setting in settings if setting not in TRACED]
    return Grid(tuple(settings), FULL_SEEDS if full else QUICK_SEEDS, TRACED)


def _draw(runs: Runs, wanted: Grid) -> tuple[pd.DataFrame, Chart]:
    points = points_frame(runs, wanted.settings)
    traced = pd.DataFrame([_cost_and_gain(runs, one) for one in TRACED])
    frame = pd.concat([points, traced], ignore_index=True)
    curves = [
        charts.Curve(
            f"{policy}+{extensions}".removesuffix("+none"),
            {"policy": policy, "extensions": extensions},
        )
        for policy, several in _ROWS.items()
        for extensions in several
    ]
    chart = charts.transfer_times(
        frame,
        [charts.Panel(f"primary path loss {p} %", {"primary_loss": p}) for p in PRIMARY],
        curves,
        x="alternate_loss",
        x_label="alternate path loss rate [%]",
        title="Section 4.2: Karn's rule, timestamps (TS) and the retransmission flag",
    )
    return frame, chart


def _cost_and_gain(runs: Runs, setting: Transfer) -> dict[str, Any]:
    """The cost of a kind of RTT samples on the wire, and its effect on transfer time and RTO."""
    results = runs.results(setting)
    largest, sack = _sizes(results[0])
    user_data = results[0].scenario.to_dict()["workload"]["message_size"]
    base = _flagged(setting.policy, _ROWS[setting.policy][0], _PRIMARY, _ALTERNATE)
    time, of_base = _times(results), _times(runs.results(base))
    against, own = ratio(of_base, time), interval(time)
    rto = delaware.average_rto(results, 1)
    wire = interval([_bytes_on_the_wire(result) for result in results])
    samples = interval([delaware.counts(result)[1]["rtt_samples"] for result in results])
    return {
        **setting.labels(),
        "n": own.n,
        "mean": own.mean,
        "half_width": own.half_width,
        "headers": largest - int(user_data.removesuffix(" B")),
        "sack": sack,
        "chunks": sum(path["data_chunks_sent"] for path in delaware.counts(results[0])),
        "wire": wire.mean,
        "rtt_samples": samples.mean,
        "rto_alternate": rto.mean,
        "rto_half_width": rto.half_width,
        "change": against.mean - 1,
        "change_half_width": against.half_width,
    }


def _times(results: Sequence[Result]) -> list[float]:
    return [float(result.metrics[TRANSFER_TIME]) for result in results]


def _sizes(result: Result) -> tuple[int, int]:
    """Bytes with IP header of a full packet, and of a SACK without gaps."""
    packets = result.packets()
    plain = packets[packets["chunks"].str.contains("SACK") & (packets["gaps"].str.len() == 0)]
    return int(packets["size"].max()), int(plain["size"].min())


def _bytes_on_the_wire(result: Result) -> int:
    """Bytes that both hosts sent, IP headers included."""
    links = result.outcome["links"]
    return sum(one["counts"]["offered_bytes"] for one in links if one["name"].endswith("/first"))


def _summary(frame: pd.DataFrame) -> Summary:
    rows = frame.dropna(subset=["rto_alternate"])
    table = pd.DataFrame(
        {
            "": [
                f"{p}+{e}".removesuffix("+none")
                for p, e in zip(rows["policy"], rows["extensions"], strict=True)
            ],
            "header bytes of a full packet": rows["headers"].astype(int),
            "bytes of a SACK": rows["sack"].astype(int),
            "chunks": rows["chunks"].astype(int),
            "MB on the wire": rows["wire"] / 1e6,
            "RTT samples, alternate": rows["rtt_samples"],
            "RTO of the alternate [s]": _with_half_width(rows, "rto_alternate", "rto_half_width"),
            "transfer time [s]": _with_half_width(rows, "mean", "half_width"),
            "against Karn's rule": [
                f"{100 * c:+.1f} % ± {100 * h:.1f}"
                for c, h in zip(rows["change"], rows["change_half_width"], strict=True)
            ],
        }
    )
    says = (
        f"At {_PRIMARY} % primary and {_ALTERNATE} % alternate path loss, 4 MB, "
        f"n = {int(rows['n'].min())}; headers from the IP header on, both directions on the wire, "
        "RTO averaged over time."
    )
    return Summary((says,), table)


def _with_half_width(rows: pd.DataFrame, mean: str, half_width: str) -> list[str]:
    return [f"{m:.2f} ± {h:.2f}" for m, h in zip(rows[mean], rows[half_width], strict=True)]


section_4_2 = Figure(
    "4.2",
    "The retransmission flag compared with timestamps",
    _grid,
    _draw,
    _summary,
    Further(
        lambda one: (
            isinstance(one, Transfer) and one.policy == "AllRtxAlt" and one.extensions == "none"
        ),
        "retransmission",
        "alternate_loss",
        panel="primary_loss",
    ),
)
