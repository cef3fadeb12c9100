"""`polypath-lab compare`: a scenario in polypath and in ns-2, packet by packet."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from polypath.lab_options import add_scenario, load_scenario, printed_warnings
from polypath.ns2.compare import PATIENCE, compare
from polypath.ns2.random_scripts import judge_many, summary
from polypath.ns2.scripts import COMBINATIONS, CONCURRENT, FAILOVERS, scenario
from polypath.ns2.transport import PROFILE
from polypath.scenario import Scenario

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_DIFFERENT = 1
_FAILED = 2


def add(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "compare",
        help="a scenario here and in ns-2, packet by packet",
        description="Runs a scenario in polypath and in ns-2 and shows the first packet that "
        "differs. Exit code 0 if none does, 1 if one does, 2 on errors.",
    )
    parser.set_defaults(action=_compare)
    add_scenario(parser, "SCENARIO.toml", nargs="?")
    parser.add_argument("--seed", type=int, metavar="N", help="of the run; or the first script's")
    parser.add_argument("--random", type=int, metavar="N", help="this number of random scripts")
    parser.add_argument(
        "--combination",
        default="same",
        choices=[*COMBINATIONS, *CONCURRENT],
        metavar="NAME",
        help="of the scripts",
    )
    parser.add_argument(
        "--failover", choices=FAILOVERS, metavar="NAME", help="scripts in which paths fail"
    )
    parser.add_argument(
        "--wide",
        action="store_true",
        help="scripts that draw rates, queues, windows, MTU, RTO.Min and outages too",
    )
    parser.add_argument("--paths", type=int, default=1, help="of the scripts; 1")
    parser.add_argument("--profile", default=PROFILE, help=f"of the scripts; {PROFILE}")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes; all cores"
    )
    parser.add_argument(
        "--patience",
        type=int,
        default=PATIENCE,
        metavar="S",
        help=f"seconds of processor time that ns-2 may take for a run; {PATIENCE}",
    )
    parser.add_argument(
        "--toml", action="store_true", help="print a script's scenario, run nothing"
    )


def _compare(options: argparse.Namespace) -> int:
    try:
        if options.patience < 1:
            raise ValueError(f"--patience: found {options.patience}; allowed: at least 1")
        if options.random is None:
            return _one(_scenario(options), options)
        script: dict[str, Any] = {
            "combination": options.combination,
            "paths": options.paths,
            "profile": options.profile,
            "failover": options.failover,
            "wide": options.wide,
        }
        first = options.seed or 0
        if options.random == 1:
            options.seed = None
            return _one(scenario(first, **script), options)
        return _many(range(first, first + options.random), options, script)
    except (ValueError, RuntimeError, OSError) as error:
        print(f"polypath-lab: {' '.join(str(error).split())}", file=sys.stderr)
        return _FAILED


def _scenario(options: argparse.Namespace) -> Scenario:
    if options.scenario is None:
        raise ValueError("compare: needs a SCENARIO.toml, or --random N")
    return load_scenario(options.scenario, options.set)


def _one(plan: Scenario, options: argparse.Namespace) -> int:
    if options.toml:
        print(plan.to_toml(), end="")
        return 0
    with printed_warnings():
        found = compare(plan, options.seed, patience=options.patience)
    print(found.report())
    return 0 if found.agrees else _DIFFERENT


def _many(seeds: range, options: argparse.Namespace, script: dict[str, Any]) -> int:
    verdicts = []
    for verdict in judge_many(seeds, options.jobs, patience=options.patience, **script):
        verdicts.append(verdict)
        if not verdict.agrees:
            print(f"seed {verdict.seed}: {verdict.text}", flush=True)
    print(summary(verdicts))
    bad = any(not verdict.agrees and verdict.accepted is None for verdict in verdicts)
    return _DIFFERENT if bad else 0
