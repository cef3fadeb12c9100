"""Measures the blackout of a transfer when the path in use is cut: in the simulator, between sockets through
the emulator, and between two network namespaces. One description drives all three.

The blackout is the time without new data at the receiver: the sum of all gaps of at least half of
RTO.Min between in-order data of the file. The simulator reports the gaps; between sockets they are measured in a
capture at the receiver, independently of the program.
"""

import contextlib
import dataclasses
import itertools
import json
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.arrivals import in_order
from support.namespaces import TwoHosts
from support.program import Process, binary, consent, tuning, wait_until

# The settings to compare: options for --policy and --config, in addition to the common constants.
SETTINGS = {
    "PMR 5": {"failover": "standard", "path_max_retrans": 5},
    "PMR 0": {"failover": "standard", "path_max_retrans": 0},
    "Fig. 13": {"failover": "two-phase", "path_max_retrans": 5},
    "RFC 7829": {"failover": "potentially-failed", "path_max_retrans": 5},
}
# In namespaces: `ip link set down` at the sender, whose sends then fail; both ends of the path drop
# everything; only the sender's end does, and replies would still arrive.
CUTS = ("link down", "silent", "one way")
# Measured in addition to the simulator.
DRIVERS = ("emulator", "namespaces")

RATE, QUEUE = 10_000_000, 150_000  # bit/s, bytes
SIZE = 1_000_000  # bytes; over one path 0.8 s
# Seconds of data before the cut, and the increment for each run, so that the cuts are at different moments
# between packets and acknowledgements.
CUT_AFTER, STEP = 0.3, 0.0037
FRONT, BACK, PORT = 9900, 9901, 9899
SENDERS, RECEIVERS = ("127.101.0.1", "127.102.0.1"), ("127.101.0.2", "127.102.0.2")
# Maximum number of transfers that send at the same time. Those in a blackout do not count.
BUSY = 3
# Seconds for each timeout of a blackout: tokio's timers have a resolution of milliseconds, and a process may
# wait to be scheduled.
RESOLUTION = 0.005
ATTEMPTS = 4


@dataclasses.dataclass(frozen=True)
class Constants:
    """Constants of both sides in seconds. The rest is RFC 9260's."""

    rto_min: float
    rto_initial: float
    sack_delay: float

    def table(self) -> dict[str, str]:
        # Slow start ends before the queue is full, and the file ends before congestion avoidance fills it:
        # only the cut loses packets.
        return {"rto_min": f"{self.rto_min * 1000:g}ms", "rto_initial": f"{self.rto_initial * 1000:g}ms",
                "sack_delay": f"{self.sack_delay * 1000:g}ms", "initial_ssthresh": "32KiB"}


# The papers' constants (ns-2's module), and shorter ones.
PAPERS, BRIEF = Constants(1, 3, 0.2), Constants(0.2, 0.6, 0.02)


@dataclasses.dataclass(frozen=True)
class Case:
    """A setting, a cut, and the time of the cut after the first data."""

    setting: str
    cut: str
    constants: Constants
    after: float

    def tuning(self) -> list[str]:
        """Options for `polypath send` and `recv`."""
        own = dict(SETTINGS[self.setting])
        return ["--profile", "rfc9260", "--policy", f"failover={own.pop('failover')}",
                *tuning(**self.constants.table(), **own)]

    def scenario(self, faults: bool) -> str:
        """The scenario for the simulator, and without the faults for the emulator."""
        own = dict(SETTINGS[self.setting])
        failover = own.pop("failover")
        constants = "".join(f"{key} = {json.dumps(value)}\n"
                            for key, value in (self.constants.table() | own).items())
        direction = "forward" if self.cut == "one way" else "both"
        fault = (f'[[fault]]\nat = "{self.after:.6f} s"\npath = "first"\nkind = "down"\n'
                 f'direction = "{direction}"\n') if faults else ""
        return (
            'schema = 1\nname = "blackout"\n'
            + "".join(f'[[path]]\nname = "{name}"\nrate = "{RATE} bit/s"\nqueue = "{QUEUE} B"\n'
                      for name in ("first", "second"))
            + f'[transport]\nprofile = "rfc9260"\nencapsulation = "udp"\n{constants}[policy]\nfailover = "{failover}"\n'
            # One message per packet, so that the gaps are those between packets.
            f'[workload]\nkind = "bulk"\nsize = "{SIZE} B"\nmessage_size = "1400 B"\n{fault}'
            f'[run]\nblackout = "{self.constants.rto_min / 2} s"\n'
            f"[emulator]\nsenders = {json.dumps(SENDERS)}\nreceivers = {json.dumps(RECEIVERS)}\n"
            f"front_port = {FRONT}\nback_port = {BACK}\nreceiver_port = {PORT}\n")

    def patience(self) -> float:
        """A timeout longer than the longest blackout: all the timeouts of PMR 5."""
        return 63 * self.constants.rto_min + 45


def resolution(setting: str) -> float:
    """Measurement resolution for a setting in seconds: PMR 5 waits for six consecutive timers, the others for
    one."""
    own = SETTINGS[setting]
    return RESOLUTION * (own["path_max_retrans"] + 1 if own["failover"] == "standard" else 1)


def cases(setting: str, cut: str, constants: Constants, numbers: Iterable[int]) -> list[Case]:
    """The runs with these numbers."""
    return [Case(setting, cut, constants, CUT_AFTER + STEP * number) for number in numbers]


def simulate(cases: list[Case], folder: Path) -> list[float]:
    """The blackouts in the simulator, seconds."""
    def one(numbered: tuple[int, Case]) -> float:
        file = folder / f"sim-{numbered[0]}.toml"
        file.write_text(numbered[1].scenario(faults=True))
        done = subprocess.run([binary(), "sim", str(file), "--json"], capture_output=True, text=True,
                              timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        (association,) = json.loads(done.stdout)["associations"]
        assert association["complete"]
        return sum(gap["length"] for gap in association["forward"]["blackouts"])
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, enumerate(cases)))


class Sockets:
    """Transfers between real processes, up to `at_once` at a time, each between its own two hosts."""

    def __init__(self, folder: Path, at_once: int):
        self.folder, self.at_once = folder, at_once
        self.free: queue.Queue[TwoHosts] = queue.Queue()
        self.busy = threading.Semaphore(BUSY)
        self.failed = threading.Event()
        # Number of repeated runs (NotInUse).
        self.repeated = 0

    def run(self, cases: list[tuple[str, Case]]) -> list[float]:
        """The blackouts of cases with their drivers, seconds. The first failure ends the others."""
        with contextlib.ExitStack() as made, ThreadPoolExecutor(self.at_once) as pool:
            for _ in range(min(self.at_once, len(cases))):
                self.free.put(made.enter_context(TwoHosts(f"{RATE}bit", QUEUE)))
            found = list(pool.map(self._one, cases))
            while not self.free.empty():
                self.free.get()
            return found

    def _one(self, what: tuple[str, Case]) -> float:
        for _ in range(ATTEMPTS):
            with contextlib.suppress(NotInUse):
                return self._attempt(*what)
            self.repeated += 1
        raise AssertionError(f"{what}: {ATTEMPTS} times the path that was cut was not in use any more")

    def _attempt(self, driver: str, case: Case) -> float:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        hosts = self.free.get()
        run = {"emulator": _Emulator, "namespaces": _Namespaces}[driver](hosts, case, folder)
        try:
            assert not self.failed.is_set(), "another transfer has failed"
            return run.blackout(self.busy)
        except NotInUse:
            raise
        except BaseException:
            self.failed.set()
            raise
        finally:
            run.stop()
            run.restore()
            self.free.put(hosts)
            shutil.rmtree(folder)


class NotInUse(Exception):
    """The path to cut was not in use. A timeout had moved the data to the other path before the cut (with
    RTO.Min 200 ms and PMR 0 a short delay of the sender suffices), or the cut took until all data had
    arrived."""


class _Run:
    """A transfer between real processes, measured by a capture at the receiver."""

    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    port: int
    # Interfaces that receive the packets.
    devices: tuple[str, ...]

    def __init__(self, hosts: TwoHosts, case: Case, folder: Path):
        self.hosts, self.case, self.folder = hosts, case, folder
        self.started: list[Process] = []

    def start(self, *words: object, inside: list[str], **kwargs) -> Process:
        process = Process([*inside, *map(str, words)], self.folder, len(self.started), **kwargs)
        self.started.append(process)
        return process

    def blackout(self, busy: threading.Semaphore) -> float:
        """The blackout of this run, seconds."""
        case, out = self.case, self.folder / "received"
        out.mkdir()
        (self.folder / "file").write_bytes(bytes(SIZE))
        with busy:
            self.prepare()
            # A filter before the interfaces applies to all of them.
            sniffer = self.start("dumpcap", "-q", "-f", f"udp dst port {PORT}",
                                 *(word for device in self.devices for word in ("-i", device)), "-w", "-",
                                 inside=self.receiver_inside())
            wait_until(lambda: sniffer.out_path.stat().st_size > 0, 15, "dumpcap does not start",
                       alive=sniffer.popen)
            receiver = self.start(
                binary(), "recv", "--bind", ",".join(self.receivers), "-o", out, "--json", "--plain",
                *consent("recv"), *case.tuning(),
                inside=self.receiver_inside()).said("waiting on ")
            first, *others = [f"{address}:{self.port}" for address in self.receivers]
            sender = self.start(
                binary(), "send", self.folder / "file", first, "--via", ",".join(others),
                "--bind", ",".join(self.senders), "--json", "--plain", *consent("send"), *case.tuning(),
                inside=self.hosts.a.inside)
            wait_until(lambda: any(out.iterdir()), 15, lambda: f"no file: {sender.err}", alive=sender.popen)
            time.sleep(case.after)
            cut_at = time.time()
            self.cut()
            # ip(8) waits for other changes of the network. Packets in flight may still arrive.
            over = receiver.popen.poll()
            assert over in (None, 0), receiver.err
            if over == 0 or sum(f.stat().st_size for f in out.iterdir()) > SIZE - QUEUE:
                raise NotInUse
            # Wait for packets in flight.
            time.sleep(0.1)
        ended = receiver.wait(case.patience()).json
        sender.wait(case.patience()).json
        # The capture is complete when dumpcap has ended.
        sniffer.popen.terminate()
        sniffer.popen.wait(10)
        arrivals = in_order(sniffer.out_path.read_bytes())
        if [one.address for one in arrivals if one.at < cut_at][-1] != self.receivers[0]:
            raise NotInUse
        # After the file, data waits for the receiver's disk and its answers, which may meet the same cut.
        gaps = [late.at - early.at for early, late in itertools.pairwise(arrivals) if early.total < SIZE]
        # The program's own measurement, every 20 ms if it is scheduled in time.
        assert 0.5 < ended["blackout_s"] / max(gaps) < 2, (case, sorted(gaps)[-4:], ended)
        return sum(gap for gap in gaps if gap >= case.constants.rto_min / 2)

    def stop(self) -> None:
        for process in reversed(self.started):
            process.stop()
            if process.popen.stdin:
                process.popen.stdin.close()

    def prepare(self) -> None:
        """Start processes that the receiver needs."""

    def receiver_inside(self) -> list[str]:
        raise NotImplementedError

    def cut(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        """Undo the cut, because the hosts are used again."""


class _Emulator(_Run):
    """A transfer over loopback, through `polypath emulate`."""

    senders, receivers, port, devices = SENDERS, RECEIVERS, FRONT, ("lo",)

    def prepare(self) -> None:
        file = self.folder / "scenario.toml"
        file.write_text(self.case.scenario(faults=False))
        self.emulator = self.start(binary(), "emulate", file, inside=self.hosts.a.inside,
                                   stdin=subprocess.PIPE).said("ready")

    def receiver_inside(self) -> list[str]:
        return self.hosts.a.inside

    def cut(self) -> None:
        self.emulator.say("down forward first" if self.case.cut == "one way" else "down first")


class _Namespaces(_Run):
    """A transfer between two hosts."""

    port, devices = PORT, ("vb1", "vb2")

    def __init__(self, hosts: TwoHosts, case: Case, folder: Path):
        super().__init__(hosts, case, folder)
        self.senders = tuple(hosts.address("a", path) for path in (1, 2))
        self.receivers = tuple(hosts.address("b", path) for path in (1, 2))

    def receiver_inside(self) -> list[str]:
        return self.hosts.b.inside

    def cut(self) -> None:
        if self.case.cut == "link down":
            self.hosts.a.ip("link", "set", "va1", "down")
            return
        self.hosts.swallow("a", 1)
        if self.case.cut == "silent":
            self.hosts.swallow("b", 1)

    def restore(self) -> None:
        self.hosts.a.ip("link", "set", "va1", "up")
        for side in ("a", "b"):
            self.hosts.shape(side, 1)
        self.hosts.settled()
