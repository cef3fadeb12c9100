"""The parts of docs/links.md and docs/paths.md that are measured on real sockets (benches/sockets.py and shares.py)."""

import csv
import statistics
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
HEADING = "## On real sockets"
# The parts of each page.
PAGES = {"links": ["links", "shares"], "paths": ["paths", "cuts"]}
KERNEL = {"links": "tcp", "paths": "mptcp", "cuts": "mptcp"}

METHOD = """\
Two network namespaces, and between them the simulator's links in a program of its own (the example `netem` of
polypath-sim), over which polypath and the kernel's {kernel} go in turns, with the same seed. `{command}`
measures it, as root; every row is in {data}.
Goodput in Mbit/s from the receiving application's first byte to its last, over 11 s. polypath is encrypted, {kernel}
is not. "of Linux" is polypath's goodput over that of Linux with the same algorithm (its BBR is version 1), "of
simulator" over that of the same cell in the simulator; below 0.95 and beyond 10 % they are marked with "!". Single
runs differ where losses are random. The simulator runs for the time that polypath took, which is longer where its
buffer had to be emptied in the end; Linux is measured for 11 s. CPU seconds are those of both processes; the kernel's
work for packets in interrupts, most of that of {kernel}, is not in them.
"""
CUTS = """\
The longest time in milliseconds without delivered bytes after a silent cut of one of two paths, 4 s after the start:
both directions, or that of acknowledgements. Medians, and the longest in parentheses.
"""
SHARES = """\
Two flows over one link whose queue holds one bandwidth-delay product, the second one 2.3 s after the first:
`benches/shares.py`, rows in [shares-sockets.tsv](shares-sockets.tsv). Mbit/s of IP packets of both from the 30th to
the 60th second, and Jain's index, from 0.5 (one takes all) to 1 (both have the same). "2" is a flow with two paths over
the same link. Pairs of Linux' own flows (its BBR is version 1) show what can be expected. 2 % of the link are packets
of random sizes at random times: without them, packets of two flows keep in step with the link, and which of them find
the queue full is no chance. Of `polypath-cubic` and `tcp-cubic` at 100 Mbit/s and 20 ms the latter then lost three
quarters of the packets with a fifth of the rate (Floyd and Jacobson 1992 describe the effect). The rows of revision
b7303ab6, flows with two paths, have no such packets. Single runs: who started first matters for minutes where flows of
CUBIC have large windows.
"""


def data(part: str) -> Path:
    """The rows of a part."""
    return DOCS / f"{part}-sockets.tsv"


def rows(file: Path) -> list[dict[str, str]]:
    """The rows of a file; none if there is no file."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def table(head: list[str], body: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *body])


def values(table_rows: list[dict[str, str]], cell: str, contender: str, column: str) -> list[float]:
    return [float(r[column]) for r in table_rows
            if r["cell"] == cell and r["contender"] == contender and r[column] and not r["note"]]


def ratio(own: list[float], other: list[float], low: float, high: float) -> str:
    """Of the medians, marked beyond the bounds."""
    if not own or not other:
        return ""
    found = statistics.median(own) / max(statistics.median(other), 1e-9)
    return f"{found:.2f}" + ("" if low <= round(found, 2) <= high else " !")


def name(cell: str) -> str:
    """A cell of one path in words."""
    group, rate, rtt, loss, queue, *more = cell.split(":")
    words = {"grid": f"{loss} %, {queue} BDP", "bloat": "queue of 1 s", "bursts": "bursts of losses"}
    return f"{rate} Mbit/s, {rtt} ms, " + words.get(group, f"policer at half the rate, bucket of {' '.join(more)} kB")


def goodput(part: str, found: list[dict[str, str]]) -> str:
    """Goodput, retransmissions, queue and CPU of every cell."""
    kernel, body = KERNEL[part], []
    for cell in dict.fromkeys(r["cell"] for r in found):
        for controller in ("bbr", "cubic"):
            def of(who: str, column: str, cell: str = cell, controller: str = controller) -> list[float]:
                return values(found, cell, f"{who}-{controller}", column)

            def both(column: str, digits: int, of=of) -> str:
                sides = [of(who, column) for who in (kernel, "polypath")]
                return " / ".join(f"{statistics.median(side):.{digits}f}" if side else "-" for side in sides)

            if not of("polypath", "mbit_s"):
                continue
            simulated = of("simulator", "mbit_s")
            body.append([
                name(cell) if part == "links" else cell, controller, both("mbit_s", 1),
                f"{statistics.median(simulated):.1f}" if simulated else "",
                ratio(of("polypath", "mbit_s"), of(kernel, "mbit_s"), 0.95, float("inf")),
                ratio(of("polypath", "mbit_s"), simulated, 0.9, 1.1),
                both("retransmitted", 1), both("queue_ms", 0), both("cpu_s_per_gb", 1)])
    head = ["cell", "algorithm", "Mbit/s: Linux / polypath", "simulator", "of Linux", "of simulator",
            "retransmitted, %", "queue, ms", "CPU, s/GB"]
    return table(head, body)


def gaps(found: list[dict[str, str]]) -> str:
    """The longest times without data."""
    contenders = [f"{who}-{controller}" for controller in ("bbr", "cubic")
                  for who in ("mptcp", "polypath", "simulator")]
    body = []
    for cell in dict.fromkeys(r["cell"] for r in found):
        entries = []
        for contender in contenders:
            own = values(found, cell, contender, "longest_gap_ms")
            entries.append(f"{statistics.median(own):.0f} ({max(own):.0f})" if own else "")
        body.append([cell, *entries])
    return table(["Mbit/s / ms", *(f"`{contender}`" for contender in contenders)], body)


def shares(found: list[dict[str, str]]) -> str:
    """What the flows of each pair get."""
    cells, body = list(dict.fromkeys(r["cell"] for r in found)), []
    for pair in dict.fromkeys(r["pair"] for r in found):
        entries = []
        for cell in cells:
            own = [r for r in found if (r["cell"], r["pair"]) == (cell, pair) and not r["note"]]
            first, second, jain = (statistics.median(float(r[column]) for r in own) if own else None
                                   for column in ("first_mbit_s", "second_mbit_s", "jain"))
            entries.append(f"{first:.1f} / {second:.1f}, {jain:.2f}" if own else "")
        body.append([" + ".join(f"`{flow}`" for flow in pair.split("+")), *entries])
    return table(["flows", *cells], body)


def section(page: str) -> str:
    """The section of a page, with its heading; empty without rows."""
    found = {part: rows(data(part)) for part in PAGES[page]}
    if not any(found.values()):
        return ""
    files = [data(part).name for part in found if found[part] and part != "shares"]
    files = " and ".join(f"[{file}]({file})" for file in files)
    kernel = "TCP" if page == "links" else "MPTCP"
    commands = f"benches/sockets.py {page}"
    text = f"{HEADING}\n\n{METHOD.format(kernel=kernel, command=commands, data=files)}\n"
    if found[page]:
        text += goodput(page, found[page]) + "\n"
    if found.get("cuts"):
        text += f"\n{CUTS}\n{gaps(found['cuts'])}\n"
    if found.get("shares"):
        text += f"\n### Next to another flow\n\n{SHARES}\n{shares(found['shares'])}\n"
    return text


def write(part: str) -> None:
    """Writes the section of a part's page anew; the rest of the page stays."""
    page = next(page for page, parts in PAGES.items() if part in parts)
    file = DOCS / f"{page}.md"
    before = file.read_text(encoding="utf-8").split(f"\n{HEADING}\n")[0].rstrip("\n")
    file.write_text(f"{before}\n\n{section(page)}", encoding="utf-8")
