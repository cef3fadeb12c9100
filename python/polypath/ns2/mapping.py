"""Converts a scenario to the settings of ns-2 and rejects what ns-2 does not support."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polypath._core import quantity
from polypath.ns2.cross_traffic import CrossTraffic, check_no_traffic, cross_traffic
from polypath.ns2.network import Change, Link, Path, network_changes, network_paths, refuse, share
from polypath.ns2.transport import (
    PROFILE,
    agent_variables,
    check_given,
    failover,
    policies,
    tie_seed,
)
from polypath.parameters import NS2_VARIABLES
from polypath.scenario import Scenario

#: Bytes of the IPv4 header, of SCTP's common header, and of a DATA chunk before its data.
_IP, _COMMON, _DATA = 20, 12, 16
#: Bytes of the chunk of the timestamp extension.
_TIMESTAMP = 12


@dataclass(frozen=True)
class Setup:
    """The settings of ns-2 for a scenario."""

    scenario: str
    seed: int
    paths: tuple[Path, ...]
    cross_traffic: tuple[CrossTraffic, ...]
    changes: tuple[Change, ...]
    #: Class of the agents, and the variables of each.
    agent: str
    sender: Mapping[str, float]
    receiver: Mapping[str, float]
    #: Seed of ns-2's default generator, which breaks ties; None leaves it at its default.
    tie_seed: int | None
    #: Whether DATA packets and SACKs carry a timestamp chunk.
    timestamps: bool
    #: Start of the application in seconds, and the bytes of each message.
    start: float
    messages: tuple[int, ...]
    #: Seconds between two messages; 0 sends all at once.
    interval: float
    #: Time limit of the run, seconds.
    limit: float
    #: Least time without delivered data that counts as a blackout, seconds.
    blackout: float
    warnings: tuple[str, ...] = field(default=())

    @property
    def links(self) -> tuple[Link, ...]:
        """The links of all paths; of each path forward, then back."""
        return tuple(link for path in self.paths for link in (*path.forward, *path.back))


def setup(scenario: Scenario, seed: int | None = None) -> Setup:
    """Converts a scenario to the settings of ns-2.

    Raises:
        ScenarioError: ns-2 does not support it; one line with the key and the allowed values.
    """
    table = scenario.to_dict()
    for key, why in {"node": "[[path]]", "link": "[[path]]", "association": "[workload]"}.items():
        if table.get(key):
            raise refuse(f"[[{key}]]", len(table[key]), f"only {why}")
    if table.get("address"):
        raise refuse("[[address]]", len(table["address"]), "none: addresses stay")
    check_no_traffic(table.get("traffic", []))
    paths = network_paths(table["path"])
    root = scenario.seed if seed is None else seed
    effective = json.loads(scenario._inner.effective())
    check_given(table.get("transport", {}))
    agent, answers = policies(effective["sender"]["policy"], table.get("policy", {}))
    timestamps = "Timestamp" in agent
    sides = {side: agent_variables(effective[side]["transport"], side) for side in effective}
    sides["sender"].update(answers)
    if "useCmtDelAck_" in answers:
        if answers["useCmtDelAck_"] and not sides["receiver"][NS2_VARIABLES["sack_every"]]:
            # The module counts packets only while it delays SACKs: its SACKs would report none.
            raise refuse("transport.sack_every", 1, '2 with policy.ack "delayed-cmt"')
        # A receiver with potentially failed paths would loop forever when a heartbeat is lost.
        sides["receiver"].update({"useCmtDelAck_": answers["useCmtDelAck_"], "useCmtPF_": 0})
        cwnd = effective["sender"]["transport"]["potentially_failed_cwnd"]
        sides["sender"][NS2_VARIABLES["potentially_failed_cwnd"]] = cwnd
    for side, variables in sides.items():
        variables.update(failover(effective[side]["policy"], effective[side]["transport"]))
    headers = _IP + _COMMON + _DATA + (_TIMESTAMP if timestamps else 0)
    largest = int(sides["sender"]["mtu_"]) - headers
    start, messages, interval, unordered = _workload(table.get("workload") or {}, largest)
    sides["sender"]["unordered_"] = int(unordered)
    sides["sender"]["dataChunkSize_"] = sides["receiver"]["dataChunkSize_"] = largest + _DATA
    run = table.get("run", {})
    profile = table.get("transport", {}).get("profile", "modern")
    warnings = []
    if profile != PROFILE:
        warnings.append(
            f'transport.profile: backend "ns2" follows the rules of profile "{PROFILE}" whatever '
            f'the scenario states ("{profile}")'
        )
    return Setup(
        scenario=scenario.name,
        seed=root,
        paths=paths,
        cross_traffic=tuple(
            _cross_traffic(spec, path, root)
            for spec, path in zip(table["path"], paths, strict=True)
            if "cross_traffic" in spec
        ),
        changes=network_changes(table.get("fault", []), paths),
        agent=agent,
        sender=sides["sender"],
        receiver=sides["receiver"],
        tie_seed=tie_seed(agent, effective["sender"]["transport"]),
        timestamps=timestamps,
        start=start,
        messages=messages,
        interval=interval,
        limit=quantity(run.get("limit", "24 h")),
        blackout=quantity(run.get("blackout", "1 s")),
        warnings=tuple(warnings),
    )


def _cross_traffic(spec: Mapping[str, Any], path: Path, seed: int) -> CrossTraffic:
    middle = path.forward[path.middle], path.back[path.middle]
    return cross_traffic(spec["cross_traffic"], path.name, middle, path.forward[0], seed)


def _workload(
    workload: Mapping[str, Any], largest: int
) -> tuple[float, tuple[int, ...], float, bool]:
    """Start in seconds, bytes of each message, interval in seconds, whether unordered."""
    kind = workload.get("kind", "bulk")
    if kind not in ("bulk", "periodic"):
        raise refuse("workload.kind", f'"{kind}"', '"bulk" or "periodic"')
    for key, allowed in {"direction": "forward", "streams": 1, "striped": False}.items():
        if workload.get(key, allowed) != allowed:
            raise refuse(f"workload.{key}", json.dumps(workload[key]), json.dumps(allowed))
    if "read_rate" in workload:
        raise refuse("workload.read_rate", workload["read_rate"], "a reader that reads at once")
    for key in ("lifetime", "retransmissions", "priorities", "unreliable"):
        if key in workload:
            raise refuse(f"workload.{key}", json.dumps(workload[key]), "reliable messages")
    unordered = share(workload.get("unordered", 0))
    if unordered not in (0.0, 1.0):
        raise refuse("workload.unordered", workload["unordered"], "0 % or 100 %")
    text = str(workload.get("message_size", "1452 B"))
    if ".." in text or quantity(text) > largest:
        raise refuse("workload.message_size", f'"{text}"', f"one size of at most {largest} B")
    size = int(quantity(text))
    if "messages" in workload:
        messages = [size] * int(workload["messages"])
    else:
        total = int(quantity(workload.get("size", "0 B")))
        messages = [size] * (total // size) + ([total % size] if total % size else [])
    interval = quantity(workload["interval"]) if kind == "periodic" else 0.0
    if not math.isfinite(interval):
        raise refuse("workload.interval", workload["interval"], "a span of time")
    return quantity(workload.get("start", "0 s")), tuple(messages), interval, unordered == 1.0
