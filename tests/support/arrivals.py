"""Arrival times of in-order data from a capture (pcapng with Ethernet, IPv4, UDP, SCTP).

tshark could extract them too, but takes a second for each of many captures.
"""

import dataclasses
import socket
import struct
from collections.abc import Iterator

SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
OPTION_RESOLUTION = 9
ETHERNET, IPV4, UDP, DATA = 1, 0x0800, 17, 0


@dataclasses.dataclass(frozen=True)
class Arrival:
    """Time in seconds, the receiver's address that the packet was sent to, and the bytes of user data that have
    arrived in order until then."""

    at: float
    address: str
    total: int


def in_order(capture: bytes) -> list[Arrival]:
    """Arrivals that advance the cumulative TSN; the first DATA chunk counts as the first of all."""
    arrivals: list[Arrival] = []
    waiting: dict[int, int] = {}
    expected, total = -1, 0
    for at, frame in sorted(_frames(capture), key=lambda entry: entry[0]):
        for tsn, size in _data(frame):
            expected = tsn if expected < 0 else expected
            if (tsn - expected) % (1 << 32) < 1 << 31:
                waiting[tsn] = size
        before = expected
        while expected in waiting:
            total += waiting.pop(expected)
            expected = (expected + 1) % (1 << 32)
        if expected != before:
            arrivals.append(Arrival(at, socket.inet_ntoa(frame[30:34]), total))
    assert not waiting, f"{len(waiting)} TSNs after {expected}, which has never come"
    return arrivals


def _frames(capture: bytes) -> Iterator[tuple[float, bytes]]:
    """Times and contents of the packets."""
    ticks: list[float] = []  # seconds, of each interface
    at = 0
    while at + 12 <= len(capture):
        kind, length = struct.unpack_from("<II", capture, at)
        assert length >= 12, "no pcapng of this byte order"
        body = capture[at + 8:at + length - 4]
        if kind == INTERFACE:
            assert struct.unpack_from("<H", body)[0] == ETHERNET
            ticks.append(_resolution(body[8:]))
        elif kind == PACKET:
            interface, high, low, captured = struct.unpack_from("<IIII", body)
            yield (high << 32 | low) * ticks[interface], body[20:20 + captured]
        at += length


def _resolution(options: bytes) -> float:
    """Resolution of an interface's clock in seconds."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == OPTION_RESOLUTION:
            value = options[at + 4]
            return 2.0 ** -(value & 0x7F) if value & 0x80 else 10.0 ** -value
        at += 4 + (length + 3 & ~3)
    return 1e-6


def _data(frame: bytes) -> Iterator[tuple[int, int]]:
    """TSN and bytes of user data of each DATA chunk in an Ethernet frame."""
    assert struct.unpack_from(">H", frame, 12)[0] == IPV4 and frame[23] == UDP
    # Ethernet 14, IP header by its length field, UDP 8, SCTP common header 12.
    end = 14 + struct.unpack_from(">H", frame, 16)[0]
    at = 14 + 4 * (frame[14] & 0xF) + 8 + 12
    while at + 4 <= end:
        kind, _, length = struct.unpack_from(">BBH", frame, at)
        if kind == DATA:
            yield struct.unpack_from(">I", frame, at + 4)[0], length - 16
        at += max(4, length + 3 & ~3)
