#!/usr/bin/env python3
"""Warns about source files of more than 800 lines without their tests: they should be split."""

import re
import sys
from pathlib import Path

MOST = 800
TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{\n.*?^\}\n", re.MULTILINE | re.DOTALL)


def length(source: Path) -> int:
    """Lines of the file outside of its test modules."""
    return len(TESTS.sub("", source.read_text()).splitlines())


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    for source in sorted(root.glob("crates/*/src/**/*.rs")):
        place = source.relative_to(root)
        if source.name == "tests.rs" or "tests" in place.parts:
            continue
        lines = length(source)
        if lines > MOST:
            print(f"check-lengths: {place} has {lines} lines without tests (more than {MOST})",
                  file=sys.stderr)


if __name__ == "__main__":
    main()
