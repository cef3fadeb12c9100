"""`polypath-lab`: runs and sweeps from the command line and from batch systems."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, get_args

import pandas as pd

import polypath
from polypath import lab_compare
from polypath.lab_options import (
    UsageError,
    add_scenario,
    literal,
    load_scenario,
    printed_warnings,
    setting,
)
from polypath.papers.commands import add_commands
from polypath.scenario import Value
from polypath.simulation import Backend

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.action(options))
    except UsageError as error:
        return _complain(error, 2)
    except (ValueError, RuntimeError, OSError) as error:
        return _complain(error, 1)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _complain(error: Exception, code: int) -> int:
    print(f"polypath-lab: {' '.join(str(error).split())}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="polypath-lab", description=__doc__)
    parser.add_argument(
        "--version", action="version", version=f"polypath-lab, engine {polypath.engine_version}"
    )
    parser.add_argument(
        "--module",
        metavar="NAME",
        help="first import this module, with policies of your own (docs/own-policy.md); "
        "in front of all other words",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="one run of a scenario")
    run.set_defaults(action=_run)
    add_scenario(run, "SCENARIO.toml", nargs=None)
    run.add_argument("--seed", type=int, metavar="N", help="other root of all randomness")
    _backend_option(run)
    run.add_argument("--json", action="store_true", help="print everything as one JSON object")
    run.add_argument("--pcap", metavar="FILE", help="write the packets into a pcapng file")
    run.add_argument("--plot", metavar="FILE", help="draw the run: PNG, SVG or PDF by its name")

    sweep = commands.add_parser("sweep", help="scenarios with many seeds")
    sweep.set_defaults(action=_sweep)
    add_scenario(sweep, "SCENARIO.toml", nargs="+")
    sweep.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="KEY=A,B,...",
        help="each of these values of a key; several keys give all combinations",
    )
    sweep.add_argument("--seeds", metavar="A..B", help="seeds from A to B; 1..30 by default")
    sweep.add_argument(
        "--within", metavar="SHARE", help="run until the interval is this narrow, such as 10%%"
    )
    sweep.add_argument("--level", default="90 %", metavar="SHARE", help="of intervals; 90%%")
    sweep.add_argument("--at-least", type=int, default=10, metavar="N", help="with --within; 10")
    sweep.add_argument("--at-most", type=int, default=100, metavar="N", help="with --within; 100")
    sweep.add_argument("--metric", default="time_from_first_data", help="what it is all about")
    sweep.add_argument("--results", metavar="DIR", help="keep every run; go on where it stopped")
    sweep.add_argument("--shard", metavar="I/N", help="the I-th of N parts, such as 3/16")
    _backend_option(sweep)
    sweep.add_argument("--processes", type=int, metavar="N", help="processes in place of threads")
    sweep.add_argument("--retry-failed", action="store_true", help="run again what failed before")
    sweep.add_argument("--csv", metavar="FILE", help="write a row for each run ('-': to stdout)")
    sweep.add_argument("--plot", metavar="FILE", help="draw the scenarios side by side")
    sweep.add_argument("--quiet", action="store_true", help="no progress")
    lab_compare.add(commands)
    add_commands(commands)
    return parser


def _backend_option(parser: argparse.ArgumentParser) -> None:
    backends = get_args(Backend)
    parser.add_argument("--backend", choices=backends, default=backends[0], help="what runs it")


def _run(options: argparse.Namespace) -> int:
    scenario = load_scenario(options.scenario, options.set)
    with printed_warnings():
        result = polypath.simulate(scenario, seed=options.seed, backend=options.backend)
    if options.pcap:
        result.pcap(options.pcap)
    if options.plot:
        result.plot().savefig(options.plot)
    if options.json:
        print(json.dumps(result.outcome))
        return 0
    width = max(map(len, result.metrics))
    for metric, value in result.metrics.items():
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        print(f"{metric:{width}}  {shown}")
    return 0


def _sweep(options: argparse.Namespace) -> int:
    axes = dict(_axis(text) for text in options.vary)
    scenarios = [
        one for file in options.scenario for one in load_scenario(file, options.set).grid(axes)
    ]
    level = _share("--level", options.level)
    stop = None
    if options.within:
        stop = polypath.Stop(
            level=level,
            within=_share("--within", options.within),
            at_least=options.at_least,
            at_most=options.at_most,
            metric=options.metric,
        )
    settings: dict[str, Any] = {
        "stop": stop,
        "results": options.results,
        "shard": _shard(options.shard),
        "progress": not options.quiet,
        "retry_failed": options.retry_failed,
        "backend": options.backend,
    }
    seeds = _seeds(options.seeds)
    with printed_warnings():
        if options.processes:
            with ProcessPoolExecutor(options.processes) as executor:
                frame = polypath.sweep(scenarios, seeds, executor=executor, **settings)
        else:
            frame = polypath.sweep(scenarios, seeds, **settings)
    return _tell(frame, options, level)


def _tell(frame: pd.DataFrame, options: argparse.Namespace, level: float) -> int:
    if options.csv:
        frame.to_csv(sys.stdout if options.csv == "-" else options.csv, index=False)
    if frame.empty:
        print("polypath-lab: this shard has nothing to do", file=sys.stderr)
        return 0
    if options.csv != "-":
        table = polypath.summary(frame, options.metric, level=level)
        print(table.to_string(index=False, float_format="{:.6g}".format))
    if options.plot:
        polypath.plot(frame, options.metric, level=level).savefig(options.plot)
    failed = frame.loc[frame["status"] == "failed", "reason"]
    if len(failed):
        raise RuntimeError(f"{len(failed)} of {len(frame)} runs failed, first: {failed.iloc[0]}")
    return 0


def _axis(text: str) -> tuple[str, list[Value]]:
    key, values = setting("--vary", text)
    if not isinstance(values, str):
        return key, [values]
    return key, [literal(value.strip()) for value in values.split(",")]


def _seeds(text: str | None) -> range | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)\.\.(\d+)", text)
    if not found or int(found[1]) > int(found[2]):
        raise UsageError(f'--seeds: found "{text}"; allowed: the first and the last, such as 1..30')
    return range(int(found[1]), int(found[2]) + 1)


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f'--shard: found "{text}"; allowed: 1/N to N/N, such as 3/16')
    return int(found[1]), int(found[2])


def _share(option: str, text: str) -> float:
    try:
        share = polypath.quantity(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise UsageError(f'{option}: found "{text}"; allowed: a share such as "10 %"')
    return share


if __name__ == "__main__":
    sys.exit(main())
