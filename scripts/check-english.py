#!/usr/bin/env python3
"""Rejects words that docs/code.md lists as words to avoid, and overlong comment lines.

Looks at comments, docstrings and other strings (help texts, error messages) of Rust and Python files, at Markdown, and
at shell scripts and the Makefile. Code in backticks and quoted sentences are not looked at, nor are the pages of RFCs,
which quote requirements. Comments are checked for more words than texts for users.

    scripts/check-english.py [FILE ...]
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

WIDTH = 100
FOLDERS = ["benches", "crates", "examples", "fuzz", "packaging", "python", "scripts", "tests"]
#: A pattern, and what to write instead: everywhere.
EVERYWHERE = [
    (r"seams?", "extension point, trait"),
    (r"(un)?told", "announce, report, send"),
    (r"unheard", "unacknowledged"),
    (r"deaf", "not receiving"),
    (r"wished", "request"),
    (r"allowances?|owed|owes?", "send credit"),
    (r"stranded", "no usable path"),
    (r"believes?|believed", "accept"),
    (r"doubts?", "suspect"),
    (r"mend(s|ed|ing)?", "fix, restore"),
    (r"ours|theirs", "local, remote, the peer's"),
    (r"(of|sent|outstanding|received|still) t?here(?! (is|are|was|were)\b)", "local, remote, on the path"),
    (r"SACKs? (says?|names?)", "a SACK reports, lists"),
    (r"beside", "compared with, next to"),
    (r"the house", "module, crate"),
    (r"so many", "a number, or the noun"),
    (r"polic(y|ies)('s|s')? answers?|answers? of (a|the|each|every) polic(y|ies)", "policy"),
]
#: In comments.
COMMENTS = [
    (r"tells?|telling", "announce, report, send"),
    (r"heard|hears?", "receive"),
    (r"wish(es)?", "request"),
    (r"wants?|wanted", "need, request"),
    (r"says?|said", "report, list, state"),
    (r"lies?|lay", "is"),
    (r"stands?|stood", "is"),
    (r"forgets?|forgot(ten)?", "drop, discard"),
    (r"nobody|somebody|whoever", "a noun"),
]
#: In comments of polypath-dtls.
DTLS = [(r"(?<!one-)(?<!same )ways?", "connection, path")]


class Words:
    """Words to avoid."""

    def __init__(self, words: list[tuple[str, str]]):
        self.instead = [instead for _, instead in words]
        self.pattern = re.compile("|".join(rf"(?P<w{i}>\b(?:{word})\b)" for i, (word, _) in enumerate(words)),
                                  re.IGNORECASE)

    def findings(self, begin: int, text: str):
        """(line, complaint) of a text that begins on this line, without what is in backticks or quoted."""
        blanked = QUOTED.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
        for match in self.pattern.finditer(blanked):
            line = begin + blanked.count("\n", 0, match.start())
            yield line, f"avoid `{match.group()}`; perhaps: {self.instead[int(match.lastgroup[1:])]}"


RUST = re.compile(
    r"""(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)|b?r(?P<hash>\#*)".*?"(?P=hash)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^\\'])'""",
    re.DOTALL | re.VERBOSE,
)
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”", re.DOTALL)
#: What is no prose in Markdown: blocks of code, indented ones, targets of links, markup.
MARKUP = re.compile(r"^```.*?^```|^(?: {4}|\t).*$|\]\([^)]*\)|<[^>]*>", re.MULTILINE | re.DOTALL)


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


def rust_strings(text: str):
    """(line, text) of each string that is a sentence."""
    for match in RUST.finditer(text):
        if match.lastgroup not in ("line", "block") and '"' in match.group()[:4] and " " in match.group():
            yield text.count("\n", 0, match.start()) + 1, match.group().strip('br#"')


def python_strings(text: str):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def texts(path: Path):
    """(words to avoid, first line, text) of what a file has to read."""
    text = path.read_text()
    if path.suffix == ".md":
        yield everywhere, 1, MARKUP.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    elif path.suffix not in (".rs", ".py"):
        yield everywhere, 1, text
    else:
        rust = path.suffix == ".rs"
        words = comments_dtls if "polypath-dtls" in path.parts else comments
        for begin, comment in rust_comments(text) if rust else python_comments(text):
            yield words, begin, comment
        if "tests" not in path.parts:
            for begin, string in rust_strings(text) if rust else python_strings(text):
                yield everywhere, begin, string


def findings(path: Path):
    """(line, complaint) of a file, each once."""
    found = {finding for words, begin, text in texts(path) for finding in words.findings(begin, text)}
    if path.suffix == ".rs":
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.lstrip().startswith("//") and len(line) > WIDTH:
                found.add((number, f"a comment line of more than {WIDTH} columns"))
    yield from sorted(found)


everywhere, comments = Words(EVERYWHERE), Words(EVERYWHERE + COMMENTS)
comments_dtls = Words(EVERYWHERE + COMMENTS + DTLS)


def files(root: Path):
    """The files of the project that are checked."""
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".rs", ".py", ".md", ".sh") and not {"target", "node_modules"} & set(file.parts):
                yield file
    yield root / "Makefile"
    yield from sorted(root.glob("*.md"))
    yield from (page for page in sorted((root / "docs").glob("*.md")) if not re.match(r"rfc\d+\.md", page.name))


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    bad = 0
    for path in [Path(a).resolve() for a in sys.argv[1:]] or files(root):
        if path == Path(__file__).resolve():
            continue
        for line, complaint in findings(path):
            bad += 1
            print(f"{path.relative_to(root)}:{line}: {complaint}")
    if bad:
        sys.exit(f"check-english: {bad} places to rewrite (rules: docs/code.md)")


if __name__ == "__main__":
    main()
