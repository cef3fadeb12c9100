#!/usr/bin/env python3
"""Lists the requirements of an RFC: every sentence with a key word of RFC 2119.

    scripts/rfc-requirements.py rfc9260.txt 3-9 > crates/polypath-proto/tests/conformance/rfc9260.tsv

A row has an identifier (section and the sentence's number among the section's requirements), the
strongest level in the sentence, the sentence, and an empty field for the reason why no test covers it.
A third argument selects levels: MUST lists the requirements of MUST, MUST NOT, SHALL, SHALL NOT and
REQUIRED.
"""

import re
import sys
from pathlib import Path

LEVELS = ("MUST NOT", "MUST", "SHALL NOT", "SHALL", "REQUIRED", "SHOULD NOT", "SHOULD", "RECOMMENDED")
KEY = re.compile(r"\b(MUST|SHALL|SHOULD|REQUIRED|RECOMMENDED)\b")
HEADING = re.compile(r"^((?:\d+\.)+)  +\S")
# Abbreviations whose full stop does not end a sentence.
SHORT = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|Fig|Sec|No|HB|RTO|Max|Path|Association|Init|Cookie|Min|Initial)\.$")


def paragraphs(lines):
    """Yield (section, paragraph) without page breaks, tables of contents and diagrams."""
    section, block = "", []
    for line in [*lines, ""]:
        if re.match(r"^(Stewart|RFC \d+|.*\[Page \d+\])", line) or "\f" in line:
            continue
        heading = HEADING.match(line)
        if heading and not re.search(r"\.{3,}|\s\d+$", line):
            if block:
                yield section, " ".join(block)
            section, block = heading[1].rstrip("."), []
        elif not line.strip():
            if block:
                yield section, " ".join(block)
            block = []
        elif not re.match(r"^\s*([|+\\/]|\d( \d)+)", line):
            block.append(line.strip())


def sentences(text):
    """Split a paragraph at full stops that end a sentence."""
    start = 0
    for match in re.finditer(r"[.:]\)?\s+(?=[A-Z\"(])", text):
        head = text[start : match.end()].rstrip()
        if SHORT.search(head) or (head.endswith(":") and not KEY.search(head)):
            continue
        yield head
        start = match.end()
    yield text[start:]


def main():
    path, span, *only = sys.argv[1:]
    first, last = (int(n) for n in span.split("-"))
    print("id", "level", "sentence", "reason", sep="\t")
    counts = {}
    for section, text in paragraphs(Path(path).read_text(encoding="utf-8").splitlines()):
        if not section or not first <= int(section.split(".")[0]) <= last:
            continue
        for sentence in sentences(text):
            if not KEY.search(sentence):
                continue
            found = next(level for level in LEVELS if re.search(rf"\b{level}\b", sentence))
            if only and found not in LEVELS[:5]:
                continue
            counts[section] = counts.get(section, 0) + 1
            print(f"{section}/{counts[section]}", found, sentence, "", sep="\t")


if __name__ == "__main__":
    main()
