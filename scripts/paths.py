#!/usr/bin/env python3
"""Measures several paths together in the simulator and writes docs/paths.md and docs/paths.tsv.

Runs the example `multipath` of polypath-sim, which `make paths` builds. Standard library only.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benches"))

import sockets_page  # noqa: E402
from processes import revision  # noqa: E402

HEAD = """# Several paths

What the profile `modern`, the default, does with several paths, in the simulator. `make paths` measures it and
writes this page; every row is in [paths.tsv](paths.tsv). Queues hold one bandwidth-delay product, at least ten
packets. A row that misses its target is marked with "!".

| part | mechanism | source |
|---|---|---|
| leaving a silent path | failover `suspect` | RFC 7829, RFC 9002 6.2 |
| the path of a retransmission | retransmission `earliest` | Iyengar 2004, RFC 8985 6.2 |
| the path of new data | scheduler `bottleneck-aware` over `delay-aware` | RFC 8382, Kuhn 2014 |
| the path of SACKs | ack `alternating` | RFC 9260 6.4 |
| the path of urgent messages | scheduler `earliest`, copies | Lim 2017, Flach 2013 |
"""

PARTS = {
    "standstill": ("Standstill after a cut", """\
Two or three paths carry a transfer, and one of them fails after 2 s and some round trips of the longest path: in both
directions, in that of the data, in that of the acknowledgements, or by losing half of its packets. The longest time
in milliseconds without newly delivered data until 6 s later, the longest of all seeds; the bound is two round-trip
times of the longer path and 10 ms."""),
    "flapping": ("A flapping path", """\
Goodput in Mbit/s over 20 s, while the last path is up and down in turn for the time in the first column, compared
with the steady path alone."""),
    "aggregation": ("The sum of the paths", """\
Share of the sum of both paths that payload fills from the 4th to the 14th second, without losses. Targets: 0.97
for equal paths, 0.95 for unequal ones."""),
    "lossy": ("The sum of lossy paths", """\
The same with losses on both paths in both directions. Target: 0.85."""),
    "shared": ("A shared bottleneck", """\
Goodput in Mbit/s over a bottleneck that all share, from the 20th to the 60th second, next to a competitor with one
path and the same algorithms: of a sender with one path, and of one with two. Target of the ratio: 0.8 to 1.2. Four
times as many seeds as above, because runs differ in who gets how much."""),
    "messages": ("Messages", """\
Fifty messages of 1 kB a second for a minute over two paths: one of 20 Mbit/s that loses 20 % of its packets in
bursts of 25 packets, and one of 10 Mbit/s with a second of queue that a CUBIC flow fills. The 99th percentile of the
time to delivery in milliseconds, the longest of all seeds: unloaded, of the path with bursts; on each path alone with
the defaults; on both with `delivery = "earliest"`, which has to be better than each path alone; and with "redundant",
which has to be at most 1.2 times the unloaded time ([messages.md](messages.md))."""),
    "papers": ("The papers' grids", """\
Seconds for 4 MiB over two paths of 10 Mbit/s and queues of 50 packets, the first with 90 ms: the defaults, and the
fastest of the papers' policies with the papers' constants in that cell (Caro 2006: RTX to the same path, to the
alternate one, and both, with the best extensions, and PMR 0; Iyengar 2004 and Natarajan 2009: CMT with three
policies, and CMT-PF). Loss of the first and the second path in both directions; in some cells the first path fails
after 3 s. Target: the difference, with its interval of 95 %, is not above 0. Ten times as many seeds as above."""),
}


def rows_of(text: str) -> tuple[list[list[str]], str]:
    """The cells of a Markdown table, heading first, and the line after it."""
    table = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    rest = [line for line in text.splitlines() if line and not line.startswith("|")]
    return [[cell.strip() for cell in row] for row in table if not set("".join(row)) <= {"-"}], " ".join(rest)


def markdown(rows: list[list[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"|{'|'.join(row)}|" if row[0] == "---" else f"| {' | '.join(row)} |" for row in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="all by default")
    parser.add_argument("--every", type=int, default=1, help="measure one cell of this many")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each cell")
    parser.add_argument("--tool", type=Path, help="the built example")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of the page and the data")
    arguments = parser.parse_args()
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    tool = arguments.tool or target / "release" / "examples" / "multipath"
    page, data = [f"{HEAD}\nMeasured at polypath {revision()}.\n"], []
    for part in arguments.parts or PARTS:
        title, text = PARTS[part]
        words = [tool, part, f"every={arguments.every}", f"seeds={arguments.seeds}"]
        done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True)
        rows, summary = rows_of(done.stdout)
        data += ["\t".join([part, *row]) for row in rows]
        head, *body = rows
        missed = [row for row in body if any(cell.endswith("!") for cell in row)]
        sampled = f" One cell of {arguments.every} was measured." if arguments.every > 1 else ""
        if part in ("standstill", "messages"):
            sampled += f" Seeds 1 to {arguments.seeds}." if arguments.seeds > 1 else " Seed 1."
        shown = body if part in ("flapping", "shared", "messages") else missed
        page.append(f"## {title}\n\n{text}{sampled}\n")
        cells = f" ({summary})" if summary else ""
        page.append(f"{len(body) - len(missed)} of {len(body)} rows meet their target{cells}.\n")
        if shown:
            page.append(markdown([head, *shown]) + "\n")
        print(f"{part}: {len(body) - len(missed)} of {len(body)}", flush=True)
    page.append(sockets_page.section("paths"))
    (arguments.out / "paths.md").write_text("\n".join(page))
    (arguments.out / "paths.tsv").write_text("\n".join(data) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
