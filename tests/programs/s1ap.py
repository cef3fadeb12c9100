"""A base station's S1AP (3GPP TS 36.413): sends S1SetupRequest COUNT times over one association, as after a change of
the configuration, and prints each response.

usage: s1ap.py ADDRESS COUNT
"""

import socket
import struct
import sys
import time

PORT, PPID, S1_SETUP = 36412, 18, 17
MCC_MNC = bytes.fromhex("00f110")
# Tracking area 12345 in two bits and the rest, then the number of networks: the elements are packed (X.691).
ELEMENTS = [
    (59, 0, b"\0" + MCC_MNC + bytes.fromhex("000019b0")),
    (60, 0x40, bytes.fromhex("0380") + b"polypath"),
    (64, 0, bytes.fromhex("000c0e40") + MCC_MNC),
    (137, 0x40, b"\0"),
]


def request() -> bytes:
    elements = b"".join(struct.pack("!HBB", kind, criticality, len(value)) + value
                        for kind, criticality, value in ELEMENTS)
    value = struct.pack("!BH", 0, len(ELEMENTS)) + elements
    return bytes([0, S1_SETUP, 0, len(value)]) + value


OUTCOMES = {0: "initiating", 0x20: "successful", 0x40: "unsuccessful"}
address, count = sys.argv[1], int(sys.argv[2])
with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP) as station:
    station.settimeout(90)
    station.connect((address, PORT))
    for number in range(count):
        info = struct.pack("=HHHHIIIIIi", 0, 0, 0, 0, socket.htonl(PPID), 0, 0, 0, 0, 0)
        station.sendmsg([request()], [(socket.IPPROTO_SCTP, 1, info)])
        answer = station.recv(65536)
        assert answer[1] == S1_SETUP, answer.hex()
        print(number, OUTCOMES[answer[0]], flush=True)
        time.sleep(0.2)
