"""polypath: simulations of multipath SCTP, for research in Python.

A :class:`Scenario` describes the network, the applications and the faults. :func:`simulate` runs
one scenario, :func:`sweep` runs several with many seeds and returns a tidy frame, :func:`summary`
and :func:`compare` evaluate the frame, and :func:`plot` draws it.

The same scenario, seed and :data:`engine_version` give the same result on every machine.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polypath import papers, schema
    from polypath._core import ScenarioError, SimulationError, quantity
    from polypath.event_log import EventLog, read_log
    from polypath.figures import plot
    from polypath.frame import load
    from polypath.metrics import METRICS
    from polypath.progress import Progress
    from polypath.result import Result
    from polypath.scenario import Scenario
    from polypath.simulation import engine_version, simulate, simulate_many
    from polypath.statistics import Interval, Stop, compare, interval, paired, ratio, summary
    from polypath.sweeps import EngineMismatchError, sweep

    __version__: str

#: The module that defines each name. A module is imported when one of its names is used first, so
#: that ``import polypath`` takes a few milliseconds.
_DEFINED_IN = {
    "METRICS": "metrics",
    "EngineMismatchError": "sweeps",
    "EventLog": "event_log",
    "Interval": "statistics",
    "Progress": "progress",
    "Result": "result",
    "Scenario": "scenario",
    "ScenarioError": "_core",
    "SimulationError": "_core",
    "Stop": "statistics",
    "compare": "statistics",
    "engine_version": "simulation",
    "interval": "statistics",
    "load": "frame",
    "paired": "statistics",
    "plot": "figures",
    "quantity": "_core",
    "ratio": "statistics",
    "read_log": "event_log",
    "simulate": "simulation",
    "simulate_many": "simulation",
    "summary": "statistics",
    "sweep": "sweeps",
}
_MODULES = ("papers", "schema")

__all__ = [
    "METRICS",
    "EngineMismatchError",
    "EventLog",
    "Interval",
    "Progress",
    "Result",
    "Scenario",
    "ScenarioError",
    "SimulationError",
    "Stop",
    "compare",
    "engine_version",
    "interval",
    "load",
    "paired",
    "papers",
    "plot",
    "quantity",
    "ratio",
    "read_log",
    "schema",
    "simulate",
    "simulate_many",
    "summary",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"polypath.{name}")
    if name == "__version__":
        value = __getattr__("engine_version").partition("+")[0]
    elif name in _DEFINED_IN:
        value = getattr(importlib.import_module(f"polypath.{_DEFINED_IN[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
