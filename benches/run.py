#!/usr/bin/env python3
"""Measures speed, always against a peer in the same run: programs take turns (A B A B ...), medians count.

    benches/run.py [--rounds N] [--seconds S] [--only sim|sweeps|loopback|overhead|earlier] [--earlier REVISION]
                   [--output docs/performance.md]

sim:      one file at 3 % loss, simulated: CPU seconds of `polypath sim` and of ns-2.
sweeps:   sweeps of the lab: CPU seconds a run next to ns-2's, and how busy Dask's workers are
          (benches/sweeps.py). Needs the lab's environment (scripts/setup.sh test).
loopback: one association between two processes, messages of 1, 16 and 64 KiB: polypath in clear and
          encrypted, usrsctp, quinn, and plain UDP with and without segmentation offload. Goodput at the
          receiver, CPU seconds per GB of each side.
overhead: what `polypath run` and libpolypath add to the crate (benches/overhead.py).
earlier:  this revision and an earlier one (benches/earlier.py): CPU seconds in pairs, with an interval.

CPU seconds are user and system time of whole processes. Standard library only.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import earlier
import overhead
import sweeps
from processes import PORT, ROOT, SCENARIO, TARGET, Bulk, Failed, build_cargo, progress, run, transfer

HERE = ROOT / "benches"
SIZES = [1024, 16 * 1024, 64 * 1024]
# Measured with `valgrind --tool=callgrind`.
REASON = ["", "The aim of three times is not reached. The run takes 852 million instructions (callgrind, revision",
          "de149ef6), of which the core takes 560 million: it writes and reads every packet as bytes, as on the",
          "wire, while ns-2 passes structures. Three times would leave as many for the whole run. Tried were",
          "checksums only where they are seen, one look at the deadlines for each event, sizes computed once,",
          "smaller entries of the queue of events, queues for each link, a pool of packets, and remembered",
          "addresses: the last of them took 875 to 852 million."]
DATAGRAM = 1452  # bytes of plain UDP, about what a DATA chunk leaves of 1500


def build_peer(name: str, *words: str) -> Path | None:
    """Build a peer's program; return None if its library is not installed."""
    program = TARGET / "bench" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["gcc", "-O2", "-o", program, HERE / "peers" / f"{name}.c", *words],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{name} cannot be built: {done.stderr.splitlines()[:1]}", file=sys.stderr)
        return None
    return program


def build_quinn() -> Path | None:
    """Build the program of quinn, which is a workspace of its own; return None without its crates."""
    target = TARGET / "bench" / "quinn"
    words = ["cargo", "build", "-q", "--release", "--manifest-path", HERE / "peers" / "quinn" / "Cargo.toml"]
    done = subprocess.run(words, env=os.environ | {"CARGO_TARGET_DIR": str(target)}, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        print(f"quinn cannot be built: {done.stderr.splitlines()[:1]}", file=sys.stderr)
        return None
    return target / "release" / "quinn-bulk"


# --- one file at 3 % loss, simulated ---


def simulated(rounds: int) -> dict:
    """CPU seconds of `polypath sim` and of ns-2 for the same scenario."""
    build_cargo("-p", "polypath-cli")
    ours = [TARGET / "release" / "polypath", "sim", SCENARIO, "--json"]
    theirs = ["ns", HERE / "ns2" / "bulk.tcl"]
    contenders = {"polypath": ours}
    result: dict = {"cpu_s": {}, "simulated_s": {}}
    with tempfile.TemporaryDirectory() as folder:
        if shutil.which("ns"):
            contenders["ns-2"] = theirs
            empty = Path(folder) / "empty.tcl"
            empty.write_text("new Simulator\nexit 0\n")
            contenders["ns-2, empty script"] = ["ns", empty]
            trace = Path(folder) / "arrivals"
            run([*theirs, 80, 0.03, 1, trace])
            result["simulated_s"]["ns-2"] = last_arrival(trace)
        samples: dict[str, list[float]] = {name: [] for name in contenders}
        for number in range(rounds):
            progress("sim", number, rounds)
            for name, words in contenders.items():
                done = run(words)
                samples[name].append(done.cpu)
                if name == "polypath":
                    flow = json.loads(done.out)["associations"][0]["forward"]
                    result["simulated_s"]["polypath"] = flow["time_from_start"]
    result["cpu_s"] = samples
    return result


def last_arrival(trace: Path) -> float:
    """Time when the last full packet reached the receiver, from a trace of ns-2."""
    last = 0.0
    with trace.open() as lines:
        for line in lines:
            words = line.split()
            if words[0] == "r" and words[5] == "1500":
                last = float(words[1])
    return last


# --- one association over loopback ---


def loopback(rounds: int, seconds: float) -> dict[str, list[Bulk]]:
    """Measure every program at every message size."""
    build_cargo("-p", "polypath", "--example", "loopback")
    ours = TARGET / "release" / "examples" / "loopback"
    usrsctp = build_peer("usrsctp_bulk", "-lusrsctp")
    udp, quinn = build_peer("udp_bulk"), build_quinn()
    certificate = TARGET / "bench" / "quinn.der"
    contenders: dict[str, tuple[list[object], list[object]]] = {}
    for size in SIZES:
        contenders[f"polypath {size}"] = (
            [ours, "recv", "--udp-port", PORT],
            [ours, "send", f"127.0.0.1:{PORT}", "--size", size, "--seconds", seconds])
        contenders[f"polypath, encrypted {size}"] = (
            [ours, "recv", "--encrypt", "--udp-port", PORT],
            [ours, "send", "--encrypt", f"127.0.0.1:{PORT}", "--size", size, "--seconds", seconds])
        if usrsctp:
            contenders[f"usrsctp {size}"] = (
                [usrsctp, "recv", "127.0.0.1", PORT],
                [usrsctp, "send", "127.0.0.1", PORT + 1, "127.0.0.1", PORT, seconds, size])
        if quinn:
            contenders[f"quinn {size}"] = (
                [quinn, "recv", "127.0.0.1", PORT, certificate],
                [quinn, "send", "127.0.0.1", PORT, certificate, seconds, size])
    if udp:
        for mode in ("offload", "plain"):
            contenders[f"udp {mode}"] = (
                [udp, "recv", "127.0.0.1", PORT, mode],
                [udp, "send", "127.0.0.1", PORT, mode, seconds, DATAGRAM])
    samples: dict[str, list[Bulk]] = {name: [] for name in contenders}
    for number in range(rounds):
        progress("loopback", number, rounds)
        for name, (receiver, sender) in contenders.items():
            samples[name].append(transfer(receiver, sender, seconds))
    return samples


# --- the page ---


def median(values: list[float]) -> float:
    return statistics.median(values)


def spread(values: list[float], digits: int) -> str:
    """Median and range."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f} - {max(values):.{digits}f})"


def simulated_page(result: dict) -> list[str]:
    samples = result["cpu_s"]
    settings = tomllib.loads(SCENARIO.read_text()).get("run", {})
    checks = ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
    lines = [
        "## Simulator: 80 MiB at 3 % loss",
        "",
        "One file over one path (10 Mbit/s, 45 ms one way, 3 % Bernoulli loss each way, receive window",
        "64 KiB): `polypath sim scenarios/bulk-3-percent.toml` and `ns benches/ns2/bulk.tcl`. polypath moves",
        "real packets and checks its invariants while it runs"
        + (f" (`[run]` {checks})" if checks else "")
        + ", but computes",
        "no checksums that neither a capture nor a corrupted packet shows; ns-2 writes no trace.",
        "",
        "| | CPU seconds: median (range) | simulated seconds |",
        "|---|---|---|",
    ]
    for name, values in samples.items():
        simulated_s = result["simulated_s"].get(name)
        shown = f"{simulated_s:.0f}" if simulated_s else ""
        lines.append(f"| {name} | {spread(values, 3)} | {shown} |")
    if "ns-2" in samples:
        ours, theirs = median(samples["polypath"]), median(samples["ns-2"])
        net = theirs - median(samples["ns-2, empty script"])
        lines += ["", f"ns-2 takes {theirs / ours:.2f} times the CPU seconds of polypath, and "
                  f"{net / ours:.2f} times without its start.",
                  "The simulated seconds differ with the dice and the rules: its module follows RFC 4960.",
                  *REASON]
    return [*lines, ""]


def loopback_page(samples: dict[str, list[Bulk]], seconds: float) -> list[str]:
    lines = [
        "## Sockets: one association over loopback",
        "",
        f"One way, ordered, two processes, SCTP in UDP, IP packets of 1500 bytes, buffers of 4 MiB, {seconds:g} s",
        "a run. MB are 10^6 bytes, GB 10^9; goodput is the receiver's.",
        "",
        "polypath sends and receives by segmentation offload (UDP_SEGMENT, UDP_GRO); loopback never cuts such",
        "batches apart, so this is its best case, and one SACK answers a batch. usrsctp makes a system call for",
        "each datagram: what it could reach is plain UDP without offload. Both compute and check every CRC32c.",
        "quinn is QUIC, always encrypted, with writes of that size to one stream instead of messages.",
        "",
        "| messages | | MB/s: median (range) | CPU s/GB sender | CPU s/GB receiver |",
        "|---|---|---|---|---|",
    ]

    def row(title: str, name: str, values: list[Bulk]) -> str:
        return (f"| {title} | {name} | {spread([v.rate for v in values], 0)} "
                f"| {median([v.sender for v in values]):.2f} "
                f"| {median([v.receiver for v in values]):.2f} |")

    for size in SIZES:
        for name in ("polypath", "polypath, encrypted", "quinn", "usrsctp"):
            if f"{name} {size}" in samples:
                lines.append(row(f"{size // 1024} KiB", name, samples[f"{name} {size}"]))
    for mode, title in (("offload", "plain UDP, segmentation offload"), ("plain", "plain UDP")):
        if f"udp {mode}" in samples:
            lines.append(row(f"{DATAGRAM} B", title, samples[f"udp {mode}"]))
    lines += ["", "| messages | goodput over usrsctp's | CPU s/GB of both sides under usrsctp's |",
              "|---|---|---|"]
    for size in SIZES:
        if f"usrsctp {size}" not in samples:
            continue
        ours, theirs = samples[f"polypath {size}"], samples[f"usrsctp {size}"]
        rate = median([v.rate for v in ours]) / median([v.rate for v in theirs])
        cpu = (median([v.sender + v.receiver for v in theirs])
               / median([v.sender + v.receiver for v in ours]))
        lines.append(f"| {size // 1024} KiB | {rate:.2f} times | {cpu:.2f} times |")
    lines += ["",
              "Encrypted is DTLS 1.3 below SCTP (AES-128-GCM), in place of the CRC32c ([security.md](security.md)):",
              "",
              "| messages | goodput, of that in clear | CPU s/GB of both sides, over those in clear |", "|---|---|---|"]
    for size in SIZES:
        clear, ours = samples[f"polypath {size}"], samples[f"polypath, encrypted {size}"]
        rate = median([v.rate for v in ours]) / median([v.rate for v in clear])
        cpu = (median([v.sender + v.receiver for v in ours])
               / median([v.sender + v.receiver for v in clear]))
        lines.append(f"| {size // 1024} KiB | {rate:.2f} times | {cpu:.2f} times |")
    return [*lines, ""]


def version(*words: str) -> str:
    """First line of a program's version output."""
    with contextlib.suppress(OSError):
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.splitlines()[0]
    return "unknown"


def machine() -> list[str]:
    """Describe the machine and the versions of the programs."""
    model = "unknown"
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())

    def package(name: str) -> str:
        return version("dpkg-query", "-W", "-f", "${Version}", name)

    return [
        f"Measured on {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, load {os.getloadavg()[0]:.1f} before the run:",
        f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB; {system}, Linux {platform.release()};",
        f"polypath {version('git', 'describe', '--always', '--dirty')}, {version('rustc', '--version')}, "
        f"{version('gcc', '--version')};",
        f"ns2 {package('ns2')}, usrsctp {package('libusrsctp-dev')}.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a transfer")
    parser.add_argument("--only", choices=["sim", "sweeps", "loopback", "overhead", "earlier"])
    parser.add_argument("--earlier", default=earlier.BEFORE, metavar="REVISION", help="to compare with")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "performance.md")
    arguments = parser.parse_args()
    lines = [
        "# Performance",
        "",
        "Written by `make bench` (`benches/run.py`). Contenders take turns in one run, medians count; on a",
        "shared machine rates move by a factor of two, ratios and CPU seconds far less.",
        "",
        *machine(),
        "",
    ]
    try:
        if arguments.only in (None, "sim"):
            lines += simulated_page(simulated(arguments.rounds))
        if arguments.only in (None, "sweeps") and sweeps.is_there():
            lines += sweeps.page(sweeps.measure(arguments.rounds))
        if arguments.only in (None, "loopback"):
            lines += loopback_page(loopback(arguments.rounds, arguments.seconds), arguments.seconds)
        if arguments.only in (None, "overhead"):
            lines += overhead.page(overhead.measure(arguments.rounds, arguments.seconds), arguments.seconds)
        if arguments.only in (None, "earlier") and earlier.is_there(arguments.earlier):
            build_cargo("-p", "polypath-cli")
            build_cargo("-p", "polypath", "--example", "loopback")
            lines += earlier.page(earlier.compare(arguments.earlier, arguments.rounds, arguments.seconds / 2))
    except (Failed, subprocess.CalledProcessError) as failed:
        sys.exit(f"bench: {failed}")
    text = "\n".join(lines)
    print(text)
    if arguments.only is None:
        arguments.output.write_text(text)
        print(f"written to {arguments.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
