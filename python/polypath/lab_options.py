"""Options of `polypath-lab` that several commands share."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from polypath import _core
from polypath.scenario import Scenario, Value


class UsageError(Exception):
    """The command line is wrong."""


def add_scenario(parser: argparse.ArgumentParser, name: str, nargs: str | None) -> None:
    """Adds the file of a scenario, and `--set`."""
    parser.add_argument("scenario", metavar=name, nargs=nargs)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="other value of a key, such as transport.rto_min=200ms",
    )


def load_scenario(file: str, settings: Sequence[str]) -> Scenario:
    """Loads the scenario of a file and applies the values of `--set`."""
    scenario = Scenario.from_file(Path(file))
    return scenario.with_(dict(setting("--set", text) for text in settings))


def setting(option: str, text: str) -> tuple[str, Value]:
    """Parses KEY=VALUE.

    Raises:
        UsageError: It has no "=".
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f'{option} "{text}" is not of the form KEY=VALUE')
    return key.strip(), literal(value.strip())


def literal(text: str) -> Value:
    """Parses a TOML value; text that is not TOML is a string without quotes."""
    value: Value = json.loads(_core.literal(text))
    return value


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Prints warnings as messages of the program."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        print(f"polypath-lab: {warning.message}", file=sys.stderr)
