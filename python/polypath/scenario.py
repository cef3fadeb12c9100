"""Scenarios: immutable descriptions of a run."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias, cast

from polypath import _core, schema
from polypath._core import ScenarioError

#: A value of a scenario; `None` removes a key.
Value: TypeAlias = str | int | float | bool | Sequence[Any] | Mapping[str, Any] | None


class Scenario:
    """A validated scenario: network, transport, workload, faults and limits of a run.

    The keyword arguments are the sections of the TOML files, with the same keys and units: see
    ``docs/scenarios.md`` and :mod:`polypath.schema`. Scenarios with the same content are equal and
    have the same hash; they can be pickled.

    Raises:
        ScenarioError: One line with the key, the error and the allowed values.
    """

    __slots__ = ("_inner", "_key")
    _inner: _core.Scenario
    _key: str

    def __init__(
        self,
        *,
        name: str = "",
        seed: int = 1,
        topology: schema.TopologyName | None = None,
        path: Sequence[schema.Path] | None = None,
        node: Sequence[schema.Node] | None = None,
        link: Sequence[schema.LinkEntry] | None = None,
        traffic: Sequence[schema.Traffic] | None = None,
        transport: schema.Transport | None = None,
        policy: schema.Policy | None = None,
        workload: schema.Workload | None = None,
        association: Sequence[schema.Association] | None = None,
        fault: Sequence[schema.Fault] | None = None,
        address: Sequence[schema.Address] | None = None,
        run: schema.Run | None = None,
        series: schema.Series | None = None,
        emulator: schema.Emulator | None = None,
        schema: int = 1,
    ) -> None:
        table = {
            "schema": schema,
            "name": name,
            "seed": seed,
            "topology": topology,
            "path": path,
            "node": node,
            "link": link,
            "traffic": traffic,
            "transport": transport,
            "policy": policy,
            "workload": workload,
            "association": association,
            "fault": fault,
            "address": address,
            "run": run,
            "series": series,
            "emulator": emulator,
        }
        self._inner = _validated(table)

    @classmethod
    def _of(cls, inner: _core.Scenario) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._inner = inner
        return scenario

    @classmethod
    def from_toml(cls, text: str) -> Scenario:
        """A scenario from TOML.

        Raises:
            ScenarioError: One line with line number, key, error and allowed values.
        """
        return cls._of(_core.Scenario.from_toml(text))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Scenario:
        """A scenario from a TOML file and the files that it extends.

        Raises:
            ScenarioError: As :meth:`from_toml`, with the file.
            OSError: A file cannot be read.
        """
        return cls._of(_core.Scenario.from_file(path))

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Scenario:
        """A scenario from nested dicts and lists of the same shape as the TOML.

        Raises:
            ScenarioError: One line with the key, the error and the allowed values.
        """
        return cls._of(_validated(table))

    def to_toml(self) -> str:
        """The scenario as TOML, in one form for equal scenarios; extended files are included."""
        return self._inner.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """The scenario as nested dicts and lists of the same shape as the TOML; a copy."""
        return cast("dict[str, Any]", json.loads(self._inner.to_json()))

    @property
    def name(self) -> str:
        """Its name, which does not affect the run."""
        return self._inner.name

    @property
    def seed(self) -> int:
        """Root of all randomness, from 0 to 2**64 - 1."""
        return self._inner.seed

    @property
    def key(self) -> str:
        """Identifies it among results: 16 hex digits that do not depend on name and seed."""
        if not hasattr(self, "_key"):
            same = _validated({**self.to_dict(), "name": "", "seed": 1}).to_toml()
            self._key = hashlib.sha256(same.encode()).hexdigest()[:16]
        return self._key

    def with_(self, changes: Mapping[str, Value] | None = None, /, **more: Value) -> Scenario:
        """The same scenario with other values: ``with_(**{"transport.rto_min": "500 ms"})``.

        Keys are dotted; elements of arrays are selected by number, counted from 0, or by name, as
        in ``"path.0.loss"`` or ``"path.cable.rate"``. A value of `None` removes the key.

        Raises:
            ScenarioError: One line with the key, the error and the allowed values.
        """
        every = _plain({**(changes or {}), **more})
        pairs = [(key, _without_none(value)) for key, value in every.items()]
        return Scenario._of(self._inner.with_json(_json(pairs)))

    def grid(self, axes: Mapping[str, Sequence[Value]]) -> list[Scenario]:
        """The scenario with each combination of these values; the last key varies fastest.

        ``grid({"transport.rto_min": ["200 ms", "1 s"], "path.0.loss": ["0 %", "1 %"]})`` gives four
        scenarios.

        Raises:
            ScenarioError: As :meth:`with_`.
        """
        combinations = itertools.product(*axes.values())
        return [self.with_(dict(zip(axes, values, strict=True))) for values in combinations]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[Any, ...]:
        return Scenario.from_toml, (self.to_toml(),)

    def __repr__(self) -> str:
        return f"<Scenario {self.name!r}, key {self.key}>"


def varying(scenarios: Sequence[Scenario]) -> dict[str, list[Value]]:
    """The dotted keys whose values differ between scenarios, with the value of each (or `None`)."""
    flat = [_flatten({**s.to_dict(), "name": "", "seed": 1}) for s in scenarios]
    keys = dict.fromkeys(key for one in flat for key in one)
    columns = {key: [one.get(key) for one in flat] for key in keys}
    return {k: values for k, values in columns.items() if any(v != values[0] for v in values)}


def labels(scenarios: Sequence[Scenario]) -> list[str]:
    """A name for each: its own if all names differ, otherwise the values that differ."""
    names = [scenario.name for scenario in scenarios]
    if len(set(names)) == len(names) and all(names):
        return names
    columns = varying(scenarios)
    short = {key: key.rpartition(".")[2] for key in columns}
    unique = {k: s if list(short.values()).count(s) == 1 else k for k, s in short.items()}

    def label(index: int) -> str:
        values = [(unique[key], column[index]) for key, column in columns.items()]
        return ", ".join(f"{key} {value}" for key, value in values if value is not None)

    return [label(index) or name or "scenario" for index, name in enumerate(names)]


def _validated(table: Mapping[str, Any]) -> _core.Scenario:
    return _core.Scenario.from_json(_json(_without_none(_plain(table))))


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """A copy whose seed TOML can represent: its integers have 64 bits including the sign."""
    seed = table.get("seed")
    return {**table, "seed": hex(seed)} if isinstance(seed, int) and seed >= 2**63 else {**table}


def _json(value: Any) -> str:
    try:
        return json.dumps(value, default=_plain_number, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"not a scenario: {error}") from None


def _without_none(value: Any) -> Any:
    """A deep copy of tables and arrays, without the keys that have no value."""
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_without_none(inner) for inner in value]
    return value


def _plain_number(value: object) -> object:
    """Converts numpy's numbers and arrays, and all other values that have `tolist`."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__}")


def _flatten(value: Any, at: str = "") -> dict[str, Value]:
    """Dotted keys and their values; elements of arrays of tables have their name or number."""
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list) and all(isinstance(element, dict) for element in value):
        pairs = {e.get("name", str(i)): e for i, e in enumerate(value)}.items()
    else:
        return {at: json.dumps(value) if isinstance(value, list) else value}
    flat: dict[str, Value] = {}
    for key, inner in pairs:
        flat |= _flatten(inner, f"{at}.{key}" if at else key)
    return flat
