#!/usr/bin/env python3
"""Measures the retransmission policies at 3, 5 and 8 % loss between real sockets and in the simulator.

Files of 4 MiB as in Caro et al. 2006, a table in Markdown. `make policies`.
"""

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path

from scipy import stats

from support.policies import Point, Sockets, Took, Transfer, difference, simulate

KIBIBYTES = 4096
LOSSES = (3, 5, 8)
# The ends of the axes of Fig. 6, 8 and 9. AllRtxSame sends nothing over the alternate path.
SERIES = [("AllRtxSame", 0), ("AllRtxSame+MFR", 0), ("AllRtxAlt", 0), ("FrSameRtoAlt", 0), ("AllRtxAlt", 10),
          ("AllRtxAlt+HAR", 10), ("AllRtxAlt+TS", 10), ("FrSameRtoAlt", 10)]
PAIRS = [(("AllRtxAlt", 0), ("AllRtxSame", 0)), (("AllRtxAlt", 0), ("FrSameRtoAlt", 0)),
         (("AllRtxSame", 0), ("AllRtxAlt", 10)), (("FrSameRtoAlt", 10), ("AllRtxAlt", 10)),
         (("AllRtxAlt+HAR", 10), ("AllRtxAlt", 10)), (("AllRtxAlt+TS", 10), ("AllRtxAlt", 10)),
         (("AllRtxSame+MFR", 0), ("AllRtxSame", 0))]


def half(runs: int) -> float:
    """Half of a two-sided interval of 90 % for a mean of this number of runs, in standard errors (Student's t)."""
    return float(stats.t.ppf(0.95, runs - 1))


def run(arguments: argparse.Namespace, folder: Path) -> str:
    """The table, with the parameters of its measurement."""
    points = [Point(policy, loss, alternate) for loss in LOSSES for policy, alternate in SERIES]
    seeds = range(arguments.seeds)
    simulated = {point: simulate([Transfer(point, seed, KIBIBYTES) for seed in range(arguments.simulated)],
                                 arguments.limit, folder) for point in points}
    # Start the long ones first, so that the end does not wait for one of them.
    order = sorted(points, key=lambda point: -statistics.mean(simulated[point]))
    transfers = [Transfer(point, seed, KIBIBYTES) for point in order for seed in seeds]
    began = time.monotonic()
    results = Sockets(folder, arguments.limit, arguments.at_once).run(transfers)
    minutes = (time.monotonic() - began) / 60
    took: dict[Point, list[Took]] = {
        point: [one for one, made in zip(results, transfers, strict=True) if made.point == point] for point in points}
    measured = {point: [one.seconds for one in own] for point, own in took.items()}
    late = f"{statistics.mean(one.late_mean for one in results):.2f} ms late on average"
    lines = [
        f"{len(transfers)} transfers, {arguments.at_once} at once, in {minutes:.0f} minutes; the emulators handed "
        f"datagrams over {late}, at most {max(one.late_most for one in results):.0f} ms.",
        "", "| primary / alternate | policy | sockets, s | simulator, same seeds, s "
        f"| simulator, {arguments.simulated} seeds, s |", "|---|---|---|---|---|"]
    for point in points:
        own = [mean(measured[point]), mean(simulated[point][:len(seeds)]), mean(simulated[point])]
        lines.append(f"| {point.primary:g} % / {point.alternate:g} % | {point.policy} | {' | '.join(own)} |")
    lines += ["", "| primary | faster against slower | sockets | simulator, same seeds | simulator, "
              f"{arguments.simulated} seeds | order |", "|---|---|---|---|---|---|"]
    for loss, (fast, slow) in itertools.product(LOSSES, PAIRS):
        lines.append(compare(Point(fast[0], loss, fast[1]), Point(slow[0], loss, slow[1]), measured, simulated,
                             len(seeds)))
    return "\n".join(lines) + "\n"


def compare(fast: Point, slow: Point, measured: dict, simulated: dict, runs: int) -> str:
    """A row that compares two series: differences of the means as fractions of the slower's mean."""
    def share(first: list[float], second: list[float]) -> str:
        found, whole = difference(first, second), statistics.mean(second) / 100
        return f"{found.mean / whole:+.0f} % ± {half(len(first)) * found.error / whole:.0f}"
    here, there = difference(measured[fast], measured[slow]), difference(simulated[fast], simulated[slow])
    unclear = difference(simulated[fast], simulated[slow], runs=runs)
    verdict = "same" if here.mean * there.mean > 0 else "other"
    if abs(unclear.clear()) < half(runs):
        verdict += " (not clear with so few runs)"
    name = f"{fast.policy} ({fast.alternate:g} %), {slow.policy} ({slow.alternate:g} %)"
    return (f"| {fast.primary:g} % | {name} | {share(measured[fast], measured[slow])} "
            f"| {share(simulated[fast][:runs], simulated[slow][:runs])} "
            f"| {share(simulated[fast], simulated[slow])} | {verdict} |")


def mean(values: list[float]) -> str:
    error = statistics.stdev(values) / len(values) ** 0.5
    return f"{statistics.mean(values):.1f} ± {half(len(values)) * error:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8, help="transfers of a series (8)")
    parser.add_argument("--simulated", type=int, default=100, help="simulated ones (100)")
    parser.add_argument("--at-once", type=int, default=80, help="transfers at the same time (80)")
    parser.add_argument("--limit", type=float, default=240, help="seconds for which a transfer counts (240)")
    arguments = parser.parse_args()
    if arguments.seeds < 2 or arguments.simulated < arguments.seeds:
        parser.error("--seeds has to be at least 2, --simulated at least --seeds")
    with tempfile.TemporaryDirectory(prefix="polypath-policies-") as folder:
        sys.stdout.write(run(arguments, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
