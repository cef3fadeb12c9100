#!/usr/bin/env python3
"""Runs the demo: a file over two emulated paths at once; one is cut half way and restored later.

Three real processes: `polypath emulate` relays datagrams between two pairs of loopback addresses
over two modelled links in real time, `polypath recv` and `polypath send` transfer the file.
Standard library only.
"""

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRESS = sys.stderr.isatty()

RESTORED_AFTER = 5.0  # seconds


class Problem(Exception):
    """The demo cannot continue."""


def say(text: str) -> None:
    print(text, flush=True)


def news(text: str) -> None:
    """Report an event, unless the sender shows its progress on the terminal."""
    if not PROGRESS:
        say(text)


def end_with_parent() -> None:
    """In a child: exit when the demo's process ends for any reason."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class Children:
    """The processes of the demo; all are stopped at its end."""

    def __init__(self):
        self.all: list[subprocess.Popen] = []

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_) -> None:
        for child in reversed(self.all):
            if child.poll() is None:
                child.terminate()
        for child in self.all:
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def start(self, words: list[object], **streams) -> subprocess.Popen:
        child = subprocess.Popen([str(word) for word in words], preexec_fn=end_with_parent, **streams)
        self.all.append(child)
        return child


class Demo:
    """The files, the addresses and the three processes."""

    def __init__(self, arguments: argparse.Namespace, folder: Path, children: Children):
        self.program = arguments.program
        self.size = int(arguments.megabytes * 1e6)
        self.capture = arguments.pcap
        self.folder = folder
        self.children = children
        self.out = folder / "received"
        self.out.mkdir()
        with arguments.scenario.open("rb") as file:
            scenario = tomllib.load(file)
        self.paths = scenario["path"]
        self.names = [path["name"] for path in self.paths]
        self.emulator = scenario["emulator"]
        self.scenario = arguments.scenario
        self.began = self.cut_at = self.restored_at = None
        self.arrived_before_cut = 0

    def intends(self) -> str:
        links = "\n".join(
            f"  path {n} ({path['name']}): {sender} > {receiver}, {path['rate']}, {path['delay']} one way"
            for n, (path, sender, receiver) in enumerate(zip(
                self.paths, self.emulator["senders"], self.emulator["receivers"], strict=True)))
        return (f"A file of {self.size / 1e6:g} MB from one process to another, over two emulated paths:\n"
                f"{links}\n"
                f"Half way, path 0 is cut; {RESTORED_AFTER:g} s later it is restored.\n"
                "Every setting is the default.\n")

    def run(self) -> dict:
        """Run the transfer; return the data for the summary."""
        content = random.Random(1).randbytes(self.size)
        source = self.folder / "demo.bin"
        source.write_bytes(content)
        emulator = self.start_emulator()
        receiver = self.start_receiver()
        sender = self.start_sender(source)
        self.cut_and_restore(emulator, sender, receiver)
        sent = self.summary("send", sender)
        received = self.summary("recv", receiver)
        arrived = hashlib.sha256((self.out / "demo.bin").read_bytes()).hexdigest()
        return {
            "sent": sent,
            "received": received,
            "sha256_sent": hashlib.sha256(content).hexdigest(),
            "sha256_received": arrived,
            "links_bit_per_s": sum(bits(path["rate"]) for path in self.paths),
            "before_cut_bit_per_s": 8 * self.arrived_before_cut / (self.cut_at - self.began) if self.cut_at else None,
            "cut_at_s": self.cut_at - self.began if self.cut_at else None,
            "restored_at_s": self.restored_at - self.began if self.restored_at else None,
        }

    def start_emulator(self) -> subprocess.Popen:
        # The demo cuts the paths itself: remove the scenario's faults.
        words = [self.program, "emulate", self.scenario, "--set", "fault=[]"]
        if self.capture:
            words += ["--pcap", self.capture]
        log = self.folder / "emulate.log"
        with log.open("wb") as output:
            emulator = self.children.start(words, stdin=subprocess.PIPE, stdout=output, stderr=output)
        self.ready(emulator, log, "emulate", b"ready")
        return emulator

    def start_receiver(self) -> subprocess.Popen:
        log = self.folder / "recv.log"
        words = [self.program, "recv", "--bind", ",".join(self.emulator["receivers"]),
                 "--udp-port", self.emulator["receiver_port"], "-o", self.out, "--json", "--plain",
                 "--anyone"]
        with log.open("wb") as output:
            receiver = self.children.start(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=output)
        self.ready(receiver, log, "recv", b"waiting on ")
        return receiver

    def start_sender(self, source: Path) -> subprocess.Popen:
        port = self.emulator["front_port"]
        first, *others = [f"{address}:{port}" for address in self.emulator["receivers"]]
        words = [self.program, "send", source, first, "--via", ",".join(others),
                 "--bind", ",".join(self.emulator["senders"]), "--json", "--plain"]
        # The user follows the sender's progress: it inherits stderr.
        return self.children.start(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def ready(self, child: subprocess.Popen, log: Path, name: str, word: bytes) -> None:
        """Wait until the process's log contains `word`."""
        end = time.monotonic() + 10
        while word not in log.read_bytes():
            if child.poll() is not None:
                raise Problem(f"polypath {name} has ended: {log.read_text().strip()}")
            if time.monotonic() > end:
                raise Problem(f"polypath {name} does not start: {log.read_text().strip()}")
            time.sleep(0.02)

    def cut_and_restore(self, emulator, sender, receiver) -> None:
        """Watch the received file; cut path 0 half way and restore it later."""
        while sender.poll() is None and receiver.poll() is None:
            now = time.monotonic()
            arrived = sum(entry.stat().st_size for entry in self.files())
            if self.began is None and any(self.files()):
                self.began = now
            if self.cut_at is None and arrived >= self.size / 2:
                self.tell(emulator, f"down {self.names[0]}")
                self.cut_at = now
                self.arrived_before_cut = arrived
                news(f"at {now - self.began:.1f} s: path 0 is cut, {arrived / 1e6:.1f} MB have arrived")
            if self.cut_at and self.restored_at is None and now >= self.cut_at + RESTORED_AFTER:
                self.tell(emulator, f"up {self.names[0]}")
                self.restored_at = now
                news(f"at {now - self.began:.1f} s: path 0 is restored")
            time.sleep(0.02)

    def files(self):
        # A file may get its final name between listing and testing.
        with contextlib.suppress(FileNotFoundError):
            yield from [entry for entry in self.out.iterdir() if entry.exists()]

    @staticmethod
    def tell(emulator: subprocess.Popen, line: str) -> None:
        try:
            emulator.stdin.write(line.encode() + b"\n")
            emulator.stdin.flush()
        except OSError:
            raise Problem("polypath emulate has ended") from None

    def summary(self, name: str, child: subprocess.Popen) -> dict:
        """The process's JSON summary."""
        try:
            out, _ = child.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            raise Problem(f"polypath {name} does not end") from None
        if child.returncode != 0:
            log = self.folder / f"{name}.log"
            said = f": {log.read_text().strip()}" if log.exists() else ""
            raise Problem(f"polypath {name} failed (exit {child.returncode}){said}")
        return json.loads(out)


def summary(result: dict) -> str:
    """The summary as plain text."""
    sent, received = result["sent"], result["received"]
    cut, restored = result["cut_at_s"], result["restored_at_s"]
    equal = result["sha256_sent"] == result["sha256_received"]
    rows = [
        ("file", f"{sent['bytes'] / 1e6:g} MB in {sent['seconds']:.1f} s, "
                 f"{sent['goodput_bit_per_s'] / 1e6:.2f} Mbit/s"),
        ("SHA-256", f"equal on both sides: {result['sha256_sent'][:16]}..." if equal else
         f"DIFFERS: {result['sha256_sent']} sent, {result['sha256_received']} received"),
    ]
    total = sum(path["bytes"] for path in sent["paths"])
    for path in sent["paths"]:
        rows.append((f"path {path['path']}", f"{path['bytes'] / 1e6:.2f} MB sent "
                     f"({100 * path['bytes'] / max(total, 1):.0f} %), now {words(path['state'])}"))
    rows.append(("blackout", f"{received['blackout_s']:.2f} s without new data"))
    if cut is None:
        rows.append(("cut", "the transfer was over before"))
    else:
        rows.append(("before", f"{result['before_cut_bit_per_s'] / 1e6:.2f} Mbit/s over both paths, "
                     f"whose sum is {result['links_bit_per_s'] / 1e6:g} Mbit/s"))
        rows.append(("cut", f"path 0 at {cut:.1f} s"))
        rows += happened(sent, "potentially_failed", "declared", cut)
        rows += happened(sent, "inactive", "declared", cut)
    if restored is not None:
        rows.append(("restored", f"path 0 at {restored:.1f} s"))
        rows += happened(sent, "active", "back", restored)
    return "\n".join(f"{name:<9} {text}" for name, text in rows)


def happened(sent: dict, change: str, row: str, since: float) -> list[tuple[str, str]]:
    """Rows of the summary for the first such change of path 0 after a time. The sender's clock starts before the
    demo's, which begins with the file's first byte."""
    found = [entry["at_s"] for entry in sent["changes"]
             if entry["path"] == 0 and entry["change"] == change and entry["at_s"] >= since]
    if found:
        text = f"{words(change)} at {found[0]:.1f} s, {max(0.0, found[0] - since):.1f} s later"
        return [(row, text)]
    return [(row, "not before the end")] if change == "active" else []


def bits(rate: str) -> float:
    """The bits per second of a rate in Mbit/s, as in the demo's scenario."""
    number, unit = rate.split()
    if unit != "Mbit/s":
        raise Problem(f"the demo needs rates in Mbit/s, not {rate!r}")
    return float(number) * 1e6


def words(state: str) -> str:
    return state.replace("_", " ")


def build() -> Path:
    """Build the program with optimizations."""
    cargo = os.environ.get("CARGO", "cargo")
    done = subprocess.run([cargo, "build", "--release", "-p", "polypath-cli"], cwd=ROOT, check=False)
    if done.returncode != 0:
        raise Problem("the program cannot be built")
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    return target / "release" / "polypath"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, help="this polypath, instead of building one")
    parser.add_argument("--megabytes", type=float, default=20.0, help="size of the file (20)")
    parser.add_argument("--scenario", type=Path, default=ROOT / "scenarios" / "demo.toml")
    parser.add_argument("--pcap", type=Path, help="capture what the emulated links carry (pcapng)")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object")
    arguments = parser.parse_args()
    # Signals raise SystemExit, so that the children are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    try:
        if arguments.program is None:
            arguments.program = build()
        with tempfile.TemporaryDirectory(prefix="polypath-demo-") as folder, Children() as children:
            demo = Demo(arguments, Path(folder), children)
            if not arguments.json:
                say(demo.intends())
            result = demo.run()
    except Problem as problem:
        print(f"demo: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130
    say(json.dumps(result) if arguments.json else summary(result))
    return 0 if result["sha256_sent"] == result["sha256_received"] else 1


if __name__ == "__main__":
    sys.exit(main())
