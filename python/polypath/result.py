"""The result of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, cast

import numpy as np
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


#: Columns of the frame of samples that identify a path.
_OF_SERIES = ("association", "side", "path", "name")
#: Intervals of the goodput in a figure.
_INTERVALS = 100


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
    def samples(self) -> Sequence[PathSeries | Ns2Series]:
        """Samples over time of each path that sent data: read-only numpy arrays, not copied.

        Empty unless the scenario has ``[series]`` or :func:`polypath.simulate` had ``series``.
        """
        return self._outcome.series

    @cached_property
    def series(self) -> pd.DataFrame:
        """The samples over time as a tidy frame, a row for each sample of each path.

        Columns: association, side, path (number), name (empty in a general graph), time
        (seconds), and the variables of :class:`polypath._core.PathSeries`: cwnd, ssthresh,
        in_flight and peer_rwnd (bytes), rto and srtt (seconds), state, error_count. Empty as
        :attr:`samples`.
        """
        names = self.path_names
        variables = PathSeries.COLUMNS
        parts = [
            pd.DataFrame(
                {
                    "association": one.association,
                    "side": one.side,
                    "path": one.path,
                    "name": names.get(one.path, ""),
                    **{column: getattr(one, column) for column in variables},
                }
            )
            for one in self.samples
        ]
        if not parts:
            return pd.DataFrame(columns=pd.Index([*_OF_SERIES, *variables]))
        return pd.concat(parts, ignore_index=True)

    @property
    def path_names(self) -> dict[int, str]:
        """The names of the scenario's paths by their numbers; none for a general graph."""
        paths = self.scenario.to_dict().get("path", [])
        return {number: path.get("name", f"path{number}") for number, path in enumerate(paths)}

    def goodput(self, interval: float) -> pd.DataFrame:
        """The user data that first arrived over each path, by time: the goodput of each path.

        Columns: path (number), name, time (begin of the interval, seconds), goodput (bytes per
        second). The scenario is run once more unless the packets were kept. Empty for a general
        graph, and with several associations.

        Args:
            interval: Seconds over which the goodput is averaged.

        Raises:
            ValueError: The interval is not above 0.
        """
        if not interval > 0:
            raise ValueError(f"interval: found {interval}; allowed: above 0, in seconds")
        return goodput_of_paths(self, interval)

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
        """Goodput, congestion window, round-trip time and RTO of each path over time.

        Without samples or packets the scenario is run once more to get them.
        """
        series = self.samples
        if not series and isinstance(self._outcome, Ns2Outcome):
            series = ns2.run(setup(self.scenario, self.seed), series=True).series
        elif not series:
            series = _core.run(self.scenario._inner, self.seed, "changes").series
        switches = self.changes.loc[self.changes["what"] == "current", "at"]
        title = f"{self.scenario.name or 'scenario'}, seed {self.seed}"
        goodput = self.goodput(max(float(self.outcome["ended_at"]) / _INTERVALS, 1e-6))
        return plot_run(series, switches, title, self.path_names, goodput)

    def __repr__(self) -> str:
        name, end = self.scenario.name, self.outcome["end"]
        return f"<Result {name!r}, seed {self.seed}: {end} at {self.outcome['ended_at']:.3f} s>"


def goodput_of_paths(result: Result, interval: float) -> pd.DataFrame:
    """See :meth:`Result.goodput`."""
    names = result.path_names
    associations = result.outcome["associations"]
    parts = []
    if len(associations) == 1 and names:
        flow = associations[0]["forward"]
        data = result.data_arrivals()
        # The last hop of each path, and the first arrival of each chunk.
        known = set(data["link"].cat.categories)
        last = {}
        for number, name in names.items():
            link = f"{name}/forward"
            last[f"{link}/last" if f"{link}/last" in known else link] = number
        data = data[data["link"].isin(list(last))].sort_values("arrival")
        data = data.drop_duplicates("tsn")
        size = float(flow["bytes_delivered"]) / len(data) if len(data) else 0.0
        ends = np.arange(0, float(result.outcome["ended_at"]) + interval, interval)
        for link, number in last.items():
            arrivals = data.loc[data["link"] == link, "arrival"]
            counts, _ = np.histogram(arrivals, ends)
            own = {"path": number, "name": names[number], "time": ends[:-1]}
            parts.append(pd.DataFrame({**own, "goodput": counts * size / interval}))
    if not parts:
        return pd.DataFrame(columns=pd.Index(["path", "name", "time", "goodput"]))
    return pd.concat(parts, ignore_index=True)


def _flows(association: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each direction that carried data, and for the forward one."""
    for direction in ("forward", "back"):
        flow = dict(association[direction])
        if direction == "back" and not flow["bytes_sent"]:
            continue
        flow["blackouts"] = len(flow["blackouts"])
        flow["longest_gap"] = flow["longest_gap"] and flow["longest_gap"]["length"]
        for name, time in (flow.pop("delivery_times", None) or {}).items():
            flow[f"delivery_{name}"] = time
        yield {
            "association": association["name"],
            "direction": direction,
            "complete": association["complete"],
            **flow,
        }
