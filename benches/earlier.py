"""This tree beside an earlier revision of it: what everything that has come since costs where it is off.

The earlier one is built from the repository's own history, in a worktree below the target folder. It gets what has
been made faster since and has nothing to do with the extensions (earlier.patch: blocks of the receive buffer are used
again, a busy driver lets the application go first), or that would hide what they cost.
"""

import dataclasses
import hashlib
import random
import statistics
import subprocess
import sys
from pathlib import Path

from processes import PORT, ROOT, SCENARIO, TARGET, build_cargo, progress, run, transfer

#: The last revision without the extensions: partial reliability, I-DATA and stream schedulers, stream
#: reconfiguration, I bit, ECN, path MTU discovery, AUTH, ASCONF, zero checksum, DTLS, NR-SACK, delay-aware scheduler.
BEFORE_EXTENSIONS = "308460ab367f05a3f2937a3fa0af04a2e8446016"
PATCH = Path(__file__).with_name("earlier.patch")
SIZE = 16 * 1024
SHARE = 0.95


@dataclasses.dataclass
class Costs:
    """Ratios of CPU seconds, now over then, pair by pair."""

    simulated: list[float]
    sockets: list[float]


def build(revision: str) -> Path:
    """The earlier revision's programs; the folder that they are in."""
    name = f"{revision[:7]}-{hashlib.sha256(PATCH.read_bytes()).hexdigest()[:7]}"
    place, target = TARGET / "earlier" / name, TARGET / "earlier" / f"{name}-target"
    if not place.exists():
        # By force: `make clean` may have removed one that git still knows.
        subprocess.run(["git", "worktree", "add", "-q", "--force", "--detach", place, revision], cwd=ROOT, check=True)
        subprocess.run(["git", "apply", PATCH], cwd=place, check=True)
    build_cargo("-p", "polypath-cli", root=place, target=target)
    build_cargo("-p", "polypath", "--example", "loopback", root=place, target=target)
    return target / "release"


def compare(rounds: int, seconds: float) -> Costs:
    """Both in turn: A B, B A, and so on."""
    then, now = build(BEFORE_EXTENSIONS), TARGET / "release"

    def simulated(programs: Path) -> float:
        return run([programs / "polypath", "sim", SCENARIO, "--json"]).cpu

    def sockets(programs: Path) -> float:
        loopback = programs / "examples" / "loopback"
        bulk = transfer([loopback, "recv", "--udp-port", PORT],
                        [loopback, "send", f"127.0.0.1:{PORT}", "--size", SIZE, "--seconds", seconds], seconds)
        return bulk.sender + bulk.receiver

    def ratios(what: str, cost, pairs: int) -> list[float]:
        found = []
        for number in range(pairs):
            progress(f"beside {BEFORE_EXTENSIONS[:7]}, {what}", number, pairs)
            costs = {}
            for programs in (then, now) if number % 2 else (now, then):
                costs[programs] = cost(programs)
            found.append(costs[now] / costs[then])
        return found

    # Both short: a simulation takes a tenth of a second.
    return Costs(ratios("simulator", simulated, 30 * rounds), ratios("sockets", sockets, 6 * rounds))


def interval(ratios: list[float]) -> tuple[float, float]:
    """Where the median of other pairs would lie (bootstrap), 95 %."""
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(4000))
    cut = round(len(medians) * (1 - SHARE) / 2)
    return medians[cut], medians[-1 - cut]


def page(costs: Costs) -> list[str]:
    lines = [
        "## Extensions that are off",
        "",
        f"CPU seconds of this revision over those of {BEFORE_EXTENSIONS[:7]}, the last one without the extensions, in",
        f"pairs; neither uses one. Sockets in clear, messages of {SIZE // 1024} KiB, both sides. What has been made",
        "faster since for other reasons is in both (benches/earlier.patch).",
        "",
        "| | pairs | median | 95 % interval |",
        "|---|---|---|---|",
    ]
    for name, ratios in (("simulator: 80 MiB at 3 % loss", costs.simulated), ("sockets", costs.sockets)):
        low, high = interval(ratios)
        lines.append(f"| {name} | {len(ratios)} | {statistics.median(ratios):.3f} | {low:.3f} - {high:.3f} |")
    return [*lines, ""]


def is_there() -> bool:
    """Whether the history reaches back so far."""
    found = subprocess.run(["git", "cat-file", "-e", f"{BEFORE_EXTENSIONS}^{{commit}}"], cwd=ROOT,
                           capture_output=True, check=False)
    if found.returncode != 0:
        print(f"no {BEFORE_EXTENSIONS[:7]} in the history: what extensions cost is left out", file=sys.stderr)
    return found.returncode == 0
