"""The result of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from polypath import _core
from polypath._core import PathSeries
from polypath.figures import plot_run
from polypath.metrics import Metric, metrics
from polypath.ns2 import run as ns2
from polypath.ns2.mapping import setup
from polypath.ns2.run import Ns2Outcome
from polypath.ns2.variables import PathSeries as Ns2Series
from polypath.packets import PacketTrace, data_arrivals, frame
from polypath.queues import queue
from polypath.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Result:
    """The result of one run. Times are seconds from its beginning, sizes are bytes."""

    def __init__(self, scenario: Scenario, outcome: _core.Outcome | Ns2Outcome) -> None:
        self.scenario = scenario
        self._outcome = outcome

    @cached_property
    def outcome(self) -> dict[str, Any]:
        """Everything but the samples over time, as nested dicts and lists."""
        return cast("dict[str, Any]", json.loads(self._outcome.to_json()))

    @property
    def seed(self) -> int:
        """Root of all randomness of this run."""
        return int(self.outcome["seed"])

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """One flat row of numbers: see :data:`polypath.METRICS`."""
        return metrics(self.outcome)

    @cached_property
    def associations(self) -> pd.DataFrame:
        """A row for each association and direction that carried data, with its times and bytes.

        Columns: association, direction ("forward" or "back"), complete, those of the flow
        (``time_from_first_data`` in seconds, ``goodput`` in bytes per second, ...), and why each
        side closed (``sender_close``, ``receiver_close``).
        """
        closes = ("sender_close", "receiver_close")
        rows = [
            {**row, **{key: association[key.partition("_")[0]]["close"] for key in closes}}
            for association in self.outcome["associations"]
            for row in _flows(association)
        ]
        return pd.DataFrame(rows)

    @cached_property
    def stripes(self) -> pd.DataFrame:
        """A row for each application striped over several associations, and direction with data.

        Columns as in :attr:`associations`, where each of its associations has a row of its own.
        """
        return pd.DataFrame([row for one in self.outcome.get("stripes", ()) for row in _flows(one)])

    @cached_property
    def paths(self) -> pd.DataFrame:
        """A row for each path and side of each association, as it was at the end.

        Columns: association, side, path, local, remote, state, cwnd and ssthresh (bytes), rto and
        srtt (seconds), error_count, and the path's counters.
        """
        rows = [
            {
                "association": association["name"],
                "side": side,
                **{key: value for key, value in path.items() if key != "counts"},
                **path["counts"],
            }
            for association in self.outcome["associations"]
            for side in ("sender", "receiver")
            for path in association[side]["paths"]
        ]
        return pd.DataFrame(rows)

    @cached_property
    def links(self) -> pd.DataFrame:
        """A row for each direction of each link, with its counters in packets (and bytes).

        Columns in front count all packets; those that begin with ``background_`` the part of them
        that is background traffic.
        """
        rows = [
            {
                "link": link["name"],
                **link["counts"],
                **{f"background_{name}": count for name, count in link["background"].items()},
            }
            for link in self.outcome["links"]
        ]
        return pd.DataFrame(rows)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """A row for each change of a path: at (seconds), side, path, what, from and to."""
        columns = ["association", "at", "side", "path", "what", "from", "to"]
        rows = [
            {"association": association["name"], **change}
            for association in self.outcome["associations"]
            for change in association["changes"]
        ]
        return pd.DataFrame(rows, columns=pd.Index(columns))

    @property
    def series(self) -> Sequence[PathSeries | Ns2Series]:
        """Samples over time of each path that sent data: read-only numpy arrays, not copied.

        Empty unless the scenario has ``[series]`` or :func:`polypath.simulate` had ``series``.
        """
        return self._outcome.series

    def packets(self) -> pd.DataFrame:
        """A row for each packet at each link, in the order of time.

        Columns with their units are in :data:`polypath.packets.COLUMNS`. TSNs count from 1, the
        first DATA chunk of their direction. Without ``packets=True`` the scenario is run once more.
        """
        return frame(self._trace())

    def data_arrivals(self) -> pd.DataFrame:
        """A row for each DATA chunk that reached the far end of a link, in the order of time sent.

        Columns: link, arrival (seconds), tsn, as in :meth:`packets`, which takes ten times as long.
        """
        return data_arrivals(self._trace())

    def queue(self, link: str) -> pd.DataFrame:
        """The packets that wait for transmission at a path's link, a row for each change.

        Columns: `time` (seconds), `packets` and `bytes` from then on. The scenario is run once more
        unless the packets were kept.

        Args:
            link: "NAME/forward" or "NAME/back", by the name of the path.

        Raises:
            ValueError: There is no such link of a path, it has no rate, or a fault changes it.
        """
        return queue(self.scenario, self.packets(), link)

    def _trace(self) -> PacketTrace:
        trace: PacketTrace | None = self._outcome.packets
        if trace is None:
            trace = _core.run(self.scenario._inner, self.seed, packets=True).packets
        assert trace is not None
        return trace

    def pcap(self, path: str | PathLike[str]) -> None:
        """Writes the packets of every link into a pcapng file; runs the scenario once more.

        Raises:
            OSError: The file cannot be written.
            ValueError: The run is one of ns-2, whose packets have no bytes to write.
        """
        if isinstance(self._outcome, Ns2Outcome):
            raise ValueError('pcap: packets of backend "ns2" have no bytes; allowed: packets()')
        _core.run(self.scenario._inner, self.seed, None, fspath(path))

    def plot(self) -> Figure:
        """Congestion window, round-trip time and RTO of each path over time, as a figure.

        Without samples the scenario is run once more to get them.
        """
        series = self.series
        if not series and isinstance(self._outcome, Ns2Outcome):
            series = ns2.run(setup(self.scenario, self.seed), series=True).series
        elif not series:
            series = _core.run(self.scenario._inner, self.seed, "changes").series
        switches = self.changes.loc[self.changes["what"] == "current", "at"]
        return plot_run(series, switches, f"{self.scenario.name or 'scenario'}, seed {self.seed}")

    def __repr__(self) -> str:
        name, end = self.scenario.name, self.outcome["end"]
        return f"<Result {name!r}, seed {self.seed}: {end} at {self.outcome['ended_at']:.3f} s>"


def _flows(association: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each direction that carried data, and for the forward one."""
    for direction in ("forward", "back"):
        flow = dict(association[direction])
        if direction == "back" and not flow["bytes_sent"]:
            continue
        flow["blackouts"] = len(flow["blackouts"])
        flow["longest_gap"] = flow["longest_gap"] and flow["longest_gap"]["length"]
        yield {
            "association": association["name"],
            "direction": direction,
            "complete": association["complete"],
            **flow,
        }
