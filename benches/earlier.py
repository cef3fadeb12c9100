"""Compares the CPU time of this tree with that of an earlier revision, in pairs.

The earlier revision is built from the repository's own history, in a worktree below the target folder.
"""

import random
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from processes import PORT, ROOT, SCENARIO, TARGET, build_cargo, progress, run, transfer

#: The last revision before the fixes for hostile peers, with their bounds on memory and on work per packet.
BEFORE = "0f1adb6"
SIZE = 16 * 1024
SHARE = 0.95


@dataclass
class Costs:
    """Ratios of CPU seconds, this revision over the earlier one, pair by pair."""

    revision: str
    ratios: dict[str, list[float]]


def build(revision: str) -> Path:
    """Build the earlier revision's programs; return the folder that contains them."""
    place, target = TARGET / "earlier" / revision, TARGET / "earlier" / f"{revision}-target"
    if not place.exists():
        # Force it: `make clean` may have removed a worktree that git still lists.
        subprocess.run(["git", "worktree", "add", "-q", "--force", "--detach", place, revision], cwd=ROOT, check=True)
    build_cargo("-p", "polypath-cli", root=place, target=target)
    build_cargo("-p", "polypath", "--example", "loopback", root=place, target=target)
    return target / "release"


def compare(revision: str, rounds: int, seconds: float) -> Costs:
    """Run both revisions by turns: A B, B A, and so on."""
    then, now = build(revision), TARGET / "release"

    def simulated(programs: Path) -> float:
        return run([programs / "polypath", "sim", SCENARIO, "--json"]).cpu

    def sockets(*options: str, profile: str | None = None):
        def cost(programs: Path) -> float:
            # The earlier revision may have one set of rules only.
            words = [*options, *(["--profile", profile] if profile and programs == now else [])]
            loopback = programs / "examples" / "loopback"
            bulk = transfer([loopback, "recv", *words, "--udp-port", PORT],
                            [loopback, "send", *words, f"127.0.0.1:{PORT}", "--size", SIZE, "--seconds", seconds],
                            seconds)
            return bulk.sender + bulk.receiver
        return cost

    def ratios(what: str, cost, pairs: int) -> list[float]:
        found = []
        for number in range(pairs):
            progress(f"compared with {revision}, {what}", number, pairs)
            costs = {}
            for programs in (then, now) if number % 2 else (now, then):
                costs[programs] = cost(programs)
            found.append(costs[now] / costs[then])
        return found

    # Take more of the short runs: a simulation takes a tenth of a second.
    return Costs(revision, {
        "simulator: 80 MiB at 3 % loss": ratios("simulator", simulated, 30 * rounds),
        "sockets, the rules of RFC 9260": ratios("sockets", sockets(profile="rfc9260"), 6 * rounds),
        "sockets, default settings": ratios("sockets with default settings", sockets(), 6 * rounds),
        "sockets, encrypted, default settings": ratios("encrypted sockets", sockets("--encrypt"), 2 * rounds),
    })


def interval(ratios: list[float]) -> tuple[float, float]:
    """Return the bootstrap interval of the median."""
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(4000))
    cut = round(len(medians) * (1 - SHARE) / 2)
    return medians[cut], medians[-1 - cut]


def page(costs: Costs) -> list[str]:
    lines = [
        "## Compared with an earlier revision",
        "",
        f"CPU seconds of this revision over those of {costs.revision}, in pairs. Sockets carry messages of",
        f"{SIZE // 1024} KiB over loopback; both sides count. Below 1 is faster. By default an association paces,",
        "detects losses in time and uses every path, which that revision does not.",
        "",
        "| | pairs | median | 95 % interval |",
        "|---|---|---|---|",
    ]
    for name, ratios in costs.ratios.items():
        low, high = interval(ratios)
        lines.append(f"| {name} | {len(ratios)} | {statistics.median(ratios):.3f} | {low:.3f} - {high:.3f} |")
    return [*lines, ""]


def is_there(revision: str) -> bool:
    """Report whether the history reaches back to the revision."""
    found = subprocess.run(["git", "cat-file", "-e", f"{revision}^{{commit}}"], cwd=ROOT,
                           capture_output=True, check=False)
    if found.returncode != 0:
        print(f"no {revision} in the history: the comparison is left out", file=sys.stderr)
    return found.returncode == 0
