"""SCTP associations over several paths for asyncio, over real sockets.

An :class:`Endpoint` has local addresses; it opens associations and accepts them. An
:class:`Association` carries messages on streams. If the path in use fails, another one takes over
and no message is lost. Packets are encrypted (DTLS 1.3, RFC 8261) unless ``encrypt=False``.

    async def main():
        async with await aio.connect("10.1.0.2", "10.2.0.2", secret="...") as association:
            await association.send(b"hello")
            async for message in association:
                print(message.payload)

A call that is cancelled has had no effect, unless its documentation states that the operation
continues. In particular, no message is lost when ``receive`` is cancelled, and no part of a message
is sent when ``send`` is.

The objects do not work in a process that :func:`os.fork` has made.
"""

import asyncio
import functools
import os
import pathlib
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar

from polypath import _core

_Item = TypeVar("_Item")

__all__ = [
    "PORT",
    "UDP_PORT",
    "Association",
    "Delivery",
    "Endpoint",
    "Event",
    "Identity",
    "Message",
    "Path",
    "connect",
]

Delivery = Literal["standard", "earliest", "redundant"]
"""How messages are sent: for the highest rate, on the path that delivers first, or in copies."""
PORT = 9260
"""The SCTP port of polypath's programs."""
UDP_PORT = 9899
"""The UDP port of encapsulated SCTP (RFC 6951)."""


@dataclass(frozen=True, slots=True)
class Message:
    """A received message."""

    payload: bytes
    stream: int
    ppid: int
    """Payload protocol identifier."""
    unordered: bool
    end: bool
    """Whether the message is complete. One that is larger than half the receive buffer arrives in
    pieces, in order; the last one has this set."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change of an association.

    The kinds are ``established``, ``path-added``, ``path-state``, ``current-path`` (new data uses
    it from now on), ``primary-path``, ``path-refused``, ``local-address``, ``send-failed``,
    ``restarted``, ``peer-error``, ``peer-shutdown``, ``missed`` (more than 256 events waited, and
    the oldest were dropped), ``other``, and ``closed``, which is the last one.
    """

    kind: str
    path: int | None = None
    """Number of the path."""
    state: str | None = None
    """New state of the path: unconfirmed, active, potentially failed, inactive or removed."""
    previous: str | None = None
    """Previous state of the path."""
    stream: int | None = None
    """Stream of a message that was given up."""
    time: float | None = None
    """Seconds since the endpoint was created."""
    text: str = ""
    """The rest in words."""


@dataclass(frozen=True, slots=True)
class Path:
    """State and counters of a path."""

    number: int
    local: str
    """Local address; ``0.0.0.0`` or ``::`` while the operating system chooses."""
    remote: str
    state: str
    """Either unconfirmed, active, potentially failed, inactive or removed."""
    primary: bool
    rtt: float | None
    """Smoothed round-trip time in seconds, once there is a sample."""
    rto: float
    """Retransmission timeout in seconds."""
    cwnd: int
    """Congestion window in bytes."""
    in_flight: int
    """Bytes that are sent and not acknowledged."""
    mtu: int
    """Largest IP packet that is sent, in bytes."""
    errors: int
    """Consecutive errors."""
    packets_sent: int
    packets_received: int
    bytes_sent: int
    bytes_received: int
    retransmissions: int
    """Retransmitted DATA chunks."""
    timeouts: int
    failures: int
    """Number of times that the path became inactive."""


class _Steps(AsyncIterator[_Item]):
    """Iterates over what a call returns, up to ``None``.

    A generator would end when a step is cancelled; here the next step continues.
    """

    def __init__(self, step: Callable[[], Awaitable[_Item | None]]) -> None:
        self._step = step

    async def __anext__(self) -> _Item:
        item = await self._step()
        if item is None:
            raise StopAsyncIteration
        return item


class Identity:
    """A private key with a certificate, by which a peer recognises this side."""

    def __init__(self, pem: str | None = None) -> None:
        """Reads a key and a certificate in PEM; without them, creates new ones.

        Raises:
            ValueError: The text is not a key and its certificate.
        """
        self._core = _core.Identity() if pem is None else _core.Identity.from_pem(pem)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads the identity in a file, or creates a new one there that only this user can read.

        The program ``polypath`` keeps its own in ``~/.config/polypath/identity.pem``.
        """
        file = pathlib.Path(path)
        try:
            return cls(file.read_text(encoding="ascii"))
        except FileNotFoundError:
            new = cls()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(os.open(file, flags, 0o600), "w", encoding="ascii") as out:
                out.write(new.pem())
            return new

    def pem(self) -> str:
        """The private key and the certificate in PEM."""
        return self._core.to_pem()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate."""
        return self._core.fingerprint


class Association:
    """An association with a peer: messages on many streams, over many paths.

    Several tasks may use it at the same time. As a context manager, it is shut down at the end of
    the block, and aborted if the block raises. If the last reference to an open association is
    dropped, it is aborted.
    """

    def __init__(self, core: _core.Association) -> None:
        """Not for programs: :func:`connect` and :meth:`Endpoint.accept` return associations."""
        self._core = core

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        if kind is None:
            await self.shutdown()
        else:
            self.abort()

    def __aiter__(self) -> AsyncIterator[Message]:
        return _Steps(self.receive)

    async def send(
        self,
        payload: bytes | bytearray | memoryview,
        *,
        stream: int = 0,
        ppid: int = 0,
        unordered: bool = False,
        lifetime: float | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        """Sends a message; waits while the send buffer is full.

        Returns when the message is in the send buffer; :meth:`drained` waits for the peer.

        Args:
            payload: At least one byte.
            stream: Messages of a stream are delivered in order.
            ppid: Payload protocol identifier.
            unordered: Whether the peer gets the message as soon as it has arrived.
            lifetime: Seconds after which the message is given up (RFC 3758); needs
                ``settings={"partial_reliability": True}`` on both sides.
            delivery: How it is sent, if not as :meth:`set_delivery` has set.

        Raises:
            ValueError: The message is empty or too large, or there is no such stream.
            BrokenPipeError: The association is shutting down or closed.
            ConnectionError: The association was aborted.
            TimeoutError: The peer can no longer be reached.
        """
        payload = bytes(payload)
        await _finish(self._core.send(payload, stream, ppid, unordered, lifetime, delivery))

    async def receive(self, *, stream: int | None = None) -> Message | None:
        """The next message of any stream, or of this one; ``None`` after a graceful end.

        Raises:
            ConnectionError: The association was aborted, and everything has been received.
            TimeoutError: The peer can no longer be reached.
        """
        received = await _finish(self._core.receive(stream))
        return None if received is None else Message(*received)

    async def drained(self) -> None:
        """Waits until the peer's SCTP has acknowledged everything that was sent.

        Raises:
            OSError: The association has ended before.
        """
        await _finish(self._core.drained())

    async def shutdown(self) -> None:
        """Delivers everything that was sent, and closes the association.

        The operation continues if the call is cancelled. Messages that the peer sends meanwhile can
        be received.

        Raises:
            OSError: The association has ended in another way.
        """
        await _finish(self._core.shutdown())

    def abort(self, reason: str = "") -> None:
        """Ends the association at once; the peer gets the reason. Undelivered data is lost."""
        self._core.abort(reason)

    async def closed(self) -> str:
        """Waits for the end of the association, and returns the reason."""
        reason: str = await _finish(self._core.closed())
        return reason

    def events(self) -> AsyncIterator[Event]:
        """The events of the association from now on. The iteration ends with the association."""
        events = self._core.events()

        async def step() -> Event | None:
            event = await _finish(events.next())
            return None if event is None else Event(**event)

        return _Steps(step)

    def paths(self) -> list[Path]:
        """State and counters of each path, at this moment."""
        return [Path(**path) for path in self._core.paths()]

    def statistics(self) -> dict[str, int]:
        """Counters of the association, at this moment."""
        return dict(self._core.statistics())

    def set_primary(self, path: int) -> None:
        """Makes another path the primary one.

        Raises:
            ValueError: There is no such path, or it is not usable.
        """
        self._core.set_primary(path)

    def set_delivery(self, delivery: Delivery, *, stream: int | None = None) -> None:
        """Sets how the messages of a stream, or of all, are sent from now on.

        Args:
            delivery: ``standard`` for the highest rate; ``earliest`` on the path that delivers
                first; ``redundant`` in several copies as well, within the budget of the
                settings ``copy_rate`` and ``copy_share``.
            stream: All streams without a choice of their own if it is ``None``.

        Raises:
            ValueError: There is no such stream.
        """
        self._core.set_delivery(delivery, stream)

    def set_preference(self, path: int, rank: int, *, budget: int = 0) -> None:
        """Sets how much a path is preferred; at first all have rank 0.

        Of the paths that work, those with the lowest rank carry data.

        Args:
            path: Number of the path.
            rank: 1 or more for a path that costs money.
            budget: Bytes that it may send as if its rank were 0.

        Raises:
            ValueError: There is no such path.
        """
        self._core.set_preference(path, rank, budget)

    @property
    def current_path(self) -> int:
        """Number of the path that carries new data."""
        return self._core.current_path

    @property
    def streams(self) -> tuple[int, int]:
        """Numbers of outgoing and of incoming streams."""
        return self._core.streams

    @property
    def peer(self) -> str | None:
        """Fingerprint of the peer's certificate; ``None`` in clear."""
        return self._core.peer

    @property
    def close_reason(self) -> str | None:
        """Why the association has ended; ``None`` while it is open."""
        return self._core.close_reason


class Endpoint:
    """Local addresses that open associations and accept them.

    As a context manager, it is closed at the end of the block. An iteration accepts associations
    until then.
    """

    def __init__(
        self,
        *addresses: str,
        listen: bool = False,
        port: int = 0,
        udp_port: int = 0,
        encrypt: bool = True,
        identity: Identity | None = None,
        trust: Sequence[str] | None = None,
        secret: str | None = None,
        profile: str | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Binds a UDP socket for each address.

        Args:
            addresses: Local IP addresses; none for all of the host's IPv4 addresses.
            listen: Whether to accept associations.
            port: SCTP port; 0 for any.
            udp_port: UDP port; 0 for any.
            encrypt: Whether to encrypt packets. A peer that does not is refused.
            identity: Key and certificate; new ones by default.
            trust: Fingerprints of the certificates to accept, all by default. A peer of a listening
                endpoint with a secret needs one or the other.
            secret: Peers prove to each other that they know it, without a chance for others to
                guess it offline. Both sides need it, or neither.
            profile: Constants and policies; see ``polypath profiles``.
            settings: Constants and policies that differ from the profile, by name:
                ``{"rto_min": "200ms", "scheduler": "concurrent"}``.

        Raises:
            ValueError: An argument is wrong.
            OSError: An address cannot be bound.
        """
        pairs = [(name, _setting(value)) for name, value in (settings or {}).items()]
        self._core = _core.Endpoint(
            list(addresses),
            port=port,
            udp_port=udp_port,
            listen=listen,
            encrypt=encrypt,
            identity=None if identity is None else identity._core,
            trust=None if trust is None else list(trust),
            secret=secret,
            profile=profile,
            settings=pairs,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[Association]:
        return _Steps(self.accept)

    async def connect(self, *addresses: str, port: int = PORT) -> Association:
        """Opens an association.

        Args:
            addresses: Names or addresses of the peer, each with a UDP port if that is not
                :data:`UDP_PORT`: ``"10.1.0.2"``, ``"host:9000"``, ``"[fd00::1]:9000"``. The first
                one is the primary path. The peer may announce more.
            port: SCTP port of the peer.

        Raises:
            ConnectionRefusedError: The peer refused, has another certificate or another secret.
            TimeoutError: The peer does not reply.
            OSError: A name cannot be resolved, or an address cannot be reached.
        """
        if not addresses:
            raise ValueError("connect needs an address")
        remotes = [remote for address in addresses for remote in await _resolve(address)]
        return Association(await _finish(self._core.connect(remotes, port)))

    async def accept(self) -> Association | None:
        """The next association that a peer has opened; ``None`` once the endpoint is closed.

        With a secret, the peer has proved it.
        """
        accepted = await _finish(self._core.accept())
        return None if accepted is None else Association(accepted)

    async def close(self) -> None:
        """Shuts all associations down gracefully, and closes the sockets.

        The operation continues if the call is cancelled.
        """
        await _finish(self._core.close())

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Local addresses with their UDP ports."""
        return self._core.addresses

    @property
    def port(self) -> int:
        """SCTP port."""
        return self._core.port

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint by which peers recognise this side; ``None`` in clear."""
        return self._core.fingerprint


async def connect(
    *addresses: str,
    port: int = PORT,
    bind: Sequence[str] = (),
    encrypt: bool = True,
    identity: Identity | None = None,
    trust: Sequence[str] | None = None,
    secret: str | None = None,
    profile: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> Association:
    """Opens an association from an endpoint of its own, which is closed with it.

    The arguments are those of :class:`Endpoint` and :meth:`Endpoint.connect`; ``bind`` has the
    local addresses.

    Raises:
        ValueError: An argument is wrong.
        OSError: See :meth:`Endpoint.connect`.
    """
    endpoint = Endpoint(
        *bind,
        encrypt=encrypt,
        identity=identity,
        trust=trust,
        secret=secret,
        profile=profile,
        settings=settings,
    )
    return await endpoint.connect(*addresses, port=port)


def _setting(value: object) -> str:
    """A constant or policy as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _resolve(address: str) -> list[tuple[str, int]]:
    """The IP addresses of a name or address with an optional UDP port."""
    host, port = address, UDP_PORT
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        text = rest.removeprefix(":")
    elif address.count(":") == 1:
        host, _, text = address.partition(":")
    else:
        text = ""
    if text:
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 16):
            raise ValueError(f"{address!r} has no valid UDP port")
        port = int(text)
    found = await asyncio.get_running_loop().getaddrinfo(host, port)
    return list(dict.fromkeys((str(entry[4][0]), port) for entry in found))


async def _finish(operation: _core.Operation) -> Any:
    """Polls an operation until it is ready. Cancellation ends it between two polls."""
    loop = asyncio.get_running_loop()
    try:
        while True:
            ready = loop.create_future()
            schedule = functools.partial(loop.call_soon_threadsafe, _set, ready)
            result = operation.poll(schedule)
            if result is not None:
                return result[0]
            await ready
    finally:
        operation.cancel()


def _set(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
