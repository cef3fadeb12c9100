"""Random transfers with exact losses for the differential test: the same seed, the same script."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from polypath.ns2.transport import PROFILE
from polypath.ns2.worlds import wide_mtu, wide_path, wide_transport, with_outage
from polypath.scenario import Scenario
from polypath.schema import Fault, Path, Transport

#: Packets on a link before the first DATA: INIT, COOKIE ECHO and HEARTBEAT on the primary path (and
#: their answers), a HEARTBEAT on any other.
_OPENING = (3, 1)

_EXTENSIONS: Mapping[str, Mapping[str, str]] = {
    "none": {},
    "har": {"probing": "after-rto"},
    "ts": {"rtt_sampling": "timestamps"},
    "mfr": {"loss": "multiple-fast-retransmit"},
    "mfr-har": {"loss": "multiple-fast-retransmit", "probing": "after-rto"},
    "mfr-ts": {"loss": "multiple-fast-retransmit", "rtt_sampling": "timestamps"},
}

#: Retransmission policy and extension by the name of their combination, such as "same" or
#: "alternate+mfr-har".
COMBINATIONS: Mapping[str, Mapping[str, str]] = {
    policy + ("" if extension == "none" else f"+{extension}"): {"retransmission": policy, **more}
    for policy in ("same", "alternate", "hybrid")
    for extension, more in _EXTENSIONS.items()
    # A heartbeat after a timeout probes the path from which the retransmission moves away.
    if policy != "same" or "probing" not in more
}

#: Concurrent multipath transfer with each of its retransmission policies.
_CMT: Mapping[str, str] = {
    "scheduler": "concurrent",
    "loss": "split-fast-retransmit",
    "cwnd_update": "cuc-v2",
    "ack": "delayed-cmt",
}
CONCURRENT: Mapping[str, Mapping[str, str]] = {
    f"cmt-{policy}": {**_CMT, "retransmission": policy}
    for policy in ("same", "asap", "cwnd", "ssthresh", "loss-rate")
} | {
    f"cmt-pf-{policy}": {**_CMT, "retransmission": policy, "failover": "cmt-potentially-failed"}
    for policy in ("cwnd", "ssthresh")
}

#: Values of `policy.failover` that ns-2 has.
FAILOVERS = (
    "dormant-hop",
    "dormant-primary",
    "dormant-last-dest",
    "permanent",
    # Only with the combinations "cmt-pf-...", which set it anyway.
    "cmt-potentially-failed",
)


def scenario(
    seed: int,
    *,
    combination: str = "same",
    paths: int = 1,
    profile: str = PROFILE,
    failover: str | None = None,
    wide: bool = False,
) -> Scenario:
    """A transfer of 40 to 400 chunks with its own losses of DATA and SACKs.

    With ``failover`` the error thresholds are low and each path loses a run of packets, which an
    alternate path begins with one of its first three: paths fail, and the dormant state is reached.
    With ``wide`` rates, delays, queues, windows, the MTU, RTO.Min and delayed SACKs are drawn too,
    and a path may be cut (:mod:`polypath.ns2.worlds`).

    Raises:
        ScenarioError: The profile or a policy is not known.
    """
    dice = random.Random(seed)  # noqa: S311 a script, not a secret
    messages = dice.randint(40, 400)
    policy = dict({**COMBINATIONS, **CONCURRENT}[combination])
    timestamps = policy.get("rtt_sampling") == "timestamps"
    draw = wide_path if wide else _path
    network = [_lossy(dice, draw(dice), number, messages) for number in range(paths)]
    transport: Transport = {
        "profile": profile,
        "receive_buffer": dice.choice(["64 KiB", "64 KiB", "1 MB"]),
        # The two simulators draw different heartbeat jitter: without heartbeats nothing is random.
        "heartbeat_interval": "3600 s",
    }
    message = 1440 if timestamps else 1452
    fault: list[Fault] = []
    if wide:
        transport.update(wide_transport(dice, dac=policy.get("ack") == "delayed-cmt"))
        mtu = wide_mtu(dice)
        transport["path_mtu"] = f"{mtu} B"
        message -= 1500 - mtu
        if failover is None:
            fault = with_outage(dice, network)
    if policy.get("scheduler") == "concurrent":
        # The module's RTX-SAME loops forever once all paths are inactive.
        transport["path_max_retrans"] = transport["association_max_retrans"] = 1000
        # Each script breaks ties by another sequence, which is the same in both simulators.
        transport["tie_seed"] = seed + 1
        if policy["retransmission"] == "loss-rate":
            _loss_rates(dice, network)
    if failover is not None:
        policy["failover"] = failover
        transport["path_max_retrans"] = dice.choice([0, 0, 1, 2])
        transport["association_max_retrans"] = 100
        if failover == "permanent":
            transport["change_primary_threshold"] = dice.choice([0, 1, 2, 4])
        for number, path in enumerate(network):
            _outage(dice, path, _OPENING[min(number, 1)], messages if number == 0 else 3)
    return Scenario(
        name=f"script {seed}",
        path=network,
        transport=transport,
        policy=policy,  # type: ignore[arg-type]  # keys of the table above
        workload={
            "kind": "bulk",
            "messages": messages,
            "message_size": f"{message} B",
        },
        fault=fault,
        run={"limit": "4000 s"},
    )


def _path(dice: random.Random) -> Path:
    # Round numbers would make timers expire at the very instant when a packet arrives.
    rate = dice.choice([1_000, 10_000, 10_000, 100_000]) + dice.randint(1, 997)
    delay = dice.choice([5_000, 45_000, 45_000, 170_000]) + dice.randint(1, 4999)
    path: Path = {"rate": f"{rate} kbit/s", "delay": f"{delay} us", "queue": "1000 packets"}
    if dice.random() < 0.25:
        path["edge"] = {"rate": "100 Mbit/s", "delay": "10 ms", "queue": "1000 packets"}
    return path


def _lossy(dice: random.Random, path: Path, number: int, messages: int) -> Path:
    # Retransmissions count as packets too; an alternate path carries few.
    last = messages * 3 // 2 if number == 0 else max(messages // 3, 20)
    opening = _OPENING[min(number, 1)]
    data = _losses(dice, last, dice.choice([0.0, 0.005, 0.01, 0.03, 0.05, 0.08, 0.15]))
    sacks = _losses(dice, last, dice.choice([0.0, 0.0, 0.03, 0.1, 0.3]))
    if data:
        path["forward"] = {"loss": {"packets": [opening + n for n in data]}}
    if sacks:
        path["back"] = {"loss": {"packets": [opening + n for n in sacks]}}
    return path


def _loss_rates(dice: random.Random, network: list[Path]) -> None:
    """Sets loss rates for the oracle, often equal ones, of at most two packets per billion."""
    for path in network:
        rate = dice.choice([0, 0, 1, 2])
        path["edge"] = {
            "rate": "100 Mbit/s",
            "delay": "10 ms",
            "queue": "1000 packets",
            "loss": f"{rate}e-9",
        }


def _outage(dice: random.Random, path: Path, opening: int, latest: int) -> None:
    """Adds a run of lost packets that begins with one of the first ``latest``."""
    loss: Any = path.get("forward", {}).get("loss", {"packets": []})
    start = opening + dice.randint(1, latest)
    stretch = range(start, start + dice.randint(5, 40))
    path["forward"] = {"loss": {"packets": sorted({*loss["packets"], *stretch})}}


def _losses(dice: random.Random, last: int, density: float) -> list[int]:
    """Numbers of the lost packets, counted from 1: single ones, and runs of up to twelve."""
    lost = {n for n in range(1, last + 1) if dice.random() < density}
    for _ in range(dice.choice([0, 0, 1, 2])):
        start = dice.randint(1, last)
        lost |= set(range(start, start + dice.randint(2, 12)))
    return sorted(lost)
