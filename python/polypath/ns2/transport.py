"""The protocol of a scenario as variables and classes of ns-2's agents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from polypath._core import quantity
from polypath.ns2.network import refuse
from polypath.parameters import NS2_ONLY, NS2_VARIABLES

#: The profile that follows Debian's release of the module.
PROFILE = "ns2-2.35"

#: Keys without a counterpart in the module, with the value that matches its behaviour.
_ONLY = {"encapsulation": "ip", **NS2_ONLY}

#: A threshold that no error count reaches.
_NEVER = 1_000_000

#: rtxToAlt_ of each retransmission policy.
_RTX_TO_ALT = {"same": 0, "alternate": 1, "hybrid": 2}
#: dormantAction_ of each failover policy; "standard" is the default of all other profiles.
_DORMANT_ACTION = {
    "standard": 0,
    "dormant-hop": 0,
    "dormant-primary": 1,
    "dormant-last-dest": 2,
    "permanent": 0,
    # Only CMT's agent has it, as useCmtPF_.
    "cmt-potentially-failed": 0,
}
_AGENTS = {
    # loss, rtt_sampling, probing
    ("standard", "karn", "idle"): "Agent/SCTP",
    ("standard", "karn", "after-rto"): "Agent/SCTP/HbAfterRto",
    ("standard", "timestamps", "idle"): "Agent/SCTP/Timestamp",
    ("multiple-fast-retransmit", "karn", "idle"): "Agent/SCTP/MultipleFastRtx",
    ("multiple-fast-retransmit", "karn", "after-rto"): "Agent/SCTP/MfrHbAfterRto",
    ("multiple-fast-retransmit", "timestamps", "idle"): "Agent/SCTP/MfrTimestamp",
}
#: Policies that match ns-2's fixed rules.
_STANDARD = {
    "congestion": "rfc9260",
    "cwnd_update": "standard",
    "scheduler": "primary",
    "stream_scheduler": "first-come",
    "ack": "delayed",
}
#: Agent for concurrent multipath transfer.
_CMT_AGENT = "Agent/SCTP/CMT"
#: eCmtRtxPolicy_ of the retransmission policy that uses an oracle.
LOSS_RATE = 3
_CMT_RTX_POLICY = {"asap": 0, "same": 1, "ssthresh": 2, "loss-rate": LOSS_RATE, "cwnd": 4}
#: Potentially failed paths: the module has them with these retransmission policies only.
_CMT_PF, _CMT_PF_POLICIES = "cmt-potentially-failed", ("cwnd", "ssthresh")
_CMT_SWITCHES = {
    "loss": ("useCmtReordering_", "split-fast-retransmit", "standard"),
    "cwnd_update": ("useCmtCwnd_", "cuc-v2", "standard"),
    "ack": ("useCmtDelAck_", "delayed-cmt", "delayed"),
}


def check_given(transport: Mapping[str, Any]) -> None:
    """Rejects parameters that ns-2 lacks; parameters that a profile sets are not checked."""
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
        if name in _ONLY and value != _ONLY[name]:
            raise refuse(at, json.dumps(value), json.dumps(_ONLY[name]))


def agent_variables(parameters: Mapping[str, Any], side: str) -> dict[str, float]:
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
    mtu = quantity(parameters["path_mtu"])
    if mtu % 4:
        # The module's buffer has no room for the padding of a full chunk.
        raise refuse(f"{key}path_mtu", f'"{parameters["path_mtu"]}"', "a multiple of 4 B")
    ssthresh = parameters["initial_ssthresh"]
    window = parameters["receive_buffer"]
    values = {
        "path_mtu": mtu,
        "receive_buffer": quantity(window),
        "initial_ssthresh": quantity(window if ssthresh == "off" else ssthresh),
        "rto_initial": seconds("rto_initial"),
        "rto_min": seconds("rto_min"),
        "rto_max": seconds("rto_max"),
        "fast_retransmit_reports": parameters["fast_retransmit_reports"],
        "path_max_retrans": parameters["path_max_retrans"],
        "association_max_retrans": parameters["association_max_retrans"],
        "max_init_retransmits": parameters["max_init_retransmits"],
        "sack_every": int(every == 2),
        "sack_delay": seconds("sack_delay"),
        "max_burst": 1,
        "heartbeat_interval": interval,
    }
    variables = {NS2_VARIABLES[name]: value for name, value in values.items()}
    return {**variables, "numOutStreams_": 1}


def policies(effective: Mapping[str, str], given: Mapping[str, Any]) -> tuple[str, dict[str, int]]:
    """The class of the agents, and the variables that select the policies."""
    for side in ("sender", "receiver"):
        if given.get(side):
            raise refuse(f"policy.{side}", json.dumps(given[side]), "the same for both sides")
    if effective["scheduler"] == "concurrent":
        return _CMT_AGENT, _concurrent(effective)
    if effective.get("failover") == _CMT_PF:
        raise refuse("policy.failover", f'"{_CMT_PF}"', 'others; or scheduler "concurrent"')
    for key, known in _STANDARD.items():
        if key in given and given[key] not in (known, "ns2"):
            raise refuse(f"policy.{key}", f'"{given[key]}"', f'"{known}" or "ns2"')
    retransmission = effective["retransmission"]
    if retransmission not in _RTX_TO_ALT:
        raise refuse("policy.retransmission", f'"{retransmission}"', ", ".join(_RTX_TO_ALT))
    decisions = {"loss": "standard", "rtt_sampling": "karn", "probing": "idle"}
    loss, sampling, probing = (
        _plain(effective.get(key, default), default) for key, default in decisions.items()
    )
    agent = _AGENTS.get((loss, sampling, probing))
    if agent is None:
        together = "; ".join(" with ".join(combination) for combination in _AGENTS)
        raise refuse(
            "policy",
            " with ".join((loss, sampling, probing)),
            f"loss, rtt_sampling, probing as {together}",
        )
    return agent, {"rtxToAlt_": _RTX_TO_ALT[retransmission]}


def _concurrent(effective: Mapping[str, str]) -> dict[str, int]:
    """The variables of concurrent multipath transfer."""
    retransmission = effective["retransmission"]
    if retransmission not in _CMT_RTX_POLICY:
        allowed = ", ".join(_CMT_RTX_POLICY) + ' with scheduler "concurrent"'
        raise refuse("policy.retransmission", f'"{retransmission}"', allowed)
    failed = effective.get("failover") == _CMT_PF
    if failed and retransmission not in _CMT_PF_POLICIES:
        allowed = " or ".join(f'"{one}"' for one in _CMT_PF_POLICIES)
        at = f'{allowed} with failover "{_CMT_PF}"'
        raise refuse("policy.retransmission", f'"{retransmission}"', at)
    variables = {"eCmtRtxPolicy_": _CMT_RTX_POLICY[retransmission], "useCmtPF_": int(failed)}
    for key, (variable, on, off) in _CMT_SWITCHES.items():
        answer = _plain(effective[key], off)
        if answer not in (on, off):
            raise refuse(f"policy.{key}", f'"{answer}"', f'"{on}" or "{off}"')
        variables[variable] = int(answer == on)
    for key, known in {"congestion": "rfc9260", "rtt_sampling": "karn", "probing": "idle"}.items():
        if _plain(effective[key], known) != known:
            allowed = f'"{known}" with scheduler "concurrent"'
            raise refuse(f"policy.{key}", f'"{effective[key]}"', allowed)
    return variables


def tie_seed(agent: str, parameters: Mapping[str, Any]) -> int | None:
    """Seed of the generator that breaks ties; None for agents other than CMT's, which have none."""
    seed = parameters["tie_seed"]
    return None if agent != _CMT_AGENT or seed == "off" else int(seed)


def failover(policy: Mapping[str, str], parameters: Mapping[str, Any]) -> dict[str, int]:
    """The variables of the dormant state and of permanent failovers."""
    answer = policy["failover"]
    if answer not in _DORMANT_ACTION:
        raise refuse("policy.failover", f'"{answer}"', ", ".join(_DORMANT_ACTION))
    threshold = parameters["change_primary_threshold"]
    never = answer != "permanent" or threshold == "off"
    return {
        "dormantAction_": _DORMANT_ACTION[answer],
        # The module's default -1 acts as 0: it compares signed with unsigned.
        NS2_VARIABLES["change_primary_threshold"]: _NEVER if never else threshold,
    }


def _plain(answer: str, default: str) -> str:
    """The policy without the prefix "ns2-", which marks ns-2's variant: ns-2 has no other."""
    return default if answer == "ns2" else answer.removeprefix("ns2-")
