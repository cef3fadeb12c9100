#!/usr/bin/env python3
"""Measures transfers over a table of links in the simulator, and writes docs/links.md and docs/links.csv.

    benches/links.py [--only REGEX] [--jobs N] [KEY=VALUE ...]

KEY=VALUE are settings that all runs share: `congestion=cubic` is a policy, `transport.rto_min="1 s"` a parameter. With
--only or settings the rows go to stdout instead of the docs. The cells, and what is measured, are in
crates/polypath-sim/examples/links/.
"""

import argparse
import concurrent.futures
import csv
import os
import re
import subprocess
import sys
from collections import defaultdict

import sockets_page
from processes import ROOT, TARGET, build_cargo, revision

PROGRAM = TARGET / "release" / "examples" / "links"
CONTROLLERS = ("bbr", "cubic")
GROUPS = {
    "grid": "Rate, round-trip time, loss, queue",
    "bloat": "A queue of one second",
    "bursts": "Bursts of losses (Gilbert-Elliott: 0.2 % to the bad state, 20 % back, half of the packets lost there)",
    "reordering": "Reordering: one packet in ten is late by up to 1, 5 or 20 ms",
    "ack-loss": "5 % of the acknowledgements are lost",
    "policer": "A policer at half the rate, bucket of 32 or 250 kB",
    "trace": "Rates that move every 100 ms as those of LTE do",
    "two": "Two flows, the second one 2.3 s after the first",
}


def names() -> list[str]:
    """All cells."""
    return subprocess.run([PROGRAM, "list"], check=True, capture_output=True, text=True).stdout.split()


def cost(name: str) -> int:
    """About the packets of a run: the longest ones go first, so that the processors end together."""
    parts = name.split(":")
    return int(parts[1]) * max(110, int(parts[2]))


def measure(name: str, settings: list[str]) -> dict[str, str]:
    """One row."""
    done = subprocess.run([PROGRAM, name, *settings], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    return next(csv.DictReader(done.stdout.splitlines()))


def rows(cells: list[str], settings: list[str], jobs: int) -> list[dict[str, str]]:
    """The rows of these cells, in their order."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = {name: pool.submit(measure, name, settings) for name in sorted(cells, key=cost, reverse=True)}
        for count, _ in enumerate(concurrent.futures.as_completed(runs.values()), 1):
            print(f"{count} of {len(runs)} cells", end="\r", file=sys.stderr)
        return [runs[name].result() for name in cells]


def page(table: list[dict[str, str]]) -> str:
    """docs/links.md."""
    head = (
        "# Fast on which links\n\n"
        "`make links` writes this summary and [links.csv](links.csv), which has every cell of\n"
        "`cargo run --release -p polypath-sim --example links -- list`. Transfers in the simulator with default\n"
        "settings (profile `modern`), and with `congestion=cubic`, for eleven seconds or a hundred round trips.\n\n"
        "- *share*: goodput from the second second on, of what payload could use of the link.\n"
        "- *of ideal* (`of_ideal`): goodput overall, of what a sender delivers whose window doubles in each round\n"
        "  trip until it fills the link, after two round trips for the handshake.\n"
        "- *queue* (`queue_ms`): mean delay by the queue in the second half of the run, in milliseconds.\n"
        "- *retransmitted*: share of all chunks, in percent. *CPU* (`cpu_s_per_gb`): seconds per GB, both hosts and\n"
        "  the network.\n\n"
        f"Measured at polypath {revision()}.\n\n"
        "## Summary: lowest share, and median\n\n"
        "| cells | `bbr` | `cubic` |\n|---|---|---|\n"
    )
    groups: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in table:
        group, _, _, loss, queue = row["cell"].split(":")[:5]
        key = f"{group}, loss {loss} %, queue {queue} BDP" if group == "grid" else group
        groups[key].append(row)
    lines = []
    for key, members in groups.items():
        entries = []
        for controller in CONTROLLERS:
            own = sorted((float(r["share"]), r["cell"]) for r in members if r["congestion"] == controller)
            worst = ", ".join(own[0][1].split(":")[1:3])
            entries.append(f"{own[0][0]:.2f} ({worst}); {own[len(own) // 2][0]:.2f}")
        lines.append(f"| {key} | {' | '.join(entries)} |")
    text = head + "\n".join(lines) + "\n"
    text += "\nAt 1 Gbit/s and 600 ms the link holds 75 MB, of which slow start leaves 0.87 of the minute.\n"
    text += "\nThe groups of cells:\n\n" + "".join(f"- {group}: {title}\n" for group, title in GROUPS.items())
    found = sockets_page.section("links")
    return f"{text}\n{found}" if found else text


def write_csv(table: list[dict[str, str]], out) -> None:
    """All columns."""
    writer = csv.DictWriter(out, table[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cells whose name matches this expression")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    args = parser.parse_args()
    build_cargo("-p", "polypath-sim", "--example", "links")
    cells = [name for name in names() if re.search(args.only, name)]
    if not cells:
        raise SystemExit(f"no cell matches {args.only}")
    given = any(setting.startswith("congestion=") for setting in args.settings)
    table = []
    for controller in (None,) if given else CONTROLLERS:
        settings = args.settings + ([f"congestion={controller}"] if controller else [])
        for row in rows(cells, settings, args.jobs):
            table.append({"congestion": controller or "", **row} if controller else row)
    if args.only or args.settings:
        write_csv(table, sys.stdout)
        return
    with (ROOT / "docs" / "links.csv").open("w", encoding="utf-8") as out:
        write_csv(table, out)
    (ROOT / "docs" / "links.md").write_text(page(table), encoding="utf-8")


if __name__ == "__main__":
    main()
