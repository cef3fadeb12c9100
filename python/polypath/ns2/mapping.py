"""From a scenario to what ns-2 is set to, and what ns-2 cannot do."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polypath import packets
from polypath._core import ScenarioError, quantity
from polypath.scenario import Scenario

#: Bytes of the IPv4 header, of SCTP's common header, and of a DATA chunk before its data.
_IP, _COMMON, _DATA = 20, 12, 16
#: The profile that follows Debian's release of the module.
PROFILE = "ns2-2.35"

#: The core's parameters that ns-2 has a variable for, and those that make no difference there.
_MAPPED = {
    "rto_initial",
    "rto_min",
    "rto_max",
    "association_max_retrans",
    "path_max_retrans",
    "max_init_retransmits",
    "heartbeat_interval",
    "sack_delay",
    "sack_every",
    "max_burst",
    "fast_retransmit_reports",
    "receive_buffer",
    "initial_ssthresh",
    "path_mtu",
}
_WITHOUT_EFFECT = {
    "send_buffer",
    "max_message_size",
    "inbound_streams",
    "outbound_streams",
    "cookie_life",
    "max_paths",
}

#: Answers that the module has, each as (keys of `[policy]`) -> what stands for it.
_RTX_TO_ALT = {"same": 0, "alternate": 1, "hybrid": 2}
_AGENTS = {
    # loss, rtt_sampling, probing
    ("standard", "karn", "idle"): "Agent/SCTP",
    ("standard", "karn", "after-rto"): "Agent/SCTP/HbAfterRto",
    ("standard", "timestamps", "idle"): "Agent/SCTP/Timestamp",
    ("multiple-fast-retransmit", "karn", "idle"): "Agent/SCTP/MultipleFastRtx",
    ("multiple-fast-retransmit", "karn", "after-rto"): "Agent/SCTP/MfrHbAfterRto",
    ("multiple-fast-retransmit", "timestamps", "idle"): "Agent/SCTP/MfrTimestamp",
}
#: Answers that ns-2's own rules stand for.
_STANDARD = {
    "congestion": {"rfc9260"},
    "cwnd_update": {"standard"},
    "scheduler": {"primary"},
    "failover": {"standard"},
    "ack": {"delayed"},
}


#: What scripts of losses may count: packets of any kind, or those with such a chunk.
SCRIPTED = {
    "packets": None,
    "data": packets.DATA,
    "sack": packets.SACK,
    "init": packets.INIT,
    "init_ack": packets.INIT_ACK,
    "cookie_echo": packets.COOKIE_ECHO,
    "cookie_ack": packets.COOKIE_ACK,
    "heartbeat": packets.HEARTBEAT,
    "heartbeat_ack": packets.HEARTBEAT_ACK,
}


def refuse(key: str, found: object, allowed: str) -> ScenarioError:
    """The error for what ns-2 cannot do, in one line."""
    return ScenarioError(f'{key}: found {found}; allowed with backend "ns2": {allowed}')


@dataclass(frozen=True)
class Link:
    """One direction of a link between two nodes of ns-2."""

    name: str
    ends: tuple[int, int]
    #: bit/s and seconds.
    rate: float
    delay: float
    #: What may wait: packets or bytes, or neither.
    packets: int | None
    bytes: int | None
    #: Probability of loss, or exactly these packets: of each kind by number, counted from 1.
    loss: float = 0.0
    script: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Path:
    """The links of a path, forward and back, in the order in which a packet passes them."""

    name: str
    sender: int
    receiver: int
    forward: tuple[Link, ...]
    back: tuple[Link, ...]
    #: Which of them the path's own parameters and faults belong to.
    middle: int


@dataclass(frozen=True)
class Change:
    """A link breaks, works again, or loses another share, at a time in seconds."""

    at: float
    path: int
    kind: str
    loss: float = 0.0
    direction: str = "both"


@dataclass(frozen=True)
class Setup:
    """All that ns-2 has to know of a scenario."""

    scenario: str
    seed: int
    paths: tuple[Path, ...]
    changes: tuple[Change, ...]
    #: Class of the agents, and the variables of each.
    agent: str
    sender: Mapping[str, float]
    receiver: Mapping[str, float]
    #: Whether DATA packets and SACKs carry a timestamp chunk.
    timestamps: bool
    #: When the application begins, seconds, and the bytes of each message.
    start: float
    messages: tuple[int, ...]
    #: Seconds between two messages; 0 sends all at once.
    interval: float
    #: When the run ends in any case, seconds.
    limit: float
    #: A time without delivered data of at least this many seconds is a blackout.
    blackout: float
    warnings: tuple[str, ...] = field(default=())

    @property
    def links(self) -> tuple[Link, ...]:
        """All links: of each path forward, then back."""
        return tuple(link for path in self.paths for link in (*path.forward, *path.back))


def setup(scenario: Scenario, seed: int | None = None) -> Setup:
    """What ns-2 has to know of a scenario.

    Raises:
        ScenarioError: ns-2 cannot do what it asks for; one line with the key and what is allowed.
    """
    table = scenario.to_dict()
    for key, why in {"node": "[[path]]", "link": "[[path]]", "association": "[workload]"}.items():
        if table.get(key):
            raise refuse(f"[[{key}]]", len(table[key]), f"only {why}")
    paths = _paths(table["path"])
    effective = json.loads(scenario._inner.effective())
    _check_given(table.get("transport", {}))
    agent, rtx_to_alt = _policies(effective["sender"]["policy"], table.get("policy", {}))
    timestamps = "Timestamp" in agent
    sides = {side: _variables(effective[side]["transport"], side) for side in effective}
    sides["sender"]["rtxToAlt_"] = rtx_to_alt
    largest = int(sides["sender"]["mtu_"]) - _IP - _COMMON - _DATA - (12 if timestamps else 0)
    start, messages, interval, unordered = _workload(table.get("workload") or {}, largest)
    sides["sender"]["unordered_"] = int(unordered)
    sides["sender"]["dataChunkSize_"] = sides["receiver"]["dataChunkSize_"] = largest + _DATA
    run = table.get("run", {})
    profile = table.get("transport", {}).get("profile", "rfc9260")
    warnings = []
    if profile != PROFILE:
        warnings.append(
            f'transport.profile: backend "ns2" follows the rules of profile "{PROFILE}" whatever '
            f'the scenario says, which is "{profile}"'
        )
    return Setup(
        scenario=scenario.name,
        seed=scenario.seed if seed is None else seed,
        paths=paths,
        changes=_changes(table.get("fault", []), paths),
        agent=agent,
        sender=sides["sender"],
        receiver=sides["receiver"],
        timestamps=timestamps,
        start=start,
        messages=messages,
        interval=interval,
        limit=quantity(run.get("limit", "24 h")),
        blackout=quantity(run.get("blackout", "1 s")),
        warnings=tuple(warnings),
    )


def _paths(specs: list[dict[str, Any]]) -> tuple[Path, ...]:
    paths: list[Path] = []
    for index, spec in enumerate(specs):
        key, name = f"path.{index}", spec.get("name", f"path{index}")
        # Nodes are numbered as the script makes them: two interfaces a path, then its routers.
        sender, receiver = 4 * index, 4 * index + 1
        near, far = 4 * index + 2, 4 * index + 3
        edge = spec.get("edge")
        own = {key: value for key, value in spec.items() if key not in ("forward", "back")}
        directions: list[tuple[Link, ...]] = []
        for way in ("forward", "back"):
            config, at = {**own, **spec.get(way, {})}, f"{name}/{way}"
            nodes = [sender, receiver] if edge is None else [sender, near, far, receiver]
            if way == "back":
                nodes.reverse()
            if edge is None:
                directions.append((_link(at, nodes, config, key),))
                continue
            directions.append(
                (
                    _link(f"{at}/first", nodes[:2], edge, f"{key}.edge"),
                    _link(at, nodes[1:3], config, key),
                    _link(f"{at}/last", nodes[2:], edge, f"{key}.edge"),
                )
            )
        forward, back = directions
        paths.append(Path(name, sender, receiver, forward, back, 0 if edge is None else 1))
    return tuple(paths)


def _link(name: str, nodes: list[int], config: Mapping[str, Any], key: str) -> Link:
    for other in ("mtu", "reorder", "duplicate", "corrupt"):
        if other in config and config[other] not in (0, "0", "0 %"):
            raise refuse(f"{key}.{other}", config[other], "links without it")
    if "rate" not in config:
        raise refuse(f"{key}.rate", "none", 'a rate such as "10 Mbit/s"')
    queue = str(config.get("queue", "50 packets"))
    waiting = bytes_ = None
    if queue.endswith("packets"):
        waiting = int(queue.removesuffix("packets"))
    elif queue != "unlimited":
        bytes_ = int(quantity(queue))
    loss, script = _loss(config.get("loss", 0), f"{key}.loss")
    return Link(
        name=name,
        ends=(nodes[0], nodes[1]),
        rate=quantity(config["rate"]),
        delay=quantity(config.get("delay", "0 s")),
        packets=waiting,
        bytes=bytes_,
        loss=loss,
        script=script,
    )


def _loss(loss: Any, key: str) -> tuple[float, tuple[tuple[str, tuple[int, ...]], ...]]:
    if isinstance(loss, Mapping):
        if not set(loss) <= set(SCRIPTED):
            allowed = f'a share such as "3 %", or a script of {", ".join(SCRIPTED)}'
            raise refuse(key, ", ".join(loss), allowed)
        return 0.0, tuple((kind, tuple(sorted(set(loss[kind])))) for kind in loss)
    return share(loss), ()


def share(value: str | float) -> float:
    """A probability as scenarios write it."""
    return float(value) if isinstance(value, int | float) else quantity(value)


def _changes(faults: list[dict[str, Any]], paths: tuple[Path, ...]) -> tuple[Change, ...]:
    changes = []
    for index, fault in enumerate(faults):
        key = f"fault.{index}"
        kind = fault["kind"]
        if kind not in ("down", "up", "loss"):
            raise refuse(f"{key}.kind", f'"{kind}"', '"down", "up" or "loss"')
        if "path" not in fault:
            raise refuse(f"{key}.link", f'"{fault.get("link")}"', "a path")
        direction = fault.get("direction", "both")
        if kind != "loss" and direction != "both":
            raise refuse(f"{key}.direction", f'"{direction}"', '"both"')
        which = fault["path"]
        names = [path.name for path in paths]
        path = which if isinstance(which, int) else names.index(which)
        at = quantity(fault["at"])
        loss, before = 0.0, 0.0
        if kind == "loss":
            loss, script = _loss(fault["loss"], f"{key}.loss")
            before = paths[path].forward[paths[path].middle].loss
            if script:
                raise refuse(f"{key}.loss", "a script", 'a share such as "3 %"')
        changes.append(Change(at, path, kind, loss, direction))
        if "for" in fault:
            back = {"down": "up", "up": "down", "loss": "loss"}[kind]
            end = at + quantity(fault["for"])
            changes.append(Change(end, path, back, before, direction))
    return tuple(sorted(changes, key=lambda change: change.at))


def _check_given(transport: Mapping[str, Any]) -> None:
    """Refuses parameters that ns-2 has nothing for; those of a profile are the profile's."""
    given = {
        **{key: ("transport." + key, value) for key, value in transport.items()},
        **{
            f"{side}.{key}": (f"transport.{side}.{key}", value)
            for side in ("sender", "receiver")
            for key, value in transport.get(side, {}).items()
        },
    }
    for key, (at, value) in given.items():
        name = key.rpartition(".")[2]
        if name in ("profile", "sender", "receiver") or name in _MAPPED | _WITHOUT_EFFECT:
            continue
        if (name, value) in (("encapsulation", "ip"), ("full_mesh", False)):
            continue
        raise refuse(at, json.dumps(value), ", ".join(sorted(_MAPPED)))


def _variables(parameters: Mapping[str, Any], side: str) -> dict[str, float]:
    """The variables of an agent of ns-2."""

    def seconds(name: str) -> float:
        return quantity(parameters[name])

    key = f"transport.{side}."
    heartbeats = parameters["heartbeat_interval"]
    interval = 0.0 if heartbeats == "off" else quantity(heartbeats)
    if interval != int(interval):
        raise refuse(f"{key}heartbeat_interval", f'"{heartbeats}"', 'whole seconds, or "off"')
    every = parameters["sack_every"]
    if every not in (1, 2):
        raise refuse(f"{key}sack_every", every, "1 or 2")
    burst = parameters["max_burst"]
    if burst != 4:
        raise refuse(f"{key}max_burst", burst, "4")
    ssthresh = parameters["initial_ssthresh"]
    window = parameters["receive_buffer"]
    return {
        "mtu_": quantity(parameters["path_mtu"]),
        "numOutStreams_": 1,
        "initialRwnd_": quantity(window),
        "initialSsthresh_": quantity(window if ssthresh == "off" else ssthresh),
        "initialRto_": seconds("rto_initial"),
        "minRto_": seconds("rto_min"),
        "maxRto_": seconds("rto_max"),
        "fastRtxTrigger_": parameters["fast_retransmit_reports"],
        "pathMaxRetrans_": parameters["path_max_retrans"],
        # The default -1 behaves as 0: a comparison of signed with unsigned.
        "changePrimaryThresh_": 1_000_000,
        "associationMaxRetrans_": parameters["association_max_retrans"],
        "maxInitRetransmits_": parameters["max_init_retransmits"],
        "useDelayedSacks_": int(every == 2),
        "sackDelay_": seconds("sack_delay"),
        "useMaxBurst_": 1,
        "heartbeatInterval_": interval,
    }


def _policies(effective: Mapping[str, str], given: Mapping[str, Any]) -> tuple[str, int]:
    """Class of the agents and value of rtxToAlt_."""
    for side in ("sender", "receiver"):
        if given.get(side):
            raise refuse(f"policy.{side}", json.dumps(given[side]), "the same for both sides")
    for key, known in _STANDARD.items():
        if key in given and given[key] not in known:
            raise refuse(f"policy.{key}", f'"{given[key]}"', ", ".join(sorted(known)))
    retransmission = effective["retransmission"]
    if retransmission not in _RTX_TO_ALT:
        raise refuse("policy.retransmission", f'"{retransmission}"', ", ".join(_RTX_TO_ALT))
    chosen = (
        effective.get("loss", "standard"),
        effective.get("rtt_sampling", "karn"),
        effective.get("probing", "idle"),
    )
    # A profile has ns-2's answers to the same questions under names of its own.
    named = tuple(
        value if key in given else value.removeprefix("ns2-")
        for key, value in zip(("loss", "rtt_sampling", "probing"), chosen, strict=True)
    )
    agent = _AGENTS.get((named[0], named[1], named[2])) or _AGENTS.get(
        (
            given.get("loss", "standard"),
            given.get("rtt_sampling", "karn"),
            given.get("probing", "idle"),
        )
    )
    if agent is None:
        together = "; ".join(" with ".join(combination) for combination in _AGENTS)
        raise refuse("policy", " with ".join(chosen), f"loss, rtt_sampling, probing as {together}")
    return agent, _RTX_TO_ALT[retransmission]


def _workload(
    workload: Mapping[str, Any], largest: int
) -> tuple[float, tuple[int, ...], float, bool]:
    """Start in seconds, bytes of each message, interval in seconds, whether unordered."""
    kind = workload.get("kind", "bulk")
    if kind not in ("bulk", "periodic"):
        raise refuse("workload.kind", f'"{kind}"', '"bulk" or "periodic"')
    for key, allowed in {"direction": "forward", "streams": 1}.items():
        if workload.get(key, allowed) != allowed:
            raise refuse(f"workload.{key}", json.dumps(workload[key]), json.dumps(allowed))
    if "read_rate" in workload:
        raise refuse("workload.read_rate", workload["read_rate"], "a reader that reads at once")
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
