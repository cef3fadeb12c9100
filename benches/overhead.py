"""Measures what `polypath run` and libpolypath add to the crate: goodput, CPU time, round-trip times, memory.

The crate is measured by its example `loopback`, the socket functions by benches/peers/sctp_sockets.c, which is
built twice: for the system's functions, run under `polypath run`, and for libpolypath's. All of them use the same
profile, buffers and message sizes, in clear, over loopback. The contenders take turns; ratios and differences are
taken within a round.
"""

import json
import statistics
import subprocess
from dataclasses import dataclass

from earlier import interval
from processes import PORT, ROOT, TARGET, Bulk, Failed, Process, build_cargo, progress, run, transfer

SIZE = 16 * 1024
PING, PINGS = 64, 20_000
MANY, ROUNDS = 1000, 20
SCTP_PORT = 9260
#: As the example sets them.
CONFIG = {"receive_buffer": 4 << 20, "send_buffer": 4 << 20, "path_mtu": 1500}
CRATE, COPIES, RUN, LIBRARY = "the crate", "the crate, with copies", "`polypath run`", "libpolypath"


@dataclass
class Contender:
    """Programs in front of the words of the roles, and whether these are those of the example."""

    words: list[object]
    example: bool

    def bulk(self, seconds: float) -> tuple[list[object], list[object]]:
        if self.example:
            return ([*self.words, "recv", "--udp-port", PORT],
                    [*self.words, "send", f"127.0.0.1:{PORT}", "--size", SIZE, "--seconds", seconds])
        return [*self.words, "recv", SCTP_PORT], [*self.words, "send", SCTP_PORT, seconds, SIZE]

    def pings(self) -> tuple[list[object], list[object]]:
        if self.example:
            return ([*self.words, "echo", "--udp-port", PORT],
                    [*self.words, "ping", f"127.0.0.1:{PORT}", "--size", PING, "--count", PINGS])
        return [*self.words, "echo", SCTP_PORT], [*self.words, "ping", SCTP_PORT, PINGS, PING]


def build() -> dict[str, Contender]:
    """Build all programs."""
    build_cargo("-p", "polypath-cli", "-p", "polypath-preload", "-p", "polypath-c")
    build_cargo("-p", "polypath", "--example", "loopback")
    release, folder, source = TARGET / "release", TARGET / "bench", ROOT / "benches" / "peers" / "sctp_sockets.c"
    folder.mkdir(parents=True, exist_ok=True)
    include = ROOT / "crates" / "polypath-c" / "include"
    for words in (["-o", folder / "sctp_sockets", source, "-lsctp"],
                  ["-DPOLYPATH", f"-I{include}", "-o", folder / "polypath_sockets", source,
                   release / "libpolypath.a", "-lpthread", "-ldl", "-lm", "-lgcc_s"]):
        done = subprocess.run(["gcc", "-O2", *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"sctp_sockets.c: {done.stderr}")
    config = "\n".join(f"{key}={value}" for key, value in CONFIG.items())
    options = [word for key, value in CONFIG.items() for word in ("--config", f"{key}={value}")]
    environment = {"PORT": PORT, "PEER_PORT": PORT, "PROFILE": "modern", "CONFIG": config}
    example = release / "examples" / "loopback"
    return {
        CRATE: Contender([example], True),
        COPIES: Contender([example, "--copy"], True),
        RUN: Contender([release / "polypath", "run", "--port", PORT, "--peer-port", PORT, "--profile", "modern",
                        *options, "--", folder / "sctp_sockets"], False),
        LIBRARY: Contender(["env", *(f"POLYPATH_RUN_{key}={value}" for key, value in environment.items()),
                            folder / "polypath_sockets"], False),
    }


def both(server: list[object], client: list[object]) -> tuple[dict, dict]:
    """Run a server and its client to their ends; return what they report."""
    with Process(server) as serving:
        serving.ready()
        asked = run(client)
        served = serving.end(30)
    return json.loads(served.out.splitlines()[-1]), json.loads(asked.out.splitlines()[-1])


@dataclass
class Overhead:
    """All runs, by contender."""

    bulk: dict[str, list[Bulk]]
    pings: dict[str, list[dict]]
    many: dict[str, list[tuple[dict, dict]]]


def measure(rounds: int, seconds: float) -> Overhead:
    contenders = build()
    names = list(contenders)
    result = Overhead({name: [] for name in names}, {name: [] for name in names if name != COPIES}, {})
    for number in range(rounds):
        progress("overhead", number, rounds)
        for name in names if number % 2 else reversed(names):
            result.bulk[name].append(transfer(*contenders[name].bulk(seconds), seconds))
            if name in result.pings:
                result.pings[name].append(both(*contenders[name].pings())[1])
    for number in range(max(1, rounds // 3)):
        progress("many associations", number, max(1, rounds // 3))
        for kind in ("one", "many"):
            words = contenders[RUN].words
            found = both([*words, "serve", SCTP_PORT, MANY, ROUNDS, kind], [*words, "clients", SCTP_PORT, MANY, ROUNDS])
            result.many.setdefault(kind, []).append(found)
    return result


def ratios(runs: list[Bulk], base: list[Bulk], value) -> str:
    """Median and interval of the ratios within rounds."""
    found = [value(one) / value(other) for one, other in zip(runs, base, strict=True)]
    low, high = interval(found)
    return f"{statistics.median(found):.3f} ({low:.3f} - {high:.3f})"


def page(result: Overhead, seconds: float) -> list[str]:
    def middle(values) -> float:
        return statistics.median(values)

    def cpu(one: Bulk) -> float:
        return one.sender + one.receiver

    lines = [
        "## Overhead of the socket functions",
        "",
        f"Messages of {SIZE // 1024} KiB in one association, {seconds:g} s a run, settings as above: the crate used",
        "directly, and a C program with `sctp_sendmsg` and `sctp_recvmsg` (`benches/peers/sctp_sockets.c`), under",
        "`polypath run` and linked with libpolypath. The crate's own program neither writes what it sends nor reads",
        "what it receives; \"with copies\", it copies each message from and to a buffer, as the socket functions",
        "have to. Ratios are those of runs next to each other, with the 95 % interval of their median.",
        "",
        "| | MB/s | CPU s/GB sender | receiver | goodput, of the crate's | CPU, of the crate's "
        "| goodput, of that with copies | CPU |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in result.bulk.items():
        shown = [f"{ratios(runs, result.bulk[base], value)}" if name not in (CRATE, base) else ""
                 for base in (CRATE, COPIES) for value in (lambda one: one.rate, cpu)]
        lines.append(f"| {name} | {middle(one.rate for one in runs):.0f} | {middle(one.sender for one in runs):.3f} "
                     f"| {middle(one.receiver for one in runs):.3f} | {' | '.join(shown)} |")
    lines += ["", f"Round trips of {PING} bytes, {PINGS} in a run, one after the other:", "",
              "| | median, us | 99th percentile, us | added to the crate's median, us |", "|---|---|---|---|"]
    for name, runs in result.pings.items():
        added = [one["median_us"] - other["median_us"]
                 for one, other in zip(runs, result.pings[CRATE], strict=True)]
        low, high = interval(added)
        shown = "" if name == CRATE else f"{middle(added):.1f} ({low:.1f} - {high:.1f})"
        lines.append(f"| {name} | {middle(one['median_us'] for one in runs):.1f} "
                     f"| {middle(one['p99_us'] for one in runs):.1f} | {shown} |")
    lines += ["",
              f"{MANY} associations under `polypath run`, {ROUNDS} messages of {PING} bytes to and fro on each:", "",
              "| server | | s to open all | s for the messages | CPU s | KiB for each association |",
              "|---|---|---|---|---|---|"]
    for kind, runs in result.many.items():
        title = "one-to-one, accepted" if kind == "one" else "one-to-many"
        for side, at in (("server", 0), ("client", 1)):
            one = {key: middle(run[at][key] for run in runs) for key in ("setup_s", "exchange_s", "cpu_s", "kib_each")}
            setup = f"{one['setup_s']:.2f}" if one["setup_s"] else ""
            lines.append(f"| {title} | {side} | {setup} | {one['exchange_s']:.2f} | {one['cpu_s']:.2f} "
                         f"| {one['kib_each']:.0f} |")
    return [*lines, ""]
