"""The sections of a scenario as types, so that editors and type checkers know the keys.

The types do not validate at run time: a scenario is validated in one place only, the same one for
files, the command line and Python. Quantities are strings with units.
"""

from typing import Literal, Required, TypeAlias, TypedDict

from polypath.parameters import Parameters as Parameters
from polypath.parameters import PolicyNames as PolicyNames

#: Networks by name: the paths "primary" and "alternate", and "second-alternate" if there are three;
#: or "competitor", where all three share a link.
TopologyName: TypeAlias = Literal["two-paths", "three-paths", "dual-dumbbell", "shared-bottleneck"]

Direction: TypeAlias = Literal["forward", "back", "both"]


class GilbertElliott(TypedDict, total=False):
    """Transitions between a good and a bad state, with a loss probability in each."""

    good_to_bad: str
    bad_to_good: str
    loss_good: str
    loss_bad: str


class LossScript(TypedDict, total=False):
    """Exactly these packets are lost, counted from 1 in the order in which they are offered.

    `packets` counts all of them, the other keys those that have a chunk of the type.
    """

    packets: list[int]
    data: list[int]
    sack: list[int]
    init: list[int]
    init_ack: list[int]
    cookie_echo: list[int]
    cookie_ack: list[int]
    heartbeat: list[int]
    heartbeat_ack: list[int]
    shutdown: list[int]
    shutdown_ack: list[int]
    shutdown_complete: list[int]
    abort: list[int]
    asconf: list[int]
    asconf_ack: list[int]


class Red(TypedDict, total=False):
    """Random early detection: a queue drops or marks packets before it is full.

    Lengths in packets, on average with `weight` for each packet. At `max` the gaps between
    chosen packets are from one to 1 / `probability` packets.
    """

    min: Required[int]
    max: Required[int]
    probability: str | float
    weight: float


class Codel(TypedDict, total=False):
    """CoDel (RFC 8289); with several queues, over which flows are spread, FQ-CoDel (RFC 8290)."""

    target: str
    interval: str
    flows: int
    quantum: int


class Policer(TypedDict):
    """A token bucket that drops packets beyond its rate."""

    rate: str
    burst: str


class Middlebox(TypedDict, total=False):
    """Changes or drops packets in front of a link.

    It clears their ECN field, drops those that would be fragmented, or those with chunks or
    parameters that RFC 9260 does not define.
    """

    clear_ecn: bool
    drop_fragments: bool
    drop_extensions: bool


NatBehavior: TypeAlias = Literal[
    "endpoint-independent", "address-dependent", "address-and-port-dependent"
]


class Nat(TypedDict, total=False):
    """A NAT for UDP at the sender's end of a path, or at the first end of a link (RFC 4787)."""

    timeout: str
    mapping: NatBehavior
    filtering: NatBehavior
    inbound_refresh: bool
    address: str


class Reordering(TypedDict):
    """Some packets take longer, by a time uniform from 0 to `delay`."""

    probability: str
    delay: str


Loss: TypeAlias = str | float | GilbertElliott | LossScript


class Link(TypedDict, total=False):
    """Parameters of a link, or those that differ in one direction of it.

    `rate` as "10 Mbit/s", or `trace` as the milliseconds of a recording, `delay` one way as
    "45 ms", `queue` as "50 packets", "64 KiB" or "unlimited", `mtu` in bytes with the IP header,
    `loss` as "3 %" or a model.
    """

    rate: str
    trace: list[int]
    delay: str
    queue: str
    mtu: str
    mark_at: int
    red: Red
    codel: Codel
    policer: Policer
    middlebox: Middlebox
    loss: Loss
    reorder: Reordering
    duplicate: str | float
    corrupt: str | float


class Load(TypedDict, total=False):
    """A mean load: a share of the link's rate ("80 %"), or a rate instead ("8 Mbit/s")."""

    load: str | float
    rate: str


class CrossTraffic(Load, total=False):
    """Background traffic over the middle link of a path with edges, in each direction.

    It comes from `nodes` single-homed nodes at each end with `sources` on/off sources each, whose
    bursts and pauses have Pareto distributions; a node's sources use the `packet_sizes` in turn.
    """

    forward: Load
    back: Load
    nodes: int
    sources: int
    packet_sizes: list[str]
    shape: float
    on: str
    off: str
    delay: str


class Path(Link, total=False):
    """`[[path]]`: a two-way link of its own between the two hosts."""

    name: str
    addresses: list[str]
    forward: Link
    back: Link
    edge: Link
    shares: str
    cross_traffic: CrossTraffic
    nat: Nat


class Node(TypedDict, total=False):
    """`[[node]]`: a host (with addresses) or a router (without) of a general graph."""

    name: str
    addresses: list[str]


class LinkEntry(Link, total=False):
    """`[[link]]`: a two-way link of a general graph."""

    between: list[str]
    name: str
    forward: Link
    back: Link
    nat: Nat


#: `[[traffic]]`: sources of background packets from one node to another.
Traffic = TypedDict(
    "Traffic",
    {
        "name": str,
        "from": str,
        "to": str,
        "kind": Literal["pareto", "constant", "tcp"],
        "rate": str,
        "packet_size": str,
        "sources": int,
        "start": str,
        "shape": float,
        "on": str,
        "off": str,
        "congestion": Literal["cubic", "newreno"],
        "window": str,
    },
    total=False,
)


class Transport(Parameters, total=False):
    """`[transport]`: parameters of both sides, and of one side where they differ."""

    profile: str
    encapsulation: Literal["ip", "udp"]
    sender: Parameters
    receiver: Parameters


class Policy(PolicyNames, total=False):
    """`[policy]`: of both sides, and of one side where they differ."""

    sender: PolicyNames
    receiver: PolicyNames


class Workload(TypedDict, total=False):
    """`[workload]`: the data that the applications send, and how they read it."""

    kind: Literal["bulk", "periodic", "request-reply", "application"]
    direction: Direction
    size: str
    messages: int
    message_size: str
    reply_size: str
    interval: str
    application: str
    streams: int
    unordered: str | float
    delivery: Literal["standard", "earliest", "redundant"]
    lifetime: str
    retransmissions: int
    priorities: int
    unreliable: str | float
    start: str
    striped: bool
    read_rate: str
    reset_every: int
    reset: str


#: `[[association]]`: one of several associations ("from" is the host that opens it).
Association = TypedDict(
    "Association",
    {
        "name": str,
        "from": str,
        "to": str,
        "port": int,
        "paths": list[str | int],
        "workload": Workload,
        "transport": Transport,
        "policy": Policy,
    },
    total=False,
)

#: `[[fault]]`: a change of a link at a time, permanent or temporary.
Fault = TypedDict(
    "Fault",
    {
        "at": str,
        "for": str,
        "path": str | int,
        "link": str,
        "direction": Direction,
        "kind": Literal["down", "up", "rate", "delay", "loss", "mtu", "nat-reset"],
        "rate": str,
        "delay": str,
        "loss": Loss,
        "mtu": str,
        "address": str,
    },
    total=False,
)

#: `[[address]]`: an address that a host gets or loses at a time, permanently or temporarily.
Address = TypedDict(
    "Address",
    {
        "at": str,
        "for": str,
        "node": str,
        "kind": Literal["comes", "goes"],
        "notice_delay": str,
    },
    total=False,
)


class Run(TypedDict, total=False):
    """`[run]`: the limits of the run, and the checks during it."""

    limit: str
    max_events: int
    check_every: str
    check_content: bool
    check_checksums: bool
    blackout: str


class Series(TypedDict, total=False):
    """`[series]`: samples of every path's variables over time; at every change without interval."""

    interval: str


class Emulator(TypedDict, total=False):
    """`[emulator]`: addresses and ports of the paths between real sockets."""

    senders: list[str]
    receivers: list[str]
    front_port: int
    back_port: int
    receiver_port: int
