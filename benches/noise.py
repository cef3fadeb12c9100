#!/usr/bin/env python3
"""Sends datagrams of random sizes at random times: background on a link between two flows.

    benches/noise.py ADDRESS PORT BITS_PER_SECOND SECONDS
"""

import contextlib
import random
import socket
import sys
import time

LARGEST = 1400
# IP and UDP headers.
HEADERS = 28


def main() -> None:
    address, port, bits, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    each_second = bits / 8 / (HEADERS + (1 + LARGEST) / 2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        at = time.monotonic()
        end = at + seconds
        while at < end:
            # An ICMP "port unreachable" does not end it.
            with contextlib.suppress(ConnectionRefusedError):
                sender.sendto(bytes(random.randint(1, LARGEST)), (address, port))
            at += random.expovariate(each_second)
            time.sleep(max(0.0, at - time.monotonic()))


if __name__ == "__main__":
    main()
