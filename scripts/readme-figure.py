#!/usr/bin/env python3
"""Draws docs/figures/one-path-cut-{light,dark}.svg: `scenarios/one-path-cut.toml` in the simulator.

Runs `polypath sim` with a capture and counts, for each path and each tenth of a second, the bytes of user data that
are delivered for the first time, at the moment they were sent. The same program gives the same figure. Standard
library only.
"""

import argparse
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scenarios" / "one-path-cut.toml"
CUT = (4.0, 8.0)  # seconds: the fault of the scenario
BIN = 0.1  # seconds
PATHS = {"cable/forward": "cable, 50 Mbit/s", "mobile/forward": "mobile, 20 Mbit/s"}
# Paul Tol's "bright" and "high-contrast" colours: distinct for colour-blind readers and in grey.
THEMES = {
    "light": {"text": "#24292f", "grid": "#d0d7de", "cut": "#eaeef2", "cable/forward": "#4477aa",
              "mobile/forward": "#ee9944", "line": "#24292f"},
    "dark": {"text": "#e6edf3", "grid": "#3d444d", "cut": "#262c36", "cable/forward": "#5f9bd1",
             "mobile/forward": "#e0a050", "line": "#e6edf3"},
}


def blocks(capture: bytes) -> Iterator[tuple[int, bytes]]:
    """The blocks of a pcapng file: type and body."""
    at = 0
    while at < len(capture):
        kind, length = struct.unpack_from("<II", capture, at)
        yield kind, capture[at + 8:at + length - 4]
        at += length


def name_of(body: bytes) -> str:
    """The name of an interface (option 2 of its description)."""
    at = 8
    while at < len(body):
        code, length = struct.unpack_from("<HH", body, at)
        if code == 2:
            return body[at + 4:at + 4 + length].decode()
        at += 4 + (length + 3) // 4 * 4
    raise ValueError("an interface without a name")


def data_chunks(packet: bytes) -> Iterator[tuple[int, int]]:
    """TSN and user bytes of the DATA chunks of a raw IPv4 packet with SCTP."""
    at = (packet[0] & 15) * 4 + 12
    while at + 4 <= len(packet):
        kind, _, length = struct.unpack_from(">BBH", packet, at)
        if kind == 0:
            yield struct.unpack_from(">I", packet, at + 4)[0], length - 16
        at += (length + 3) // 4 * 4


def arrivals(capture: bytes) -> Iterator[tuple[str, float, int]]:
    """Link, seconds of sending and user bytes of data that arrives for the first time. Packets that a link
    dropped have a comment."""
    names: list[str] = []
    seen: set[int] = set()
    for kind, body in blocks(capture):
        if kind == 1:
            names.append(name_of(body))
        elif kind == 6:
            link, high, low, length = struct.unpack_from("<IIII", body)
            dropped = 20 + (length + 3) // 4 * 4 < len(body)
            if names[link] not in PATHS or dropped:
                continue
            for tsn, size in data_chunks(body[20:20 + length]):
                if tsn not in seen:
                    seen.add(tsn)
                    yield names[link], ((high << 32) | low) / 1e9, size


def rates(capture: bytes) -> dict[str, list[float]]:
    """Mbit/s of each path in each bin."""
    found = list(arrivals(capture))
    bins = int(max(time for _, time, _ in found) / BIN)  # without the last one, which is not full
    table = {name: [0.0] * bins for name in PATHS}
    for name, time, size in found:
        if int(time / BIN) < bins:
            table[name][int(time / BIN)] += size * 8 / 1e6 / BIN
    return table


def figure(table: dict[str, list[float]], colours: dict[str, str]) -> str:
    """The SVG: areas on top of each other, 720 x 300 px. Labels of 13 px are 7 pt at 520 px of width."""
    left, top, width, height = 62, 40, 640, 206
    bins = len(next(iter(table.values())))
    last, most = bins * BIN, 80

    def x(seconds: float) -> float:
        return left + seconds / last * width

    def y(rate: float) -> float:
        return top + height * (1 - rate / most)

    def text(at_x: float, at_y: float, words: str, anchor: str = "middle", more: str = "") -> str:
        return f'<text x="{at_x:.1f}" y="{at_y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'

    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 300" font-family="system-ui, sans-serif" '
        f'font-size="13" fill="{colours["text"]}" role="img">',
        "<title>Rate of delivered data over two paths; one is cut from 4 s to 8 s</title>",
        f'<rect x="{x(CUT[0]):.1f}" y="{top}" width="{x(CUT[1]) - x(CUT[0]):.1f}" height="{height}" '
        f'fill="{colours["cut"]}"/>',
    ]
    for rate in range(0, most + 1, 20):
        out.append(f'<path d="M{left} {y(rate):.1f}h{width}" stroke="{colours["grid"]}"/>')
        out.append(text(left - 8, y(rate) + 4.5, str(rate), "end"))
    out += [text(x(second), top + height + 19, str(second)) for second in range(0, int(last) + 1, 2)]
    below = [0.0] * bins
    for name in reversed(PATHS):
        above = [low + rate for low, rate in zip(below, table[name], strict=True)]
        steps = [f"{x((i + end) * BIN):.1f} {y(rate):.1f}" for i, rate in enumerate(above) for end in (0, 1)]
        back = [f"{x((i + end) * BIN):.1f} {y(rate):.1f}" for i, rate in enumerate(below) for end in (0, 1)]
        out.append(f'<path d="M{" ".join(steps + back[::-1])}z" fill="{colours[name]}"/>')
        below = above
    total = [f"{x((i + end) * BIN):.1f} {y(rate):.1f}" for i, rate in enumerate(below) for end in (0, 1)]
    out.append(f'<path d="M{" ".join(total)}" fill="none" stroke="{colours["line"]}" stroke-width="1.2"/>')
    out.append(text((x(CUT[0]) + x(CUT[1])) / 2, top + 18, "the cable is cut"))
    at = left
    for name, words in PATHS.items():
        out.append(f'<rect x="{at}" y="14" width="13" height="13" fill="{colours[name]}"/>')
        out.append(text(at + 19, 25, words, "start"))
        at += 160
    out.append(f'<path d="M{at} 20.5h18" stroke="{colours["line"]}" stroke-width="1.6"/>')
    out.append(text(at + 24, 25, "both together", "start"))
    out.append(text(left + width / 2, 293, "time (s)"))
    middle = top + height / 2
    out.append(text(16, middle, "delivered data (Mbit/s)", more=f' transform="rotate(-90 16 {middle})"'))
    return "\n".join([*out, "</svg>", ""])


def main() -> None:
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--polypath", type=Path, default=target / "debug" / "polypath", help="the program")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures", help="folder for the figures")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "run.pcapng"
        subprocess.run([args.polypath, "sim", SCENARIO, "--pcap", capture], check=True, stdout=subprocess.DEVNULL)
        table = rates(capture.read_bytes())
    args.out.mkdir(parents=True, exist_ok=True)
    for theme, colours in THEMES.items():
        (args.out / f"one-path-cut-{theme}.svg").write_text(figure(table, colours))


if __name__ == "__main__":
    main()
