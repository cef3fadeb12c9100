"""The event log of a running program (`polypath send --log FILE`): rates and states of its paths.

The file is a sequence of JSON texts (RFC 7464) with the head and the events of qlog. The page
``docs/observe.md`` lists the events and their fields.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from polypath.figures import plot_log

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure

_NAMESPACE = "sctp:"
_SAMPLE = f"{_NAMESPACE}metrics_updated"


@dataclass(frozen=True)
class EventLog:
    """An event log.

    Attributes:
        head: The head of the file, with the time at which it begins and the side of the program.
        samples: A row for each sample of a path: `time` in seconds, `association`, `path`, and the
            fields of the event `metrics_updated` in its units.
        events: The other events: `time` in seconds, `association`, `event`, `path` where it has
            one, and its other fields in `data`.
    """

    head: dict[str, Any]
    samples: pd.DataFrame
    events: pd.DataFrame

    def plot(self) -> Figure:
        """Rate, congestion window and round-trip time of each path over time, as a figure."""
        return plot_log(self.samples, self.events)


def read_log(file: str | os.PathLike[str]) -> EventLog:
    """Reads an event log, also one that is still being written.

    Raises:
        ValueError: The file is no such log.
    """
    records = list(_records(Path(file).read_bytes()))
    if not records or "file_schema" not in records[0]:
        raise ValueError(f"{file} is no event log of polypath: its head is missing")
    samples, events = [], []
    for record in records[1:]:
        data = dict(record["data"])
        row = {"time": record["time"] / 1e3, "association": record["group_id"]}
        if record["name"] == _SAMPLE:
            samples.append(row | data)
        else:
            name = record["name"].removeprefix(_NAMESPACE)
            events.append(row | {"event": name, "path": data.pop("path", None), "data": data})
    return EventLog(
        head=records[0],
        samples=pd.DataFrame(samples, columns=None if samples else ["time", "association", "path"]),
        events=pd.DataFrame(events, columns=["time", "association", "event", "path", "data"]),
    )


def _records(content: bytes) -> list[dict[str, Any]]:
    """The JSON texts. RFC 7464 2.3: one that does not end with a line feed was cut off."""
    texts = content.split(b"\x1e")
    try:
        return [json.loads(text) for text in texts if text.endswith(b"\n")]
    except ValueError as error:
        raise ValueError(f"no sequence of JSON texts: {error}") from None
