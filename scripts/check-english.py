#!/usr/bin/env python3
"""Rejects comments with words that docs/code.md lists as words to avoid, and overlong comment lines.

Looks at the comments of Rust and Python files and at Python docstrings. Code in backticks and quoted
sentences are not looked at: an RFC may say what it likes.

    scripts/check-english.py [FILE ...]
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

WIDTH = 100
FOLDERS = ["benches", "crates", "fuzz", "python", "scripts", "tests"]
#: A pattern, and what to write instead.
AVOID = [
    (r"seams?", "extension point, trait"),
    (r"(un)?told|tells?|telling", "announce, report, send"),
    (r"(un)?heard|hears?", "receive"),
    (r"deaf", "not receiving"),
    (r"wish(es|ed)?", "request"),
    (r"wants?|wanted", "need, request"),
    (r"allowances?|owed|owes?", "send credit"),
    (r"stranded", "no usable path"),
    (r"believes?|believed", "accept"),
    (r"doubts?", "suspect"),
    (r"mend(s|ed|ing)?", "fix"),
    (r"ours|theirs", "local, remote, the peer's"),
    (r"says?|said", "report, list, state"),
    (r"lies?|lay", "is"),
    (r"stands?|stood", "is"),
    (r"forgets?|forgot(ten)?", "drop, discard"),
    (r"nobody|somebody|whoever", "a noun"),
    (r"beside ns-2", "compared with ns-2"),
]
PATTERN = re.compile("|".join(rf"(?P<w{i}>\b(?:{word})\b)" for i, (word, _) in enumerate(AVOID)), re.IGNORECASE)
RUST = re.compile(
    r"""(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)|b?r(?P<hash>\#*)".*?"(?P=hash)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^\\'])'""",
    re.DOTALL | re.VERBOSE,
)
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”", re.DOTALL)


def rust_comments(text: str):
    """(number of the first line, text) of each run of comment lines."""
    run, begin, last = [], 0, -2
    for match in RUST.finditer(text):
        if match.lastgroup not in ("line", "block"):
            continue
        number = text.count("\n", 0, match.start()) + 1
        if match["block"] or number != last + 1:
            if run:
                yield begin, "\n".join(run)
            run, begin = [], number
        run.append(match.group())
        last = number if match["line"] else -2
    if run:
        yield begin, "\n".join(run)


def python_comments(text: str):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            doc = node.body and node.body[0]
            if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant) and isinstance(doc.value.value, str):
                yield doc.lineno, doc.value.value


def findings(path: Path):
    """(line, complaint) of a file."""
    text = path.read_text()
    comments = rust_comments(text) if path.suffix == ".rs" else python_comments(text)
    for begin, comment in comments:
        blanked = QUOTED.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), comment)
        for match in PATTERN.finditer(blanked):
            instead = AVOID[int(match.lastgroup[1:])][1]
            yield begin + blanked.count("\n", 0, match.start()), f"avoid `{match.group()}`; perhaps: {instead}"
    if path.suffix == ".rs":
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("//") and len(line) > WIDTH:
                yield number, f"a comment line of more than {WIDTH} columns"


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    found = (f for folder in FOLDERS for f in sorted((root / folder).rglob("*")) if f.suffix in (".rs", ".py"))
    files = [Path(a).resolve() for a in sys.argv[1:]] or [f for f in found if "target" not in f.parts]
    bad = 0
    for path in files:
        if path == Path(__file__).resolve():
            continue
        for line, complaint in findings(path):
            bad += 1
            print(f"{path.relative_to(root)}:{line}: {complaint}")
    if bad:
        sys.exit(f"check-english: {bad} places to rewrite (rules: docs/code.md)")


if __name__ == "__main__":
    main()
