"""The metrics of a run as one flat row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Metric: TypeAlias = float | int | bool | str

#: The description and unit of every metric. If a scenario has several associations, the metrics of
#: each have its name as a prefix ("main.goodput"). Metrics of the back direction, if it carried
#: data, have the prefix "back.". The associations that an application is striped over count as
#: one, with the paths of all of them.
METRICS: Mapping[str, str] = {
    "complete": "every association delivered everything and closed gracefully",
    "end": "why the run ended: closed, idle, time-limit or event-limit",
    "ended_at": "simulated time at the end, seconds",
    "events": "events that were handled",
    "packets_lost": "packets lost by loss models and outages, all links, without background",
    "packets_dropped": "packets dropped by full queues or for their size, likewise",
    "time_from_start": "from the opening to the last byte delivered, seconds; none if incomplete",
    "time_from_first_data": "from the first DATA to the last byte, seconds; none if incomplete",
    "goodput": "bytes delivered per second, from the opening to the last of them",
    "bytes_sent": "bytes that the application sent",
    "bytes_delivered": "bytes that were delivered to the other application",
    "messages_delivered": "messages that were delivered",
    "messages_abandoned": "messages that the sender gave up and that were not delivered",
    "longest_gap": "longest time without newly delivered data, seconds; 0 if there was none",
    "blackouts": "times without newly delivered data of at least run.blackout",
    "blackout_time": "their sum, seconds",
    "packets_sent": "packets sent by the side that opened the association, all paths",
    "data_chunks_sent": "DATA chunks sent for the first time",
    "data_chunks_lost": "DATA chunks that did not arrive, retransmissions included",
    "data_bytes_sent": "user bytes sent for the first time",
    "fast_retransmissions": "DATA chunks fast retransmitted",
    "timeout_retransmissions": "DATA chunks retransmitted after a timeout",
    "timeouts": "expirations of T3-rtx",
    "blocked_time": "seconds for which the receive buffer held up new data and a path stood still",
    "failures": "times that a path became inactive",
    "heartbeats_lost": "HEARTBEATs not answered in time",
    "duplicates_received": "DATA chunks that arrived a second time at the other side",
    "sacks_sent": "SACKs that the other side sent",
}

#: Metrics of each path ("path.0.packets_sent"); paths count from 0 in the order of the sender's
#: addresses.
PATH_METRICS: Mapping[str, str] = {
    "packets_sent": "packets sent over it by the side that opened the association",
    "failures": "times that it became inactive there, until the last byte was delivered",
    "packets_arrived": "of the packets sent, those that the other side received",
    "data_sent": "DATA chunks sent on the path, retransmissions among them",
    "retransmissions": "DATA chunks sent over it that were sent before, over whichever path",
    "timeouts": "expirations of T3-rtx there",
    "second_timeouts": "of these, the second in a row, with no sign of life in between",
    "third_timeouts": "the third in a row",
    "fourth_timeouts": "the fourth in a row",
    "fifth_timeouts": "the fifth in a row",
}
_SENT = ("data_chunks_sent", "fast_retransmissions", "timeout_retransmissions")
_TIMEOUTS = (
    "timeouts",
    "second_timeouts",
    "third_timeouts",
    "fourth_timeouts",
    "fifth_timeouts",
)

_OF_SENDER_PATHS = (
    "packets_sent",
    "data_chunks_sent",
    "data_bytes_sent",
    "fast_retransmissions",
    "timeout_retransmissions",
    "timeouts",
    "failures",
    "heartbeats_lost",
)
_OF_RECEIVER = ("duplicates_received", "sacks_sent")


def metrics(outcome: Mapping[str, Any]) -> dict[str, Metric]:
    """The metrics of an outcome; see :data:`METRICS`. Missing numbers are NaN."""
    associations = applications(outcome)
    counts = [
        {name: count - link["background"][name] for name, count in link["counts"].items()}
        for link in outcome["links"]
    ]
    row: dict[str, Metric] = {
        "complete": all(association["complete"] for association in associations),
        "end": outcome["end"],
        "ended_at": outcome["ended_at"],
        "events": outcome["events"],
        "packets_lost": sum(c["lost"] + c["lost_outage"] for c in counts),
        "packets_dropped": sum(c["dropped_queue"] + c["dropped_mtu"] for c in counts),
    }
    if len(associations) == 1:
        return row | _association(associations[0])
    each = {a["name"]: _association(a) for a in associations}
    row |= _over_all(list(each.values()))
    for name, own in each.items():
        row |= {f"{name}.{metric}": value for metric, value in own.items()}
    return row


def applications(outcome: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The results of each application: of its association, or of all that it is striped over.

    The result of a striped application has the stripe's flows, the paths of all its associations
    one after the other, and the sums of their counters.
    """
    stripes = {name: one for one in outcome.get("stripes", ()) for name in one["associations"]}
    found: dict[str, Mapping[str, Any]] = {}
    for association in outcome["associations"]:
        stripe = stripes.get(association["name"])
        if stripe is None:
            found[association["name"]] = association
        elif stripe["name"] not in found:
            found[stripe["name"]] = _together(stripe, outcome["associations"])
    return list(found.values())


def _together(
    stripe: Mapping[str, Any], associations: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    members = [one for one in associations if one["name"] in stripe["associations"]]
    together: dict[str, Any] = {**stripe, "changes": []}
    for side in ("sender", "receiver"):
        paths: list[dict[str, Any]] = []
        counts: Counter[str] = Counter()
        for member in members:
            first = len(paths)
            paths += [{**path, "path": first + path["path"]} for path in member[side]["paths"]]
            counts.update(member[side]["counts"])
            together["changes"] += [
                {**change, "path": first + change["path"]}
                for change in member["changes"]
                if change["side"] == side
            ]
        together[side] = {"paths": paths, "counts": dict(counts)}
    return together


def rank(metric: str) -> tuple[str, int, str]:
    """Sort key: metrics of the run as in :data:`METRICS`, then those of each association."""
    prefix, _, last = metric.rpartition(".")
    known = list(PATH_METRICS if ".path." in f".{prefix}." else METRICS)
    return prefix, known.index(last) if last in known else len(known), last


def _association(association: Mapping[str, Any]) -> dict[str, Metric]:
    complete = association["complete"]
    row = _flow(association["forward"], complete)
    for name in _OF_SENDER_PATHS:
        row[name] = sum(path["counts"][name] for path in association["sender"]["paths"])
    for name in _OF_RECEIVER:
        row[name] = association["receiver"]["counts"][name]
    row["blocked_time"] = association["sender"]["counts"]["nanoseconds_blocked"] / 1e9
    row |= _paths(association)
    again = sum(float(row[name]) for name in row if name.endswith(".retransmissions"))
    arrived = sum(p["counts"]["data_chunks_received"] for p in association["receiver"]["paths"])
    lost = float(row["data_chunks_sent"]) + again - arrived
    row["data_chunks_lost"] = lost if math.isnan(lost) else int(lost)
    if association["back"]["bytes_sent"]:
        back = _flow(association["back"], complete)
        row |= {f"back.{metric}": value for metric, value in back.items()}
    return row


def _paths(association: Mapping[str, Any]) -> dict[str, Metric]:
    arrived = {
        (path["remote"], path["local"]): path["counts"]["packets_received"]
        for path in association["receiver"]["paths"]
    }
    # Ignore failures after the last byte: a lost SHUTDOWN is not part of the transfer.
    end = association["forward"]["last_delivered"]
    failures = Counter(
        change["path"]
        for change in association["changes"]
        if (change["side"], change["to"]) == ("sender", "inactive")
        and (end is None or change["at"] <= end)
    )
    row: dict[str, Metric] = {}
    # ns-2's packets show the sum of fast and timeout retransmissions only.
    known_sums = association["sender"].get("retransmissions")
    known_data = association["sender"].get("data_sent")
    for path in association["sender"]["paths"]:
        prefix = f"path.{path['path']}"
        row[f"{prefix}.packets_sent"] = path["counts"]["packets_sent"]
        row[f"{prefix}.packets_arrived"] = arrived.get((path["local"], path["remote"]), 0)
        again = sum(path["counts"][f"{cause}_retransmissions"] for cause in ("fast", "timeout"))
        row[f"{prefix}.retransmissions"] = known_sums[path["path"]] if known_sums else again
        known = not math.isnan(path["counts"]["failures"])
        row[f"{prefix}.failures"] = failures[path["path"]] if known else math.nan
        sent = sum(path["counts"][name] for name in _SENT)
        row[f"{prefix}.data_sent"] = known_data[path["path"]] if known_data else sent
        row |= {f"{prefix}.{name}": path["counts"][name] for name in _TIMEOUTS}
    return row


def _flow(flow: Mapping[str, Any], complete: bool) -> dict[str, Metric]:
    def time(name: str) -> float:
        value = flow[name] if complete else None
        return math.nan if value is None else value

    return {
        "time_from_start": time("time_from_start"),
        "time_from_first_data": time("time_from_first_data"),
        "goodput": flow["goodput"],
        "bytes_sent": flow["bytes_sent"],
        "bytes_delivered": flow["bytes_delivered"],
        "messages_delivered": flow["messages_delivered"],
        "messages_abandoned": flow["messages_abandoned"],
        "longest_gap": flow["longest_gap"]["length"] if flow["longest_gap"] else 0.0,
        "blackouts": len(flow["blackouts"]),
        "blackout_time": math.fsum(blackout["length"] for blackout in flow["blackouts"]),
    }


def _over_all(rows: list[dict[str, Metric]]) -> dict[str, Metric]:
    """Metrics over several associations: the maximum of `longest`, the sum of all others."""
    longest = ("time_from_start", "time_from_first_data", "longest_gap")
    total: dict[str, Metric] = {}
    for metric in METRICS:
        values = [float(row[metric]) for row in rows if metric in row]
        if not values:
            continue
        if metric in longest:
            total[metric] = math.nan if any(map(math.isnan, values)) else max(values)
        elif metric in ("goodput", "blackout_time", "blocked_time"):
            total[metric] = math.fsum(values)
        else:
            total[metric] = sum(int(value) for value in values)
    return total
