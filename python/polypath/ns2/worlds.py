"""Networks and constants of the wide scripts of the differential test.

They draw what the other scripts keep: rates of 0.25 to 63 Mbit/s, queues of 6 to 80 packets,
windows, the MTU, RTO.Min, a SACK for every packet, and a path that is cut for a while.
"""

from __future__ import annotations

import math
import random

from polypath.schema import Fault, Link, Path, Transport

_EDGE: Link = {"rate": "100 Mbit/s", "delay": "10 ms", "queue": "1000 packets"}
#: Bytes of IP packets.
_MTUS = (1500, 1500, 1500, 1400, 1280, 1004, 576)


def wide_path(dice: random.Random) -> Path:
    """A path of any rate, with a delay of 1 to 300 ms and a short queue."""
    # Round numbers would make timers expire at the very instant when a packet arrives.
    rate = _between(dice, 250, 63_000) * 1000 + dice.randint(1, 997)
    delay = _between(dice, 1_000, 300_000) + dice.randint(0, 997)
    queue = dice.randint(6, 80)
    path: Path = {"rate": f"{rate} bit/s", "delay": f"{delay} us", "queue": f"{queue} packets"}
    if dice.random() < 0.25:
        path["edge"] = _EDGE.copy()
    return path


def _opening(network: list[Path]) -> int:
    """Milliseconds until every path is confirmed: three round trips, with edges of 10 ms."""
    return max(6 * (int(path["delay"].split()[0]) // 1000 + 20) for path in network)


def _between(dice: random.Random, least: int, most: int) -> int:
    """A number whose logarithm is uniform."""
    return int(math.exp(dice.uniform(math.log(least), math.log(most))))


def wide_mtu(dice: random.Random) -> int:
    """Bytes of a full packet."""
    return dice.choice(_MTUS)


def wide_transport(dice: random.Random, *, dac: bool) -> Transport:
    """Constants of the transport; with `dac` SACKs are delayed, as Delayed Ack for CMT requires."""
    drawn: Transport = {
        "receive_buffer": f"{dice.choice([8_192, 20_000, 65_536, 65_536, 250_000, 1_000_000])} B",
        "send_buffer": "4 MB",
        "initial_ssthresh": f"{dice.choice([6_000, 20_000, 65_536, 65_536, 350_000])} B",
        # Different from SACK.Delay, and not a multiple of it.
        "rto_min": f"{dice.choice([1000, 1000, 1000, 347, 611, 1513])} ms",
        "sack_every": 2 if dac else dice.choice([2, 2, 1]),
    }
    return drawn


def with_outage(dice: random.Random, network: list[Path]) -> list[Fault]:
    """In every third script one path is cut for a while, between two routers.

    It loses nothing else: ns-2 does not count packets that are offered to a link that is down, and
    the numbers of later losses would differ. For the same reason the outage begins after the
    handshake and the HEARTBEATs that confirm the paths.
    """
    if dice.random() >= 1 / 3:
        return []
    number = dice.randrange(len(network))
    network[number]["edge"] = _EDGE.copy()
    network[number].pop("forward", None)
    network[number].pop("back", None)
    path = f"path{number}"
    begin = _opening(network) + dice.randint(200, 6_000) + dice.randint(1, 997) / 1000
    length = dice.randint(100, 9_000) + dice.randint(1, 997) / 1000
    return [
        {"at": f"{begin:.3f} ms", "path": path, "kind": "down"},
        {"at": f"{begin + length:.3f} ms", "path": path, "kind": "up"},
    ]
