#!/usr/bin/env python3
"""A sender or a receiver of one TCP or MPTCP connection, or a watch on a file that grows.

    bulk.py recv tcp|mptcp ADDRESS PORT SECONDS       # ends that long after the first byte, or with the sender
    bulk.py send tcp|mptcp ADDRESS PORT SECONDS CONTROLLER [FROM]
    bulk.py watch FOLDER SECONDS                      # the largest file in it; ends that long after its first byte

A receiver and a watch print "ready", and at the end one line of JSON: the bytes, the times of the first and the last
of them on CLOCK_MONOTONIC, and gaps without new bytes.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import time

MPTCP = 262
# A file of fewer bytes is not what is transferred.
LEAST = 1000
# Seconds without new bytes that count as a gap; a watch cannot see shorter ones.
GAP = 0.005


class Log:
    """What has arrived."""

    def __init__(self) -> None:
        self.bytes, self.first, self.last, self.gaps = 0, 0.0, 0.0, []

    def add(self, total: int) -> None:
        now = time.monotonic()
        if self.bytes and now - self.last >= GAP:
            self.gaps.append((round(self.last, 4), round(now - self.last, 4)))
        if not self.bytes:
            self.first = now
        self.bytes, self.last = total, now

    def show(self) -> None:
        self.gaps.append((self.last, time.monotonic() - self.last))
        print(json.dumps(vars(self)), flush=True)


def stream(kind: str) -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP if kind == "mptcp" else 0)


def recv(kind: str, address: str, port: str, seconds: str) -> None:
    log, buffer = Log(), bytearray(1 << 18)
    with stream(kind) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, int(port)))
        listener.listen(1)
        print("ready", flush=True)
        peer, _ = listener.accept()
        peer.settimeout(float(seconds))
        with contextlib.suppress(TimeoutError, ConnectionError):
            while not log.bytes or time.monotonic() < log.first + float(seconds):
                size = peer.recv_into(buffer)
                if not size:
                    break
                log.add(log.bytes + size)
    log.show()


def send(kind: str, address: str, port: str, seconds: str, controller: str, source: str = "") -> None:
    block = b"x" * (1 << 16)
    with stream(kind) as peer:
        # Of MPTCP, the congestion control of all subflows.
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        if source:
            peer.bind((source, 0))
        peer.connect((address, int(port)))
        end = time.monotonic() + float(seconds)
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < end:
                peer.sendall(block)
            peer.shutdown(socket.SHUT_WR)
            peer.recv(1)


def watch(folder: str, seconds: str) -> None:
    log, going = Log(), [True]
    signal.signal(signal.SIGTERM, lambda *_: going.clear())
    print("ready", flush=True)
    while going and (not log.bytes or time.monotonic() < log.first + float(seconds)):
        # polypath keeps a small file next to the one that grows.
        with contextlib.suppress(OSError):
            size = max((entry.stat().st_size for entry in os.scandir(folder)), default=0)
            if size > max(log.bytes, LEAST):
                log.add(size)
        time.sleep(0.001)
    log.show()


if __name__ == "__main__":
    {"recv": recv, "send": send, "watch": watch}[sys.argv[1]](*sys.argv[2:])
