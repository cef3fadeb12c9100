#!/usr/bin/env python3
"""Checks the table of docs/architecture.md that maps the sections of RFC 9260 to files.

Every section has one row. A row names files of crates/polypath-proto/src, or the reason why there is no code. Each file
exists and cites a section of its row, as "RFC 9260 5.2.4" or with more sections after it ("RFC 9260 5.1, 5.2.4"), and
each section of a row that names files is cited by one of them. So a row cannot outlive a procedure that has moved.

    scripts/check-rfc-map.py [DIRECTORY]
"""

import re
import sys
from pathlib import Path

#: The sections of RFC 9260, in its order; a number in brackets is a number of subsections.
CONTENTS = """
1 1.1 1.2 1.3 1.4 1.5 1.5[7] 1.6 1.7 2
3 3.1 3.2 3.2[2] 3.3 3.3.1 3.3.2 3.3.2[1] 3.3.3 3.3.3[1] 3.3.4 3.3.5 3.3.6 3.3.7 3.3.8 3.3.9 3.3.10 3.3.10[13] 3.3.11
3.3.12 3.3.13 4
5 5.1 5.1[6] 5.2 5.2.1 5.2.2 5.2.3 5.2.4 5.2.4[1] 5.2.5 5.2.6 5.3 5.3[1] 5.4
6 6.1 6.2 6.2[1] 6.3 6.3[3] 6.4 6.4[1] 6.5 6.6 6.7 6.8 6.9 6.10
7 7.1 7.2 7.2[5] 7.2.5[2] 7.3
8 8.1 8.2 8.3 8.4 8.5 8.5[1] 9 9.1 9.2 10
11 11.1 11.1[16] 11.2 11.2[8]
12 12.1 12.2 12.2[4] 12.2.4[3] 12.3 12.4 13 14 14[4] 15 15[6] 16 17 17[2]
"""
HEADING = "| RFC 9260 | files |"
NO_CODE = "no code: "
#: A citation: the document, then sections, with words between them.
CITATION = re.compile(r"RFC 9260,?(?: sections?)? (\d+(?:\.\d+)*(?:(?:[ ,()A-Za-z]|and|to){1,12}\d+(?:\.\d+)*)*)")
NUMBER = re.compile(r"\d+(?:\.\d+)*")


def contents() -> list[str]:
    """Every section, in the order of the RFC."""
    sections = []
    for entry in CONTENTS.split():
        parent, _, count = entry.rstrip("]").partition("[")
        more = [f"{parent}.{i}" for i in range(1, int(count) + 1)] if count else [parent]
        sections += [section for section in more if section not in sections]
    return sorted(sections, key=lambda section: [int(part) for part in section.split(".")])


def named(cell: str, known: list[str]) -> list[str]:
    """The sections that a cell names: "5.1, 5.1.3 to 5.1.5"."""
    sections = []
    for part in cell.split(", "):
        first, _, last = part.partition(" to ")
        for section in (first, last or first):
            if section not in known:
                raise ValueError(f"RFC 9260 has no section {section!r}")
        sections += known[known.index(first):known.index(last or first) + 1]
    return sections


def cited(source: Path) -> set[str]:
    """The sections that a file cites, and those that contain them."""
    text = re.sub(r"\s*\n\s*(?://[/!]?)?\s*", " ", source.read_text())
    sections = set()
    for citation in CITATION.finditer(text):
        for number in NUMBER.findall(citation[1]):
            parts = number.split(".")
            sections |= {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
    return sections


def rows(page: str) -> list[tuple[str, str]]:
    """The rows of the table: sections, files."""
    _, found, rest = page.partition(HEADING + "\n|---|---|\n")
    if not found:
        raise ValueError(f"the table '{HEADING}' is missing")
    cells = [line.strip("| ").split(" | ") for line in rest.split("\n\n")[0].splitlines()]
    return [(row[0].strip(), row[1].strip()) for row in cells]


def faults(root: Path) -> list[str]:
    """What is wrong with the table."""
    known = contents()
    source = root / "crates/polypath-proto/src"
    wrong, seen = [], set()
    for sections, cell in rows((root / "docs/architecture.md").read_text()):
        try:
            these = named(sections, known)
        except ValueError as error:
            wrong.append(f"row {sections}: {error}")
            continue
        wrong += [f"row {sections}: section {section} has a row already" for section in these if section in seen]
        seen.update(these)
        if cell.startswith(NO_CODE):
            continue
        files = re.findall(r"`([^`]+)`", cell)
        if not files:
            wrong.append(f"row {sections}: it names no file; if there is none, it begins with '{NO_CODE}'")
        in_row = set()
        for file in files:
            if not (source / file).is_file():
                wrong.append(f"row {sections}: {file} does not exist")
                continue
            cites = cited(source / file)
            in_row |= cites
            if not cites & set(these):
                wrong.append(f"row {sections}: {file} cites none of these sections")
        uncited = [section for section in these if section not in in_row]
        wrong += [f"row {sections}: none of its files cites section {section}" for section in uncited]
    wrong += [f"section {section} has no row" for section in known if section not in seen]
    return wrong


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    try:
        wrong = faults(root)
    except ValueError as error:
        wrong = [str(error)]
    for fault in wrong:
        print(f"docs/architecture.md: {fault}", file=sys.stderr)
    if wrong:
        print(f"check-rfc-map: {len(wrong)} faults", file=sys.stderr)
        return 1
    print("check-rfc-map: every section of RFC 9260 has its files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
