"""`polypath-lab reproduce` and `polypath-lab claims`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

from polypath.papers.catalogue import PAPERS, find
from polypath.papers.decide import decide
from polypath.papers.markdown import markdown, measurements
from polypath.papers.record import claims_frame
from polypath.papers.reproduce import reproduce, write
from polypath.papers.reproduction import Reproduction
from polypath.papers.words import allowed, tally, value
from polypath.simulation import Backend, engine


def add_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds both commands to the program."""
    keys = ", ".join(paper.key for paper in PAPERS)
    one = commands.add_parser(
        "reproduce", help="figures of the papers, and what becomes of their statements"
    )
    one.set_defaults(action=_reproduce)
    one.add_argument("paper", nargs="?", metavar="PAPER", help=f"{keys}; all by default")
    one.add_argument("figure", nargs="*", metavar="FIGURE", help="its number; all by default")
    scale = one.add_mutually_exclusive_group()
    scale.add_argument("--quick", action="store_true", help="small grids: a minute; the default")
    scale.add_argument("--full", action="store_true", help="the papers' own grids")
    one.add_argument(
        "--seeds",
        type=_positive,
        metavar="N",
        help="no more than N runs of a point; the grid's own",
    )
    one.add_argument("--backend", choices=get_args(Backend), help="another simulator: ns2")
    one.add_argument(
        "--curve",
        action="append",
        default=[],
        metavar="CURVE",
        help="a further curve in the figures: a profile or policy, such as modern, or "
        "'NAME: KEY=VALUE ...' with profile, policies and constants",
    )
    one.add_argument(
        "--out", default="reproduced", metavar="DIR", help="where it goes; ./reproduced"
    )
    one.add_argument("--quiet", action="store_true", help="no progress")

    claims = commands.add_parser("claims", help="every statement of the papers with its verdict")
    claims.set_defaults(action=_claims)
    claims.add_argument(
        "--write",
        metavar="FILE",
        help="write the page (Markdown), and next to it what was measured (.tsv)",
    )
    claims.add_argument(
        "--check", action="store_true", help="with --write: fail unless FILE is up to date"
    )
    claims.add_argument("--results", metavar="DIR", help="keep every run; go on where it stopped")
    claims.add_argument("--quiet", action="store_true", help="no progress")

    decide = commands.add_parser(
        "decide", help="single statements by many runs of the points that decide them"
    )
    decide.set_defaults(action=_decide)
    decide.add_argument("paper", metavar="PAPER", help=f"one of {keys}")
    decide.add_argument("claim", nargs="+", metavar="ID", help="such as R07")
    decide.add_argument("--seeds", type=_positive, default=300, metavar="N", help="a point; 300")
    decide.add_argument("--csv", metavar="FILE", help="write a row for each check (claims.csv)")
    decide.add_argument("--results", metavar="DIR", help="keep every run; go on where it stopped")
    decide.add_argument("--quiet", action="store_true", help="no progress")


def _positive(text: str) -> int:
    """Parses a number of runs.

    Raises:
        argparse.ArgumentTypeError: The text is not a number, or it is less than 1.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'a number of runs, at least 1, not "{text}"')
    return int(text)


def _reproduce(options: argparse.Namespace) -> int:
    papers = None if options.paper is None else [find(options.paper)]
    out = Path(options.out)
    done = reproduce(
        papers,
        options.figure,
        full=options.full,
        seeds=options.seeds,
        results=out / "results",
        policies=options.curve,
        backend=None if options.backend == "polypath" else options.backend,
        progress=not options.quiet,
    )
    report = write(done, out)
    _tell(done)
    print(f"report: {report}")
    return 0


def _claims(options: argparse.Namespace) -> int:
    if options.check and not options.write:
        raise ValueError("--check: only with --write FILE")
    done = reproduce(results=options.results, progress=not options.quiet)
    if not options.write:
        _tell(done)
        return 0
    page = Path(options.write)
    texts = {page: markdown(done), page.with_suffix(".tsv"): measurements(done)}
    for file, text in texts.items():
        if not options.check:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            raise ValueError(f"{file} is stale: polypath-lab claims --write {page}")
    return 0


def _decide(options: argparse.Namespace) -> int:
    paper = find(options.paper)
    claims = [paper.claim(name) for name in options.claim]
    found = decide(
        paper, claims, options.seeds, results=options.results, progress=not options.quiet
    )
    for name, finding in found.items():
        print(f"{name}  {finding.verdict}")
        for check, verdict in zip(finding.checks, finding.verdicts, strict=True):
            print(f"    {check.label}: {value(check)} [{allowed(check)}]: {verdict}")
    if options.csv:
        table = claims_frame(found.items(), engine("polypath"))
        table.to_csv(options.csv, index=False, float_format="%.9g")
    return 0


def _tell(done: Reproduction) -> None:
    for one in done.claims:
        print(f"{one.row.id}  {one.verdict}")
    for paper in done.papers:
        for shown in paper.figures:
            if shown.reason:
                print(f"{paper.paper.key}, {shown.figure.name}: not yet: {shown.reason}")
        if not paper.agreement.empty:
            agreeing = int(paper.agreement["agrees"].sum())
            print(f"{paper.paper.key}: {agreeing} of {len(paper.agreement)} points agree with ns-2")
    print(
        ", ".join(
            f"{count} {verdict}"
            for verdict, count in tally(one.verdict for one in done.claims).items()
        )
    )
