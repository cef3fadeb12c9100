"""The queue in front of a link over time, computed from the packets at the link."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from polypath._core import quantity
from polypath.scenario import Scenario

#: Fates of packets that were never transmitted.
_REFUSED = ("lost", "queue", "down", "mtu")


def queue(scenario: Scenario, packets: pd.DataFrame, link: str) -> pd.DataFrame:
    """The packets that wait for transmission at a path's link, a row for each change.

    Args:
        scenario: The scenario of the run.
        packets: :meth:`polypath.Result.packets` of the run.
        link: "NAME/forward" or "NAME/back", as in the packets.

    Returns:
        Columns: `time` (seconds), `packets` and `bytes` that wait from then on; the packet that is
        being transmitted is not among them, as in the limit of the scenario's `queue`.

    Raises:
        ValueError: There is no such link of a path, it has no rate, or a fault changes it.
    """
    rate = _rate(scenario.to_dict(), link)
    own = packets[(packets["link"] == link) & ~packets["fate"].isin(_REFUSED)]
    size = own["size"].to_numpy(dtype=np.float64)
    offered = own["time"].to_numpy(dtype=np.float64)
    starts = _starts(offered, 8 * size / rate)
    waits = starts > offered
    changes = pd.DataFrame(
        {
            "time": np.concatenate([offered[waits], starts[waits]]),
            "packets": np.repeat([1, -1], int(waits.sum())),
            "bytes": np.concatenate([size[waits], -size[waits]]).astype(np.int64),
        }
    )
    # At one instant, packets that leave the queue make room for those that arrive.
    changes = changes.groupby("time", as_index=False).sum()
    changes[["packets", "bytes"]] = changes[["packets", "bytes"]].cumsum()
    return changes


def _starts(offered: np.ndarray, transmission: np.ndarray) -> np.ndarray:
    """The start of each packet's transmission, one after the other."""
    starts = np.empty_like(offered)
    free = -np.inf
    for index, (at, takes) in enumerate(zip(offered, transmission, strict=True)):
        starts[index] = max(at, free)
        free = starts[index] + takes
    # A packet that arrives at the very instant when a transmission ends does not wait, whatever
    # the rounding.
    return np.where(starts - offered < 1e-9, offered, starts)


def _rate(scenario: dict[str, Any], link: str) -> float:
    """Bits per second of a link."""
    paths = {
        f"{path.get('name', index)}/{direction}": {**path, **path.get(direction, {})}
        for index, path in enumerate(scenario.get("path", []))
        for direction in ("forward", "back")
    }
    if link not in paths:
        raise ValueError(f'link: found "{link}"; allowed: {", ".join(paths)}')
    if "rate" not in paths[link]:
        raise ValueError(f'link: "{link}" has no rate, so nothing waits for it')
    name = link.partition("/")[0]
    for fault in scenario.get("fault", []):
        if str(fault.get("path", name)) == name:
            raise ValueError(f'link: a fault changes "{link}"')
    return quantity(paths[link]["rate"])
