"""The network of a scenario in ns-2: nodes, links, and changes of the links."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polypath import packets
from polypath._core import ScenarioError, quantity

#: Queue limit of an unlimited link, in packets.
_UNLIMITED = 1_000_000_000

#: Kinds that loss scripts may count: all packets, or those with a chunk of this type.
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
    """The error for a value that ns-2 does not support, in one line."""
    return ScenarioError(f'{key}: found {found}; allowed with backend "ns2": {allowed}')


@dataclass(frozen=True)
class Link:
    """One direction of a link between two nodes of ns-2."""

    name: str
    ends: tuple[int, int]
    #: Rate in bit/s, delay in seconds.
    rate: float
    delay: float
    #: Queue limit in packets or in bytes; None for both: no limit.
    packets: int | None
    bytes: int | None
    #: Probability of loss; or the numbers of the lost packets of each kind, counted from 1.
    loss: float = 0.0
    script: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def tcl(self, start: str, goal: str) -> list[str]:
        """Tcl that makes this link between two nodes."""
        ends = f"{start} {goal}"
        lines = [f"$ns simplex-link {ends} {self.rate!r} {self.delay!r} DropTail"]
        # ns-2's DropTail drops packets that would fill its limit, our queues those above the limit.
        if self.bytes is None:
            limit = _UNLIMITED if self.packets is None else self.packets + 1
            return [*lines, f"$ns queue-limit {ends} {limit}"]
        return [
            *lines,
            f"set queue [[$ns link {ends}] queue]",
            "$queue set queue_in_bytes_ true",
            "$queue set mean_pktsize_ 1",
            f"$queue set limit_ {self.bytes + 1}",
        ]


@dataclass(frozen=True)
class Path:
    """The links of a path, forward and back, in the order in which a packet passes them."""

    name: str
    sender: int
    receiver: int
    forward: tuple[Link, ...]
    back: tuple[Link, ...]
    #: Index of the link with the path's own parameters and faults.
    middle: int

    def loss_rate(self, middle: float | None = None) -> float:
        """Loss rate of the forward direction, without scripts; `middle` is the middle link's."""
        own = [link.loss for link in self.forward]
        if middle is not None:
            own[self.middle] = middle
        return 1 - math.prod(1 - loss for loss in own)


@dataclass(frozen=True)
class Change:
    """A link goes down, comes up, or gets another loss rate, at a time in seconds."""

    at: float
    path: int
    kind: str
    loss: float = 0.0
    direction: str = "both"


def network_paths(specs: list[dict[str, Any]]) -> tuple[Path, ...]:
    """The paths of a scenario.

    Raises:
        ScenarioError: A path has a feature that ns-2 lacks.
    """
    paths: list[Path] = []
    for index, spec in enumerate(specs):
        key, name = f"path.{index}", spec.get("name", f"path{index}")
        # Nodes have the numbers of the script: two interfaces for each path, then its routers.
        sender, receiver = 4 * index, 4 * index + 1
        near, far = 4 * index + 2, 4 * index + 3
        if "shares" in spec:
            raise refuse(f"{key}.shares", f'"{spec["shares"]}"', "a link of its own for each path")
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
    queues = ("trace", "mtu", "mark_at", "red", "codel", "policer")
    for other in (*queues, "middlebox", "reorder", "duplicate", "corrupt"):
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
    """Converts a probability in a scenario's notation."""
    return float(value) if isinstance(value, int | float) else quantity(value)


def network_changes(faults: list[dict[str, Any]], paths: tuple[Path, ...]) -> tuple[Change, ...]:
    """The changes of the paths' middle links, in the order of time.

    Raises:
        ScenarioError: ns-2 does not support a fault.
    """
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
