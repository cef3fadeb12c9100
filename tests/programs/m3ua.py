"""An application server process (ASP) of M3UA (RFC 4666): registers POINT_CODE at a signalling gateway and prints
the user data that it gets. With COUNT, sends that many messages to the point code PEER before.

usage: m3ua.py ADDRESS PORT POINT_CODE [PEER COUNT]
"""

import socket
import struct
import sys
import time

PPID = 3
MANAGEMENT, TRANSFER, STATE, TRAFFIC, KEYS = 0, 1, 3, 4, 9
address, port, own = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
peer, count = (int(word) for word in sys.argv[4:6]) if len(sys.argv) > 4 else (0, 0)


def parameter(tag: int, value: bytes) -> bytes:
    return struct.pack("!HH", tag, 4 + len(value)) + value + bytes(-len(value) % 4)


def send(gateway: socket.socket, of_class: int, kind: int, parameters: bytes = b"", stream: int = 0) -> None:
    # struct sctp_sndrcvinfo: stream, SSN, flags, padding, PPID, context, lifetime, TSN, cumulative TSN, id.
    info = struct.pack("=HHHHIIIIIi", stream, 0, 0, 0, socket.htonl(PPID), 0, 0, 0, 0, 0)
    message = struct.pack("!BBBBI", 1, 0, of_class, kind, 8 + len(parameters)) + parameters
    gateway.sendmsg([message], [(socket.IPPROTO_SCTP, 1, info)])


def wait_for(gateway: socket.socket, of_class: int, kind: int) -> bytes:
    """The parameters of the next message of this kind; others are notices of the gateway."""
    while True:
        message = gateway.recv(65536)
        assert message, "the gateway has ended the association"
        if (message[2], message[3]) == (of_class, kind):
            return message[8:]
        assert message[2] != MANAGEMENT or message[3] != 0, f"error: {message.hex()}"


def found(parameters: bytes, tag: int) -> bytes:
    """The value of a parameter."""
    while parameters:
        kind, length = struct.unpack("!HH", parameters[:4])
        if kind == tag:
            return parameters[4:length]
        parameters = parameters[length + -length % 4:]
    raise AssertionError(f"no parameter {tag:#x}")


with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP) as gateway:
    gateway.settimeout(90)
    gateway.connect((address, port))
    send(gateway, STATE, 1)
    wait_for(gateway, STATE, 4)
    key = parameter(0x020a, struct.pack("!I", 1)) + parameter(0x020b, struct.pack("!I", own))
    send(gateway, KEYS, 1, parameter(0x0207, key))
    result = found(wait_for(gateway, KEYS, 2), 0x0208)
    assert found(result, 0x0212) == bytes(4), f"registration refused: {result.hex()}"
    context = found(result, 0x0006)
    send(gateway, TRAFFIC, 1, parameter(0x0006, context))
    wait_for(gateway, TRAFFIC, 3)
    print("active", flush=True)
    if count:
        for number in range(count):
            label = struct.pack("!IIBBBB", own, peer, 3, 0, 0, 0)
            data = parameter(0x0210, label + f"message {number}".encode())
            send(gateway, TRANSFER, 1, parameter(0x0006, context) + data, stream=1)
            wait_for(gateway, TRANSFER, 1)
            print("answered", number, flush=True)
            time.sleep(0.2)
    else:
        while True:
            data = found(wait_for(gateway, TRANSFER, 1), 0x0210)
            origin, _ = struct.unpack("!II", data[:8])
            print(data[12:].decode(), flush=True)
            label = struct.pack("!IIBBBB", own, origin, 3, 0, 0, 0)
            answer = parameter(0x0006, context) + parameter(0x0210, label + b"answer")
            send(gateway, TRANSFER, 1, answer, stream=1)
