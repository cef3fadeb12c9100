"""The Tcl that ns-2 runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from polypath.ns2.cross_traffic import PROCEDURE, nodes_and_sources, random_seed
from polypath.ns2.mapping import Setup
from polypath.ns2.network import Link, Path
from polypath.ns2.transport import LOSS_RATE


def tcl(
    setup: Setup, variables: str, drops: Mapping[str, Sequence[int]], *, series: bool = False
) -> str:
    """The script of a run.

    Args:
        setup: The converted scenario.
        variables: File for the sender's variables; packets are traced to stdout.
        drops: Numbers of the packets that each link drops by its script, counted from 1.
        series: Whether all variables are traced, or only errors and timeouts.
    """
    lines = [
        f"# {setup.scenario}: written by polypath".replace("\n", " "),
        "Trace set show_sctphdr_ 1",
        "set ns [new Simulator]",
    ]
    if setup.tie_seed is not None:
        lines.append(f"$defaultRNG seed {setup.tie_seed}")
    lines += _nodes(setup)
    for path in setup.paths:
        for forward, back in zip(path.forward, reversed(path.back), strict=True):
            for link in (forward, back):
                ends = [f"$node({end})" for end in link.ends]
                lines += link.tcl(*ends)
                lines.append(f"$ns trace-queue {' '.join(ends)} stdout")
    for number, link in enumerate(setup.links):
        lines += _loss(setup, number, link, drops.get(link.name, ()))
    if setup.cross_traffic:
        lines.append(PROCEDURE)
    for traffic in setup.cross_traffic:
        lines += nodes_and_sources(traffic, setup.seed)
    lines += _agents(setup)
    lines += [
        f"set variables [open {{{variables}}} w]",
        "fconfigure $variables -buffering line",
        "$sender set trace_all_ 1",
    ]
    # These come before `connect`, after which the agent has no target.
    traced = ("cwnd_", "rto_", "errorCount_") if series else ("timeoutCount_", "errorCount_")
    lines += [f"$sender trace {name}" for name in traced]
    lines += ["$sender attach $variables", "$ns connect $sender $receiver"]
    if len(setup.paths) > 1:
        lines += [
            f"$sender set-primary-destination $node({setup.paths[0].receiver})",
            f"$receiver set-primary-destination $node({setup.paths[0].sender})",
        ]
    lines += [_loss_rate(path, path.loss_rate()) for path in setup.paths if _asks_oracle(setup)]
    lines += _changes(setup)
    lines += _application(setup)
    lines += [f"$ns at {setup.limit!r} {{flush stdout; exit 0}}", "$ns run", ""]
    return "\n".join(lines)


def _nodes(setup: Setup) -> list[str]:
    """Interfaces and routers in the order of their numbers, then the hosts' core nodes."""
    count = 4 * len(setup.paths)
    lines = [f"for {{set i 0}} {{$i < {count}}} {{incr i}} {{set node($i) [$ns node]}}"]
    if len(setup.paths) > 1:
        lines += ["set sender_core [$ns node]", "set receiver_core [$ns node]"]
        for path in setup.paths:
            lines += [
                f"$ns multihome-add-interface $sender_core $node({path.sender})",
                f"$ns multihome-add-interface $receiver_core $node({path.receiver})",
            ]
    return lines


def _loss(setup: Setup, number: int, link: Link, drops: Sequence[int]) -> list[str]:
    ends = f"$node({link.ends[0]}) $node({link.ends[1]})"
    if drops:
        # The list model counts packets from 0.
        numbers = " ".join(str(packet - 1) for packet in drops)
        return [
            f"set loss({number}) [new ErrorModel/List]",
            f"$loss({number}) unit pkt",
            f"$loss({number}) droplist {{{numbers}}}",
            f"$ns lossmodel $loss({number}) {ends}",
        ]
    changes = any(
        change.kind == "loss" and link in (path.forward[path.middle], path.back[path.middle])
        for change in setup.changes
        for path in [setup.paths[change.path]]
    )
    if link.loss == 0 and not changes:
        return []
    return [
        f"set dice({number}) [new RNG]",
        f"$dice({number}) seed {random_seed(f'{setup.seed}/{link.name}')}",
        f"set uniform({number}) [new RandomVariable/Uniform]",
        f"$uniform({number}) use-rng $dice({number})",
        f"set loss({number}) [new ErrorModel]",
        f"$loss({number}) unit pkt",
        f"$loss({number}) set rate_ {link.loss!r}",
        f"$loss({number}) ranvar $uniform({number})",
        f"$ns lossmodel $loss({number}) {ends}",
    ]


def _asks_oracle(setup: Setup) -> bool:
    """Whether the sender needs the paths' loss rates, as RTX-LOSSRATE does."""
    return setup.sender.get("eCmtRtxPolicy_") == LOSS_RATE


def _loss_rate(path: Path, loss: float) -> str:
    return f"$sender set-destination-lossrate $node({path.receiver}) {loss!r}"


def _agents(setup: Setup) -> list[str]:
    lines = []
    for side, variables in (("sender", setup.sender), ("receiver", setup.receiver)):
        lines.append(f"set {side} [new {setup.agent}]")
        lines += [f"${side} set {name} {value:.12g}" for name, value in variables.items()]
        if len(setup.paths) > 1:
            lines.append(f"$ns multihome-attach-agent ${side}_core ${side}")
        else:
            node = getattr(setup.paths[0], side)
            lines.append(f"$ns attach-agent $node({node}) ${side}")
    return lines


def _changes(setup: Setup) -> list[str]:
    lines = []
    numbers = {link.name: number for number, link in enumerate(setup.links)}
    for change in setup.changes:
        path = setup.paths[change.path]
        links = [path.forward[path.middle], path.back[path.middle]]
        if change.kind != "loss":
            ends = " ".join(f"$node({node})" for node in links[0].ends)
            lines.append(f"$ns rtmodel-at {change.at!r} {change.kind} {ends}")
            continue
        for way, link in zip(("forward", "back"), links, strict=True):
            if change.direction in (way, "both"):
                set_rate = f"$loss({numbers[link.name]}) set rate_ {change.loss!r}"
                lines.append(f'$ns at {change.at!r} "{set_rate}"')
        if _asks_oracle(setup) and change.direction in ("forward", "both"):
            told = _loss_rate(path, path.loss_rate(change.loss))
            lines.append(f'$ns at {change.at!r} "{told}"')
    return lines


def _application(setup: Setup) -> list[str]:
    lines = ["set ftp [new Application/FTP]", "$ftp attach-agent $sender"]
    if setup.interval:
        lines += [
            f'$ns at {setup.start + n * setup.interval!r} "$ftp send {size}"'
            for n, size in enumerate(setup.messages)
        ]
        return lines
    full = int(setup.sender["dataChunkSize_"]) - 16
    for size, same in groupby(setup.messages):
        count = len(list(same))
        if size == full:
            # The agent splits the data of one `send` into full chunks.
            lines.append(f'$ns at {setup.start!r} "$ftp send {count * size}"')
        else:
            loop = f"for {{set i 0}} {{$i < {count}}} {{incr i}} {{$ftp send {size}}}"
            lines.append(f"$ns at {setup.start!r} {{{loop}}}")
    return lines
