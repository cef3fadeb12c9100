"""Transfers under the retransmission policies of Caro et al. 2006: in the simulator, and between real sockets
through the emulator. One description drives both, and with the same seed both lose the same packets of a
link.
"""

import dataclasses
import json
import math
import re
import statistics
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.program import Process, Processes, binary

# The paper's names, and the policies' names.
POLICIES = {"AllRtxSame": "same", "AllRtxAlt": "alternate", "FrSameRtoAlt": "hybrid"}
EXTENSIONS = {
    "HAR": ("probing", "after-rto"),
    "TS": ("rtt_sampling", "timestamps"),
    "MFR": ("loss", "multiple-fast-retransmit"),
}


@dataclasses.dataclass(frozen=True)
class Point:
    """A policy with its extensions ("AllRtxAlt+HAR"), and the paths' loss, percent each way."""

    policy: str
    primary: float
    alternate: float

    def answers(self) -> dict[str, str]:
        """Values for [policy] and --policy."""
        name, *extensions = self.policy.split("+")
        return {"retransmission": POLICIES[name]} | dict(EXTENSIONS[e] for e in extensions)

    def constants(self) -> dict[str, str]:
        """Values for [transport] in addition to the profile, and for --config. The paper's runs of AllRtxAlt
        and FrSameRtoAlt without timestamps confirmed every path before the first DATA."""
        waits = not self.policy.startswith("AllRtxSame") and "TS" not in self.policy
        return {"receive_buffer": "64KiB", "path_confirmation": "before-data" if waits else "off"}

    def __str__(self) -> str:
        return f"{self.policy}, {self.primary:g} % / {self.alternate:g} %"


@dataclasses.dataclass(frozen=True)
class Transfer:
    """A file of `kibibytes` KiB; `seed` determines its losses."""

    point: Point
    seed: int
    kibibytes: int

    def scenario(self, number: int = 0) -> str:
        """The scenario for simulator and emulator; addresses follow from the number."""
        def table(values):
            return "".join(f'{key} = "{value}"\n' for key, value in values.items())
        point = self.point
        return (
            f'schema = 1\nname = "{point}"\nseed = {self.seed}\ntopology = "two-paths"\n'
            f'[[path]]\nname = "primary"\nloss = "{point.primary:g} %"\n'
            f'[[path]]\nname = "alternate"\nloss = "{point.alternate:g} %"\n'
            f'[transport]\nprofile = "paper-2006"\nencapsulation = "udp"\n{table(point.constants())}'
            f"[policy]\n{table(point.answers())}"
            # The message size of `polypath send`.
            f'[workload]\nkind = "bulk"\nsize = "{self.kibibytes} KiB"\nmessage_size = "64 KiB"\n'
            "[run]\ncheck_content = false\n"
            f"[emulator]\nsenders = {json.dumps(addresses(number, 1))}\n"
            f"receivers = {json.dumps(addresses(number, 2))}\n")

    def tuning(self) -> list[str]:
        """The same as options for `polypath send` and `recv`."""
        words = ["--profile", "paper-2006"]
        for key, value in self.point.constants().items():
            words += ["--config", f"{key}={value}"]
        for key, value in self.point.answers().items():
            words += ["--policy", f"{key}={value}"]
        return words


def addresses(number: int, host: int) -> list[str]:
    """A host's loopback addresses, a network for each path; no two transfers share one."""
    last = host + 2 * (number // 250)
    return [f"127.{101 + path}.{1 + number % 250}.{last}" for path in (0, 1)]


@dataclasses.dataclass(frozen=True)
class Took:
    """A transfer between sockets. Seconds from the file's name to its end, as the receiver measures it, or
    until it was ended."""

    seconds: float
    # Mean and maximum delay of datagrams in the emulator beyond their schedule, in milliseconds.
    late_mean: float
    late_most: float


def simulate(transfers: list[Transfer], limit: float, folder: Path) -> list[float]:
    """Seconds from the first DATA until everything is delivered, at most the limit."""
    def one(numbered: tuple[int, Transfer]) -> float:
        file = folder / f"sim-{numbered[0]}.toml"
        file.write_text(numbered[1].scenario())
        done = subprocess.run([binary(), "sim", str(file), "--json"], capture_output=True, text=True,
                              timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        seconds = json.loads(done.stdout)["associations"][0]["forward"]["time_from_first_data"]
        return min(limit, seconds)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, enumerate(transfers)))


class Sockets:
    """Transfers between real processes, up to `at_once` at a time; all processes are stopped at the end."""

    def __init__(self, folder: Path, limit: float, at_once: int):
        self.folder, self.limit, self.at_once = folder, limit, at_once
        self.failed = threading.Event()

    def run(self, transfers: list[Transfer]) -> list[Took]:
        """Run all of them; the first failure ends the others."""
        with ThreadPoolExecutor(self.at_once) as pool:
            return list(pool.map(self._one, range(len(transfers)), transfers))

    def _one(self, number: int, transfer: Transfer) -> Took:
        folder = self.folder / str(number)
        out = folder / "received"
        out.mkdir(parents=True)
        try:
            assert not self.failed.is_set(), "another transfer has failed"
            (folder / "scenario.toml").write_text(transfer.scenario(number))
            (folder / "file").write_bytes(bytes(transfer.kibibytes << 10))
            with Processes(folder) as processes:
                start = processes.polypath
                emulator = start("emulate", folder / "scenario.toml", stdin=subprocess.PIPE).said("ready")
                first, second = addresses(number, 2)
                receiver = start("recv", "--bind", f"{first},{second}", "-o", out, "--json",
                                 "--timeout", 120, "--plain", *transfer.tuning()).said("waiting on ")
                sender = start("send", folder / "file", f"{first}:9900", "--via", f"{second}:9900",
                               "--bind", ",".join(addresses(number, 1)), "--json", "--quiet",
                               "--timeout", 60, "--plain", *transfer.tuning())
                seconds = self._watch(transfer, receiver, sender, out)
                emulator.say("report")
                report = re.search(r"late by ([\d.]+) ms on average, at most ([\d.]+) ms",
                                   emulator.said(" datagrams\n").out)
                assert report, emulator.out
                return Took(seconds, float(report[1]), float(report[2]))
        except BaseException:
            self.failed.set()
            raise

    def _watch(self, transfer: Transfer, receiver: Process, sender: Process, out: Path) -> float:
        """Wait for the end and return the duration; the limit counts from when the file has its name."""
        began = None
        patience = time.monotonic() + 120
        while receiver.popen.poll() is None:
            now = time.monotonic()
            if began is None and any(out.iterdir()):
                began = now
            if began and now > began + self.limit:
                return self.limit
            assert began or now < patience, f"{transfer} does not begin: {receiver.err}{sender.err}"
            assert not self.failed.is_set(), "another transfer has failed"
            time.sleep(0.05)
        ended = receiver.wait()
        assert ended.json["bytes"] == transfer.kibibytes << 10
        return min(self.limit, ended.json["seconds"])


@dataclasses.dataclass(frozen=True)
class Difference:
    """Mean of the paired differences of two samples, seconds, and the mean's standard error."""

    mean: float
    error: float

    def clear(self) -> float:
        """The number of standard errors by which the mean is below zero."""
        return -self.mean / self.error if self.error else math.inf


def difference(first: list[float], second: list[float], runs: int | None = None) -> Difference:
    """The first sample minus the second; the error is that of `runs` runs, or of the existing ones."""
    pairs = [a - b for a, b in zip(first, second, strict=True)]
    return Difference(statistics.mean(pairs), statistics.stdev(pairs) / math.sqrt(runs or len(pairs)))
