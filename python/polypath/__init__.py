"""polypath: simulations of multipath SCTP, for research in Python.

A :class:`Scenario` describes the network, the applications and the faults. :func:`simulate` runs
one scenario, :func:`sweep` runs several with many seeds and returns a tidy frame, :func:`summary`
and :func:`compare` evaluate the frame, and :func:`plot` draws it.

The same scenario, seed and :data:`engine_version` give the same result on every machine.
"""

from polypath import papers, schema
from polypath._core import ScenarioError, SimulationError, quantity
from polypath.event_log import EventLog, read_log
from polypath.figures import plot
from polypath.frame import load
from polypath.metrics import METRICS
from polypath.progress import Progress
from polypath.result import Result
from polypath.scenario import Scenario
from polypath.simulate import engine_version, simulate, simulate_many
from polypath.statistics import Interval, Stop, compare, interval, paired, ratio, summary
from polypath.sweep import EngineMismatchError, sweep

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
__version__ = engine_version.partition("+")[0]
