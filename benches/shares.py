#!/usr/bin/env python3
"""Measures how two flows share a link on real sockets: polypath next to itself and to the kernel's TCP. Needs root.

    benches/shares.py [--only REGEX] [--seconds S] [--runs N] [--pairs A+B,C+D] [--noise PERCENT] [--out FILE]

The second flow starts 2.3 s after the first. Each one's share is what its receiver's host counts of its IP packets in
the second half of the run. A small part of the link is noise: packets of random sizes at random times. Without it the
packets of two flows keep in step with the link, and which of them find its queue full is no chance (Floyd and Jacobson,
On traffic phase effects in packet-switched gateways, 1992). "2" is a flow with two paths over the same link: two
addresses of each host for polypath, two subflows for MPTCP. Pairs of the kernel's own flows show what can be expected.
Without --out, the rows go to docs/shares-sockets.tsv and into docs/links.md.
"""

import argparse
import csv
import json
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import sockets_page
from netem import Net, late, offers, problem, sh
from processes import TARGET, build_cargo, revision
from sockets import ATTEMPTS, BULK, NETEM, PORT, Run

FIELDS = ["cell", "pair", "run", "first_mbit_s", "second_mbit_s", "jain", "queue_ms", "queue_drops", "late_over_1_ms",
          "late_ms_most", "load", "revision", "note"]
# Mbit/s and RTT in ms. The queue holds one bandwidth-delay product.
CELLS = {f"{rate} Mbit/s, {rtt} ms": (rate, rtt) for rate, rtt in ((20, 20), (100, 100), (20, 100), (100, 20))}
PAIRS = [
    "tcp-bbr+tcp-bbr", "polypath-bbr+polypath-bbr", "polypath-bbr+tcp-bbr",
    "tcp-bbr+tcp-cubic", "polypath-bbr+tcp-cubic",
    "tcp-cubic+tcp-cubic", "polypath-cubic+tcp-cubic", "polypath-cubic+polypath-cubic",
    "mptcp2-bbr+tcp-bbr", "polypath2-bbr+tcp-bbr", "mptcp2-bbr+tcp-cubic", "polypath2-bbr+tcp-cubic",
    "polypath2-bbr+polypath-bbr",
]
# Seconds from the start of the first flow to that of the second.
LATER = 2.3
UDP_PORT = 9899
NOISE, NOISE_PORT = Path(__file__).with_name("noise.py"), 7777


def scenario(cell: str, number: int) -> str:
    rate, rtt = CELLS[cell]
    return (f'schema = 1\nseed = {number}\n[[path]]\nname = "p0"\nrate = "{rate} Mbit/s"\ndelay = "{rtt * 500} us"\n'
            f'queue = "{max(3000, rate * rtt * 125)} B"\n')


def prepare(net: Net) -> None:
    """A second address of each host on the link, and a counter for each flow at the receiving one."""
    for name, device, last in ((net.a, net.devices[0][0], 3), (net.b, net.devices[0][1], 4)):
        sh("ip", "-n", name, "addr", "add", f"10.91.0.{last}/24", "dev", device)
    rules = "".join(
        f"add counter inet shares flow{n}\n"
        f"add rule inet shares in tcp dport {PORT + n} counter name flow{n}\n"
        f"add rule inet shares in udp dport {UDP_PORT + n} counter name flow{n}\n" for n in (0, 1))
    rules += f"add rule inet shares in udp dport {NOISE_PORT} drop\n"
    file = net.folder / "shares.nft"
    file.write_text("add table inet shares\nadd chain inet shares in { type filter hook input priority 0; }\n" + rules)
    sh(*net.inside(net.b), "nft", "-f", file)


def counted(net: Net) -> list[int]:
    """Bytes of both flows."""
    found = json.loads(sh(*net.inside(net.b), "nft", "-j", "list", "counters", "table", "inet", "shares"))
    counters = [entry["counter"] for entry in found["nftables"] if "counter" in entry]
    return [next(counter["bytes"] for counter in counters if counter["name"] == f"flow{n}") for n in (0, 1)]


def begin(run: Run, contender: str, number: int, seconds: float) -> None:
    """Starts a flow that lasts for at least `seconds`."""
    kind, controller = contender.split("-")
    two = kind.endswith("2")
    if kind.startswith("polypath"):
        options, port = run.options(controller), UDP_PORT + number
        far, near = ["10.91.0.2", "10.91.0.4"][:1 + two], ["10.91.0.1", "10.91.0.3"][:1 + two]
        ways = [f"{to}:{port}={own}" for to, own in zip(far, near, strict=True)]
        via = [word for way in ways[1:] for word in ("--via", way)]
        server = run.start(run.net.b, run.args.polypath, "perf", "server", "-1", "-b", ",".join(far), "-u", port,
                           *options)
        server.stderr.readline()
        run.start(run.net.a, run.args.polypath, "perf", "client", ways[0], *via, "-t", seconds + 5, "-i", "0", "-J",
                  *options)
        return
    if two:
        run.net.multipath()
        sh("ip", "-n", run.net.a, "mptcp", "endpoint", "add", "10.91.0.3", "dev", run.net.devices[0][0], "subflow")
    protocol = "mptcp" if two else "tcp"
    receiver = run.start(run.net.b, *BULK, "recv", protocol, "10.91.0.2", PORT + number, seconds + 5)
    receiver.stdout.readline()
    run.start(run.net.a, *BULK, "send", protocol, "10.91.0.2", PORT + number, seconds + 5, controller, "10.91.0.1")


def share(run: Run, pair: str, seconds: float, noise: float) -> dict:
    """One pair over a network, with `noise` bits per second between them."""
    if noise:
        run.start(run.net.a, sys.executable, NOISE, "10.91.0.2", NOISE_PORT, noise, seconds + 5)
    net, began = run.net, time.monotonic()
    for number, contender in enumerate(pair.split("+")):
        begin(run, contender, number, seconds - number * LATER)
        if number == 0:
            time.sleep(max(0.0, began + LATER - time.monotonic()))
    time.sleep(max(0.0, began + seconds / 2 - time.monotonic()))
    half, before, at = net.do("report"), counted(net), time.monotonic()
    time.sleep(max(0.0, began + seconds - time.monotonic()))
    end, after, took = net.do("report"), counted(net), time.monotonic() - at
    rates = [(b - a) * 8e-6 / took for a, b in zip(before, after, strict=True)]
    a, b = half["links"][0], end["links"][0]
    waited = (b["queued_ms"] - a["queued_ms"]) / max(1, b["queued_packets"] - a["queued_packets"])
    return {
        "first_mbit_s": f"{rates[0]:.2f}", "second_mbit_s": f"{rates[1]:.2f}",
        "jain": f"{sum(rates) ** 2 / max(2 * sum(rate * rate for rate in rates), 1e-9):.4f}",
        "queue_ms": f"{waited:.1f}", "queue_drops": end["links"][0]["counters"]["dropped_queue"],
        "late_over_1_ms": f"{end['late']['over_1_ms'] / max(1, end['late']['packets']):.4f}",
        "late_ms_most": f"{end['late']['ms_most']:.1f}", "load": f"{os.getloadavg()[0]:.1f}",
        "revision": revision(), "note": late(end, net.dropped()),
    }


def measure(args: argparse.Namespace, cell: str, pair: str, number: int) -> dict:
    """One row; repeated while the network is late."""
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="polypath-netem-") as name:
            folder = Path(name)
            with Net(NETEM, scenario(cell, number), 1, folder, args.number) as net:
                prepare(net)
                run = Run(net, args, folder)
                try:
                    done = share(run, pair, args.seconds, CELLS[cell][0] * 1e4 * args.noise)
                finally:
                    run.end()
        if not done["note"]:
            break
    return {"cell": cell, "pair": pair, "run": number} | done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cells whose name matches this expression")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--runs", type=int, default=1, help="runs of each cell and pair")
    parser.add_argument("--noise", type=float, default=2, help="percent of the link's rate; 2")
    parser.add_argument("--pairs", help="such as tcp-bbr+tcp-bbr,polypath-bbr+tcp-cubic")
    parser.add_argument("--polypath", type=Path, default=TARGET / "release" / "polypath")
    parser.add_argument("--built", action="store_true", help="take the programs as they are")
    parser.add_argument("--plain", action="store_true", help="polypath without encryption")
    parser.add_argument("--number", type=int, default=0, help="of the namespaces, for several at a time")
    parser.add_argument("--out", type=Path, help="append the rows that it does not have yet to this file")
    args = parser.parse_args()
    if why := problem() or (None if shutil.which("nft") else "no nft"):
        sys.exit(f"shares: {why}")
    if not args.built:
        build_cargo("-p", "polypath-sim", "--example", "netem")
    pairs = args.pairs.split(",") if args.pairs else PAIRS
    pairs = [pair for pair in pairs
             if all("tcp" not in flow or offers(flow.split("-")[1]) for flow in pair.split("+"))]
    file = args.out or sockets_page.data("shares")
    known = {(row["cell"], row["pair"], row["run"]) for row in sockets_page.rows(file)}
    with file.open("a", encoding="utf-8") as out:
        writer = csv.DictWriter(out, FIELDS, delimiter="\t", lineterminator="\n")
        if not known:
            writer.writeheader()
        for number in range(1, args.runs + 1):
            for cell in (cell for cell in CELLS if re.search(args.only, cell)):
                for pair in (pair for pair in pairs if (cell, pair, str(number)) not in known):
                    writer.writerow(measure(args, cell, pair, number))
                    out.flush()
    if args.out is None:
        sockets_page.write("shares")


if __name__ == "__main__":
    main()
