"""The simulator and the sockets (compiled)."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ENGINE",
    "Association",
    "Endpoint",
    "Events",
    "Identity",
    "Operation",
    "Outcome",
    "PacketTrace",
    "PathSeries",
    "Scenario",
    "ScenarioError",
    "SimulationError",
    "literal",
    "quantity",
    "run",
    "run_many",
]

ENGINE: str

class ScenarioError(ValueError):
    """An invalid scenario: one line with the key, the error and the allowed values."""

class SimulationError(RuntimeError):
    """A run without an outcome: an invariant did not hold, which is a bug in polypath."""

@final
class Scenario:
    """A validated scenario."""

    @staticmethod
    def from_toml(text: str) -> Scenario: ...
    @staticmethod
    def from_file(path: str | PathLike[str]) -> Scenario: ...
    @staticmethod
    def from_json(text: str) -> Scenario: ...
    def with_json(self, changes: str) -> Scenario: ...
    def to_toml(self) -> str: ...
    def to_json(self) -> str: ...
    def effective(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def name(self) -> str: ...

@final
class PathSeries:
    """The variables of one path over time, seen from one side; all arrays have the same length."""

    COLUMNS: ClassVar[list[str]]
    @property
    def association(self) -> str:
        """Name of the association."""
    @property
    def side(self) -> str:
        """Either "sender" or "receiver"."""
    @property
    def path(self) -> int:
        """Number of the path."""
    @property
    def time(self) -> NDArray[np.float64]:
        """Seconds from the beginning of the run."""
    @property
    def cwnd(self) -> NDArray[np.uint64]:
        """Congestion window in bytes."""
    @property
    def ssthresh(self) -> NDArray[np.uint64]:
        """Slow start threshold in bytes."""
    @property
    def in_flight(self) -> NDArray[np.uint64]:
        """Bytes of DATA outstanding, chunk headers included."""
    @property
    def rto(self) -> NDArray[np.float64]:
        """Retransmission timeout in seconds."""
    @property
    def srtt(self) -> NDArray[np.float64]:
        """Smoothed round-trip time in seconds; 0 before the first sample."""
    @property
    def peer_rwnd(self) -> NDArray[np.uint64]:
        """Receive window of the peer in bytes, of the whole association."""
    @property
    def state(self) -> NDArray[np.uint64]:
        """0 unconfirmed, 1 active, 2 potentially failed, 3 inactive."""
    @property
    def error_count(self) -> NDArray[np.uint64]:
        """Consecutive errors."""
    def __len__(self) -> int: ...

@final
class PacketTrace:
    """Every packet at every link, in columns; see :class:`polypath.packets.PacketTrace`."""

    FATES: ClassVar[list[str]]
    @property
    def associations(self) -> list[str]: ...
    @property
    def links(self) -> list[str]: ...
    @property
    def hop_time(self) -> NDArray[np.float64]: ...
    @property
    def hop_packet(self) -> NDArray[np.uint32]: ...
    @property
    def hop_link(self) -> NDArray[np.uint32]: ...
    @property
    def hop_fate(self) -> NDArray[np.uint8]: ...
    @property
    def hop_arrival(self) -> NDArray[np.float64]: ...
    @property
    def association(self) -> NDArray[np.uint32]: ...
    @property
    def direction(self) -> NDArray[np.uint8]: ...
    @property
    def path(self) -> NDArray[np.uint8]: ...
    @property
    def size(self) -> NDArray[np.uint32]: ...
    @property
    def first_chunk(self) -> NDArray[np.uint32]: ...
    @property
    def chunk_kind(self) -> NDArray[np.uint8]: ...
    @property
    def chunk_tsn(self) -> NDArray[np.uint32]: ...
    @property
    def chunk_retransmission(self) -> NDArray[np.bool_]: ...
    @property
    def chunk_a_rwnd(self) -> NDArray[np.uint32]: ...
    @property
    def first_gap(self) -> NDArray[np.uint32]: ...
    @property
    def gap_first(self) -> NDArray[np.uint32]: ...
    @property
    def gap_last(self) -> NDArray[np.uint32]: ...
    @property
    def first_duplicate(self) -> NDArray[np.uint32]: ...
    @property
    def duplicate(self) -> NDArray[np.uint32]: ...

@final
class Outcome:
    """The outcome of a run."""

    def to_json(self) -> str: ...
    @property
    def series(self) -> list[PathSeries]: ...
    @property
    def packets(self) -> PacketTrace | None: ...

@final
class Operation:
    """A call that waits; :mod:`polypath.aio` polls it."""

    def poll(self, schedule: Callable[[], object]) -> tuple[Any] | None:
        """Returns a tuple with the result, or ``None``.

        ``schedule`` is then called once, from another thread, when it is time for the next poll.
        """
    def cancel(self) -> None:
        """Ends the call, if it still waits."""

@final
class Identity:
    """A private key and a certificate."""

    def __new__(cls) -> Identity: ...
    @staticmethod
    def from_pem(text: str) -> Identity: ...
    def to_pem(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...

@final
class Events:
    """The events of an association."""

    def next(self) -> Operation: ...

@final
class Association:
    """An association over real sockets; see :class:`polypath.aio.Association`."""

    def send(
        self,
        payload: bytes,
        stream: int = 0,
        ppid: int = 0,
        unordered: bool = False,
        lifetime: float | None = None,
        delivery: str | None = None,
    ) -> Operation: ...
    def set_delivery(self, delivery: str, stream: int | None = None) -> None: ...
    def set_preference(self, path: int, rank: int, budget: int) -> None: ...
    def receive(self, stream: int | None = None) -> Operation: ...
    def drained(self) -> Operation: ...
    def shutdown(self) -> Operation: ...
    def abort(self, reason: str) -> None: ...
    def closed(self) -> Operation: ...
    def events(self) -> Events: ...
    def paths(self) -> list[dict[str, Any]]: ...
    def statistics(self) -> list[tuple[str, int]]: ...
    def set_primary(self, path: int) -> None: ...
    @property
    def current_path(self) -> int: ...
    @property
    def streams(self) -> tuple[int, int]: ...
    @property
    def peer(self) -> str | None: ...
    @property
    def close_reason(self) -> str | None: ...

@final
class Endpoint:
    """Local addresses; see :class:`polypath.aio.Endpoint`."""

    def __new__(
        cls,
        addresses: Sequence[str],
        *,
        port: int = 0,
        udp_port: int = 0,
        listen: bool = False,
        encrypt: bool = True,
        identity: Identity | None = None,
        trust: Sequence[str] | None = None,
        secret: str | None = None,
        profile: str | None = None,
        settings: Sequence[tuple[str, str]] = ...,
    ) -> Endpoint: ...
    def connect(self, remotes: Sequence[tuple[str, int]], port: int) -> Operation: ...
    def accept(self) -> Operation: ...
    def close(self) -> Operation: ...
    @property
    def addresses(self) -> list[tuple[str, int]]: ...
    @property
    def port(self) -> int: ...
    @property
    def fingerprint(self) -> str | None: ...

def run(
    scenario: Scenario,
    seed: int | None = None,
    series: str | None = None,
    pcap: str | PathLike[str] | None = None,
    packets: bool = False,
) -> Outcome: ...
def run_many(
    jobs: Sequence[tuple[Scenario, int | None]],
    series: str | None = None,
    threads: int | None = None,
    done: Callable[[int, Outcome | Exception], object] | None = None,
) -> list[Outcome | Exception]: ...
def literal(text: str) -> str: ...
def quantity(text: str) -> float:
    """Converts a quantity in a scenario's notation to its base unit.

    "10 Mbit/s" is 1e7 (bit/s), "45 ms" is 0.045 (seconds), "64 KiB" is 65536.0 (bytes), "8 %" is
    0.08.

    Raises:
        ValueError: The text is not a quantity; the message lists the allowed forms.
    """
