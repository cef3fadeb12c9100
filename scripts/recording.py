#!/usr/bin/env python3
"""Records `make demo` as docs/figures/demo-{light,dark}.svg: its lines, each at the time at which it was printed.

Runs scripts/demo.py. Where animations are off, the last lines are shown from the beginning. Standard library only.
"""

import argparse
import html
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 103
THEMES = {"light": ("#f6f8fa", "#24292f", "#57606a"), "dark": ("#161b22", "#e6edf3", "#9198a1")}


def record(command: list[object]) -> list[tuple[float, str]]:
    """Seconds and text of each line that the command prints; raises an exception if it fails."""
    begin = time.monotonic()
    lines = []
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        for line in process.stdout:
            lines.append((time.monotonic() - begin, line.rstrip("\n")))
    if process.returncode != 0:
        raise SystemExit(f"recording: the demo failed: {lines[-1][1] if lines else ''}")
    return lines


def wrapped(lines: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Lines as a terminal of this width has them."""
    return [(at, text[begin:begin + COLUMNS]) for at, text in lines
            for begin in range(0, max(len(text), 1), COLUMNS)]


def drawing(lines: list[tuple[float, str]], theme: str) -> str:
    """The SVG: 13 px of a width of 820, so that print has at least 7 pt in a column of 16 cm."""
    background, colour, dim = THEMES[theme]
    rows = [(0.0, "$ make demo"), *wrapped(lines)]
    height = 24 + 18 * len(rows)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 {height}" font-size="13" role="img" '
        f'font-family="ui-monospace, Menlo, Consolas, monospace" fill="{colour}">',
        "<title>make demo: a file over two paths, of which one is cut half way</title>",
        f'<rect width="820" height="{height}" rx="6" fill="{background}"/>',
    ]
    for number, (at, text) in enumerate(rows):
        shade = f' fill="{dim}"' if text.startswith("$") else ""
        appears = f'<set attributeName="visibility" to="hidden" begin="0s" dur="{at:.2f}s"/>' if at > 0.05 else ""
        out.append(f'<text x="7" y="{26 + 18 * number}" xml:space="preserve"{shade}>{html.escape(text)}{appears}'
                   "</text>")
    return "\n".join([*out, "</svg>", ""])


def main() -> None:
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=target / "release" / "polypath", help="the program")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures", help="folder for the recording")
    parser.add_argument("--megabytes", type=float, default=20.0, help="size of the file")
    args = parser.parse_args()
    lines = record([sys.executable, ROOT / "scripts" / "demo.py", "--program", args.program, "--megabytes",
                    args.megabytes])
    args.out.mkdir(parents=True, exist_ok=True)
    for theme in THEMES:
        (args.out / f"demo-{theme}.svg").write_text(drawing(lines, theme))


if __name__ == "__main__":
    main()
