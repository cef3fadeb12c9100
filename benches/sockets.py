#!/usr/bin/env python3
"""Measures transfers on real sockets over the simulator's links, next to the kernel's TCP and MPTCP. Needs root.

    benches/sockets.py links|paths|cuts [--only REGEX] [--seconds S] [--runs N] [--contenders A,B] [--plain]
                       [--out FILE]

links: one path, cells of crates/polypath-sim/examples/links: Linux TCP, polypath and polypath in the simulator.
paths: two paths: Linux MPTCP, polypath and polypath in the simulator.
cuts:  the longest time without delivered bytes after a silent cut of one of two paths.

All with BBR (Linux has version 1) and with CUBIC. Contenders take turns over new namespaces and a new network with the
same seed. Goodput is what the receiving application gets, from its first byte to its last. All processes have
real-time priority; CPU seconds are those of both processes, and of TCP do not have the kernel's work for packets
outside of them. A run in which the network was late is repeated, and marked if it stays so. Without --out, the rows
go to docs/PART-sockets.tsv and into the pages docs/links.md and docs/paths.md.
"""

import argparse
import contextlib
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sockets_page
from netem import Net, late, offers, problem
from processes import ROOT, TARGET, build_cargo

BULK = [sys.executable, str(ROOT / "benches" / "bulk.py")]
NETEM = TARGET / "release" / "examples" / "netem"
LINKS = TARGET / "release" / "examples" / "links"
CODE = ["--code-file", str(ROOT / "tests" / "support" / "code-phrase")]
PORT = 5001
# The kernel's TCP runs in interrupts: to be compared with it, processes do not wait for others, except for netem.
FIRST = ["chrt", "-r", "10"] if shutil.which("chrt") else []
ATTEMPTS = 3
FIELDS = ["part", "cell", "contender", "run", "mbit_s", "seconds", "retransmitted", "queue_ms", "cpu_s_per_gb",
          "longest_gap_ms", "lost", "queue_drops", "late_over_1_ms", "late_ms_most", "load", "note"]

# Mbit/s, RTT in ms, loss: two paths each. The queues hold one bandwidth-delay product.
WIFI = '{ good_to_bad = "0.2 %", bad_to_good = "20 %", loss_bad = "50 %" }'
PATHS = {
    **{f"50+50 Mbit/s, 40 ms, {loss} %": [(50, 40, f'"{loss} %"')] * 2 for loss in (0, 0.1, 1, 3)},
    "100+100 Mbit/s, 20 ms": [(100, 20, '"0 %"')] * 2,
    "100+100 Mbit/s, 100 ms": [(100, 100, '"0 %"')] * 2,
    "100 Mbit/s, 20 ms + 50 Mbit/s, 40 ms": [(100, 20, '"0 %"'), (50, 40, '"0 %"')],
    "20 Mbit/s, 20 ms + 5 Mbit/s, 120 ms": [(20, 20, '"0 %"'), (5, 120, '"0 %"')],
    "bursts, 50 Mbit/s, 20 ms + 50 Mbit/s, 60 ms": [(50, 20, WIFI), (50, 60, '"0 %"')],
}
CUTS = {f"20+20 Mbit/s, {rtt} ms, path {path} {what}": [(20, rtt, '"0 %"')] * 2
        for rtt in (20, 100, 300) for path in (0, 1) for what in ("cut", "acks cut")}


def grid() -> list[str]:
    """The cells of one path."""
    links = [(20, 20), (20, 100), (100, 20), (100, 100)]
    cells = [f"grid:{rate}:{rtt}:{loss}:{queue}" for rate, rtt in links
             for loss in ("0", "0.1", "1", "3") for queue in ("0.25", "1", "4")]
    for rate, rtt in links:
        cells += [f"bloat:{rate}:{rtt}:0:{1000 // rtt}", f"bursts:{rate}:{rtt}:0:1", f"policer:{rate}:{rtt}:0:1:32",
                  f"policer:{rate}:{rtt}:0:1:250"]
    return cells


def two_paths(links: list[tuple[int, int, str]]) -> str:
    """The scenario of several paths."""
    return "schema = 1\n" + "".join(
        f'[[path]]\nname = "p{number}"\nrate = "{rate} Mbit/s"\ndelay = "{rtt * 500} us"\n'
        f'queue = "{max(3000, rate * rtt * 125)} B"\nloss = {loss}\n'
        for number, (rate, rtt, loss) in enumerate(links))


class Ended:
    """A process that has ended: its output and its CPU seconds."""

    def __init__(self, popen: subprocess.Popen, patience: float):
        deadline = time.monotonic() + patience
        while not (found := os.wait4(popen.pid, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                os.kill(popen.pid, signal.SIGKILL)
                deadline += 60
            time.sleep(0.01)
        popen.returncode = os.waitstatus_to_exitcode(found[1])
        self.out, self.err = (file.read() if file else "" for file in (popen.stdout, popen.stderr))
        self.cpu = found[2].ru_utime + found[2].ru_stime


class Run:
    """One transfer of a contender over a network."""

    def __init__(self, net: Net, args: argparse.Namespace, folder: Path):
        self.net, self.args, self.folder = net, args, folder
        self.home = os.environ | {"XDG_CONFIG_HOME": str(folder / "config")}
        self.started: list[subprocess.Popen] = []

    def start(self, host: str, *words: object) -> subprocess.Popen:
        popen = subprocess.Popen([*Net.inside(host), *FIRST, *map(str, words)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=self.home)
        self.started.append(popen)
        return popen

    def end(self) -> None:
        for popen in self.started:
            if popen.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    popen.kill()
                popen.wait()

    def halves(self, seconds: float) -> tuple[dict, dict]:
        """netem's report half way and at the end."""
        time.sleep(seconds / 2)
        half = self.net.do("report")
        time.sleep(seconds / 2)
        return half, self.net.do("report")

    def kernel(self, contender: str, at: float | None = None, command: str = "") -> dict:
        """TCP or MPTCP; `command` goes to netem `at` seconds after the start."""
        kind, controller = contender.split("-")
        seconds, before = self.args.seconds, self.net.counters(self.net.a)
        receiver = self.start(self.net.b, *BULK, "recv", kind, "10.91.0.2", PORT, seconds)
        receiver.stdout.readline()
        sender = self.start(self.net.a, *BULK, "send", kind, "10.91.0.2", PORT, seconds + 1, controller, "10.91.0.1")
        cut, reports = self.fault(at, command, seconds)
        got = Ended(receiver, 60)
        after = self.net.counters(self.net.a)
        # Not by Popen, which would take the status that has the CPU seconds.
        os.kill(sender.pid, signal.SIGKILL)
        sent = Ended(sender, 5)
        log = json.loads(got.out.splitlines()[-1])
        again = after["Tcp:RetransSegs"] - before["Tcp:RetransSegs"]
        whole = after["Tcp:OutSegs"] - before["Tcp:OutSegs"]
        row = {"bytes": log["bytes"], "seconds": log["last"] - log["first"], "cpu": got.cpu + sent.cpu,
               "retransmitted": 100 * again / max(1, whole)}
        if command:
            row["gap"] = longest_gap(log, cut)
        return row | {"reports": reports}

    def fault(self, at: float | None, command: str, seconds: float) -> tuple[float, tuple[dict, dict]]:
        if at is None:
            return 0.0, self.halves(seconds + 0.3)
        time.sleep(at)
        self.net.do(command)
        cut = time.monotonic()
        return cut, self.halves(seconds - at)

    def options(self, controller: str) -> list[str]:
        chosen = [] if controller == "bbr" else ["--policy", f"congestion={controller}"]
        return [*chosen, *(["--plain"] if self.args.plain else []), *CODE]

    def addresses(self) -> tuple[list[str], list[str]]:
        """Options with the addresses of the receiver and of the sender."""
        far = [f"10.9{path}.0.2" for path in range(1, self.net.paths + 1)]
        near = [f"{address}=10.9{path}.0.1" for path, address in enumerate(far, 1)]
        via = [word for address in near[1:] for word in ("--via", address)]
        return ["-b", ",".join(far)], [near[0], *via]

    def polypath(self, contender: str) -> dict:
        """`polypath perf`."""
        options, seconds = self.options(contender.split("-")[1]), self.args.seconds
        bind, to = self.addresses()
        server = self.start(self.net.b, self.args.polypath, "perf", "server", "-1", *bind, *options)
        server.stderr.readline()
        client = self.start(self.net.a, self.args.polypath, "perf", "client", *to, "-t", seconds, "-i", "0", "-J",
                            *options)
        reports = self.halves(seconds + 0.3)
        sent, got = Ended(client, 120), Ended(server, 10)
        if not sent.out:
            raise RuntimeError(f"polypath: {sent.err.strip()} {got.err.strip()}")
        (result,) = json.loads(sent.out)["end"]["associations"]
        packets = sum(path["bytes_sent"] for path in result["paths"]) / 1440
        again = sum(path["retransmits"] for path in result["paths"])
        return {"bytes": result["sent"]["bytes"], "seconds": result["sent"]["seconds"], "cpu": sent.cpu + got.cpu,
                "retransmitted": 100 * again / max(1, packets), "reports": reports}

    def file(self, contender: str, at: float, command: str) -> dict:
        """`polypath send`; `command` goes to netem `at` seconds after the start."""
        options, seconds = self.options(contender.split("-")[1]), self.args.seconds
        bind, to = self.addresses()
        source, target = self.folder / "source", self.folder / "received"
        target.mkdir()
        with source.open("wb") as file:
            file.truncate(1 << 30)
        watch = self.start(self.net.b, *BULK, "watch", target, seconds)
        watch.stdout.readline()
        receiver = self.start(self.net.b, self.args.polypath, "recv", *bind, "-o", target / "file", "--resume-wait", 0,
                              *options)
        receiver.stderr.readline()
        sender = self.start(self.net.a, self.args.polypath, "send", source, *to, "-q", "--retry", 0, *options)
        cut, reports = self.fault(at, command, seconds)
        watched = Ended(watch, 30)
        for popen in (sender, receiver):
            os.kill(popen.pid, signal.SIGKILL)
        ended = [Ended(popen, 5) for popen in (sender, receiver)]
        used = sum(process.cpu for process in ended)
        if not watched.out:
            raise RuntimeError(f"polypath: {' '.join(process.err.strip() for process in ended)}")
        log = json.loads(watched.out)
        return {"bytes": log["bytes"], "seconds": log["last"] - log["first"], "cpu": used, "retransmitted": 0.0,
                "gap": longest_gap(log, cut), "reports": reports}


def longest_gap(log: dict, after: float) -> float:
    """Longest time without new bytes after an instant, in milliseconds."""
    return 1000 * max([length for start, length in log["gaps"] if start + length > after], default=0.0)


def row(run: dict, report: dict, dropped: int) -> dict:
    """The numbers of a run."""
    half, end = run["reports"]
    forward = [(a, b) for a, b in zip(half["links"], end["links"], strict=True)][::2]
    packets = sum(b["queued_packets"] - a["queued_packets"] for a, b in forward)
    waited = sum(b["queued_ms"] - a["queued_ms"] for a, b in forward)
    counters = [link["counters"] for link in report["links"]]
    return {
        "mbit_s": f"{run['bytes'] * 8e-6 / max(run['seconds'], 1e-3):.2f}", "seconds": f"{run['seconds']:.2f}",
        "retransmitted": f"{run['retransmitted']:.3f}", "queue_ms": f"{waited / max(1, packets):.2f}",
        "cpu_s_per_gb": f"{run['cpu'] / max(run['bytes'] / 1e9, 1e-6):.2f}",
        "longest_gap_ms": f"{run['gap']:.0f}" if "gap" in run else "",
        "lost": sum(c["lost"] for c in counters), "queue_drops": sum(c["dropped_queue"] for c in counters),
        "late_over_1_ms": f"{report['late']['over_1_ms'] / max(1, report['late']['packets']):.4f}",
        "late_ms_most": f"{report['late']['ms_most']:.1f}", "load": f"{os.getloadavg()[0]:.1f}",
        "note": late(report, dropped),
    }


def fault_of(cell: str, number: int) -> tuple[int, str, float]:
    """The path that is cut, the direction, and the time after the start: not always at the same moment between packets
    and acknowledgements."""
    path, what = cell.split(", path ")[1].split(" ", 1)
    return int(path), "back" if what == "acks cut" else "both", 4 + 0.137 * number


def simulated(args: argparse.Namespace, scenario: str, controller: str, cell: str, number: int) -> dict:
    """The same network, transfer and fault in the simulator, for the time that polypath took on sockets: a sender
    that stops after some seconds has its buffer to empty."""
    limit = max(args.seconds, args.took.get((cell, f"polypath-{controller}", str(number)), 0))
    text = scenario + (
        f'[workload]\nkind = "bulk"\nsize = "100 GB"\nmessage_size = "64 KiB"\n'
        f'[transport]\nencapsulation = "udp"\n[policy]\ncongestion = "{controller}"\n'
        f'[run]\nlimit = "{limit} s"\ncheck_content = false\ncheck_checksums = false\ncheck_every = "end"\n'
        f'blackout = "5 ms"\n')
    after = 0.0
    if args.part == "cuts":
        path, direction, after = fault_of(cell, number)
        text += f'[[fault]]\nat = "{after:.3f} s"\npath = {path}\nkind = "down"\ndirection = "{direction}"\n'
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([args.polypath, "sim", file.name, "--json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"polypath sim: {done.stderr.strip()}")
    (flow,) = json.loads(done.stdout)["associations"]
    data, paths = flow["forward"], [path["counts"] for path in flow["sender"]["paths"]]
    again = sum(c["fast_retransmissions"] + c["timeout_retransmissions"] for c in paths)
    seconds = data["last_delivered"] - data["first_delivered"]
    gaps = [gap["length"] for gap in data["blackouts"] if gap["start"] + gap["length"] > after]
    return {
        "mbit_s": f"{data['bytes_delivered'] * 8e-6 / seconds:.2f}", "seconds": f"{seconds:.2f}",
        "retransmitted": f"{100 * again / (again + sum(c['data_chunks_sent'] for c in paths)):.3f}",
        "longest_gap_ms": f"{1000 * max(gaps, default=0):.0f}" if after else "",
    }


def measure(args: argparse.Namespace, cell: str, contender: str, number: int) -> dict:
    """One row; repeated while the network is late."""
    if args.part == "links":
        paths, scenario = 1, subprocess.run([LINKS, "toml", cell], check=True, capture_output=True, text=True).stdout
    else:
        links = (PATHS | CUTS)[cell]
        paths, scenario = len(links), two_paths(links)
    scenario = scenario.replace("schema = 1\n", f"schema = 1\nseed = {number}\n", 1)
    own = {"part": args.part, "cell": cell, "contender": contender, "run": number}
    if contender.startswith("simulator"):
        return own | simulated(args, scenario, contender.split("-")[1], cell, number)
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="polypath-netem-", dir=args.scratch) as name:
            folder = Path(name)
            with Net(NETEM, scenario, paths, folder, args.number) as net:
                if contender.startswith("mptcp"):
                    net.multipath()
                run = Run(net, args, folder)
                try:
                    found = one(run, args.part, cell, contender, number)
                    done = row(found, net.do("report"), net.dropped())
                finally:
                    run.end()
        if not done["note"]:
            break
    return own | done


def one(run: Run, part: str, cell: str, contender: str, number: int) -> dict:
    if part != "cuts":
        return run.polypath(contender) if contender.startswith("polypath") else run.kernel(contender)
    path, direction, at = fault_of(cell, number)
    command = f"down p{path}" + (" back" if direction == "back" else "")
    return (run.file if contender.startswith("polypath") else run.kernel)(contender, at, command)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["links", "paths", "cuts"])
    parser.add_argument("--only", default="", help="cells whose name matches this expression")
    parser.add_argument("--seconds", type=float, default=11)
    parser.add_argument("--runs", type=int, default=1, help="runs of each cell and contender")
    parser.add_argument("--contenders", help="such as tcp-cubic,polypath-bbr")
    parser.add_argument("--polypath", type=Path, default=TARGET / "release" / "polypath")
    parser.add_argument("--built", action="store_true", help="take the programs as they are")
    parser.add_argument("--plain", action="store_true", help="polypath without encryption")
    parser.add_argument("--number", type=int, default=0, help="of the namespaces, for several at a time")
    parser.add_argument("--scratch", help="folder for what is transferred")
    parser.add_argument("--out", type=Path, help="append the rows that it does not have yet to this file")
    args = parser.parse_args()
    if why := problem():
        sys.exit(f"sockets: {why}")
    if not args.built:
        build_cargo("-p", "polypath-sim", "--example", "netem", "--example", "links")
    cells = {"links": grid(), "paths": list(PATHS), "cuts": list(CUTS)}[args.part]
    kernel = "tcp" if args.part == "links" else "mptcp"
    contenders = args.contenders.split(",") if args.contenders else [
        f"{who}-{controller}" for controller in ("bbr", "cubic") for who in (kernel, "polypath", "simulator")
        if who != kernel or offers(controller)]
    args.out, published = args.out or sockets_page.data(args.part), args.out is None
    rows = sockets_page.rows(args.out)
    known = {(r["part"], r["cell"], r["contender"], r["run"]) for r in rows}
    args.took = {(r["cell"], r["contender"], r["run"]): float(r["seconds"]) for r in rows}
    with args.out.open("a", encoding="utf-8") as out:
        writer = csv.DictWriter(out, FIELDS, delimiter="\t", lineterminator="\n")
        if not known:
            writer.writeheader()
        for cell in (cell for cell in cells if re.search(args.only, cell)):
            for number in range(1, args.runs + 1):
                for contender in contenders:
                    if (args.part, cell, contender, str(number)) not in known:
                        done = measure(args, cell, contender, number)
                        args.took[cell, contender, str(number)] = float(done["seconds"])
                        writer.writerow(done)
                        out.flush()
    if published:
        sockets_page.write(args.part)


if __name__ == "__main__":
    main()
