"""Further curves in the papers' figures: other policies and profiles in the paper's network."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from polypath._core import ScenarioError
from polypath.figures import COLOURS
from polypath.papers.charts import MARKERS
from polypath.papers.runs import (
    TRANSFER_TIME,
    NotImplementedYetError,
    Observed,
    Runs,
    Setting,
    metric_of,
)
from polypath.parameters import PolicyNames
from polypath.result import Result
from polypath.scenario import Scenario
from polypath.statistics import Interval, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Chart

#: The column of a figure's frame that names a further curve; empty for the paper's own.
CURVE = "curve"
#: Keys of `[transport]` that belong to the paper's experiment, not to its protocol: a profile does
#: not replace them.
_OF_THE_EXPERIMENT = ("receive_buffer", "send_buffer", "sack_every", "initial_ssthresh")
#: Columns that name the mechanism of a paper's point, which a further curve replaces.
_MECHANISM = ("policy", "extensions", "failover", "strategy", "variant", "cpt", "confirmation")
_DECISIONS = frozenset(PolicyNames.__annotations__)


@dataclass(frozen=True)
class Curve:
    """A further curve: what differs from the curve of the paper on which it is based.

    With a profile, nothing but the network, the workload and the buffers remains of the paper's
    settings. Without one, `policy` and `transport` change single values of the base curve.
    """

    #: Its name in the legend.
    name: str
    profile: str | None = None
    #: Entries of ``[policy]``, such as ``{"congestion": "aimd:increase=2"}``.
    policy: Mapping[str, str] = field(default_factory=dict)
    #: Entries of ``[transport]``, such as ``{"rto_min": "200 ms"}``.
    transport: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, self.profile, repr(self.policy), repr(self.transport)))

    @classmethod
    def parse(cls, text: str) -> Curve:
        """A curve as on the command line.

        Either the name of a profile, or values separated by spaces, with a name in front if there
        is a colon: ``fast: profile=cmt scheduler=fastest congestion=aimd:increase=2 rto_min=1s``.
        Keys are `profile`, the decisions of ``[policy]``, and the constants of ``[transport]``.

        Raises:
            ValueError: A value has no key.
        """
        named = re.match(r"([^=:]+):\s+(.+)$", text)
        name, values = (named[1].strip(), named[2]) if named else (text.strip(), text.strip())
        if "=" not in values:
            return cls(name, profile=values)
        profile: str | None = None
        policy: dict[str, str] = {}
        transport: dict[str, Any] = {}
        for pair in values.split():
            key, equals, value = pair.partition("=")
            if not equals or not key or not value:
                raise ValueError(f'curve: found "{pair}"; allowed: KEY=VALUE, such as rto_min=1s')
            if key == "profile":
                profile = value
            elif key in _DECISIONS:
                policy[key] = value
            else:
                transport[key] = _number(value)
        return cls(name, profile, policy, transport)

    def __str__(self) -> str:
        pairs = {"profile": self.profile, **self.policy, **self.transport}
        values = (f"{key}={value}".replace(" ", "") for key, value in pairs.items() if value)
        return f"{self.name}: {' '.join(values)}"

    def applied(self, scenario: Scenario) -> Scenario:
        """The scenario of a point of the base curve, with these policies.

        Raises:
            ScenarioError: A profile, policy or constant does not exist; one line with the key.
        """
        table = scenario.to_dict()
        transport, policy = table.get("transport", {}), table.get("policy", {})
        if self.profile is not None:
            kept = {key: transport[key] for key in _OF_THE_EXPERIMENT if key in transport}
            transport, policy = {**kept, "profile": self.profile}, {}
        table["transport"] = {**transport, **self.transport}
        table["policy"] = {**policy, **self.policy}
        return Scenario.from_dict(table)


def _number(text: str) -> int | float | bool | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    # "1s" is "1 s" in a scenario.
    return re.sub(r"^(\d+(?:\.\d+)?)(?=[A-Za-z%])", r"\1 ", text)


#: A further curve, or its text; a bare word is a profile or a policy.
Wanted: TypeAlias = Curve | str


@dataclass(frozen=True, slots=True)
class FurtherPoint:
    """A point of a further curve: a point of the paper with other policies."""

    curve: Curve
    base: Setting

    @property
    def metric(self) -> str:
        """The metric of the paper's point."""
        return metric_of(self.base)

    def scenario(self) -> Scenario:
        """The scenario of this point."""
        return self.curve.applied(self.base.scenario())

    def labels(self) -> dict[str, Any]:
        """The columns that identify the point: those of the paper's, and the curve."""
        labels = self.base.labels()
        return {
            **labels,
            **{key: "" for key in _MECHANISM if key in labels},
            CURVE: self.curve.name,
        }

    def __str__(self) -> str:
        return f"{self.curve.name} in place of {self.base}"


@dataclass(frozen=True, slots=True)
class ObservedFurtherPoint(FurtherPoint):
    """A point of a further curve with numbers of its own from the packets of a run."""

    def observe(self, result: Result) -> dict[str, float]:
        """The numbers of the paper's point."""
        assert isinstance(self.base, Observed)
        return self.base.observe(result)


def further_point(curve: Curve, base: Setting) -> FurtherPoint:
    """The point of a further curve in place of one of the paper's."""
    kind = ObservedFurtherPoint if isinstance(base, Observed) else FurtherPoint
    return kind(curve, base)


#: Draws all points of a curve in a way of its own, in a style; returns the rows of the frame, and
#: what the legend shows.
Lines = Callable[[Runs, "Sequence[FurtherPoint]", "Chart", dict[str, Any]], "tuple[list[Any], Any]"]
#: The values of a point, by panel (its number from the left): in the unit of the panel's axis.
Values = Callable[[Runs, Setting], Mapping[int, Interval]]


@dataclass(frozen=True, slots=True)
class Further:
    """How a figure takes further curves: their base, and where their points are drawn."""

    #: Whether a point of the grid belongs to the base curve.
    base: Callable[[Any], bool]
    #: The decision that the figure is about: a bare word that is no profile is such a policy.
    decision: str
    #: The column on the horizontal axis, and its factor to the axis.
    x: str
    x_factor: float = 1.0
    #: The column that selects the panel, in the order of its values; None with a single panel.
    panel: str | None = None
    #: The column whose values are lines of their own, such as a delay.
    line: str | None = None
    #: The values of a point; its mean in the only panel, or that of its column, by default.
    values: Values | None = None
    #: Draws a curve that has no means over the horizontal axis.
    lines: Lines | None = None
    #: Points are runs with samples over time.
    traced: bool = False

    def curves(self, wanted: Sequence[Wanted], points: Sequence[Setting]) -> list[Curve]:
        """The curves, each checked with one point.

        Raises:
            ScenarioError: A profile, policy or constant does not exist.
            ValueError: Two curves have the same name, or a text is malformed.
        """
        found = [self._curve(one, points[0]) for one in wanted]
        names = [one.name for one in found]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f'policies: two curves have the name "{twice}"; allowed: one each')
        return found

    def _curve(self, wanted: Wanted, point: Setting) -> Curve:
        scenario = point.scenario()
        curve = wanted if isinstance(wanted, Curve) else Curve.parse(wanted)
        try:
            curve.applied(scenario)
        except ScenarioError as no_profile:
            if not isinstance(wanted, str) or "=" in wanted:
                raise
            curve = Curve(curve.name, policy={self.decision: curve.profile or ""})
            try:
                curve.applied(scenario)
            except ScenarioError as no_policy:
                raise ScenarioError(f"{no_profile}; or {no_policy}") from None
        return curve

    def points(self, curves: Sequence[Curve], points: Sequence[Setting]) -> list[FurtherPoint]:
        """The further points of a grid with these points."""
        return [further_point(c, one) for c in curves for one in points if self.base(one)]

    def draw(
        self, runs: Runs, points: Collection[FurtherPoint], frame: pd.DataFrame, chart: Chart
    ) -> pd.DataFrame:
        """Draws the further curves into a figure, and returns its frame with their points."""
        if self.lines is not None:
            return self._draw_lines(self.lines, runs, points, frame, chart)
        panels = {}
        if self.panel is not None:
            panels = {value: place for place, value in enumerate(sorted(set(frame[self.panel])))}
        rows = []
        for point in points:
            labels = point.labels()
            place = panels.get(labels.get(self.panel), 0) if self.panel else 0
            for panel, estimate in self._values(runs, point, place).items():
                rows.append({**labels, "_panel": panel, **_estimate(estimate)})
        if not rows:
            return frame
        own = pd.DataFrame(rows)
        _overlay(self, own, chart)
        return pd.concat([frame, own.drop(columns="_panel")], ignore_index=True)

    def _draw_lines(
        self,
        lines: Lines,
        runs: Runs,
        points: Collection[FurtherPoint],
        frame: pd.DataFrame,
        chart: Chart,
    ) -> pd.DataFrame:
        known, rows = {}, []
        for index, curve in enumerate(dict.fromkeys(one.curve for one in points)):
            own = [one for one in points if one.curve == curve]
            style = _style(_used(chart) + index, curve.name)
            with suppress(NotImplementedYetError):
                added, known[curve.name] = lines(runs, own, chart, style)
                rows += [{**row, CURVE: curve.name} for row in added]
        _renew_legend(chart, known)
        return pd.concat([frame, pd.DataFrame(rows)], ignore_index=True) if rows else frame

    def _values(self, runs: Runs, point: FurtherPoint, place: int) -> Mapping[int, Interval]:
        try:
            if self.values is not None:
                return self.values(runs, point)
            return {place: runs.mean(point, point.metric)}
        except NotImplementedYetError:
            return {}


def _estimate(estimate: Interval) -> dict[str, float]:
    return {"n": estimate.n, "mean": estimate.mean, "half_width": estimate.half_width}


def _overlay(further: Further, own: pd.DataFrame, chart: Chart) -> None:
    """Adds lines to the panels, and their names to the legend."""
    graphs, used = chart.axes, _used(chart)
    by = [CURVE] if further.line is None else [CURVE, further.line]
    known: dict[str, Any] = {}
    for index, (key, line) in enumerate(own.groupby(by, sort=False)):
        label = str(key[0]) if len(by) == 1 else f"{key[0]}, {key[1]:g}"
        for panel, points in line.groupby("_panel"):
            points = points.sort_values(further.x)
            known[label] = graphs[int(str(panel))].errorbar(
                points[further.x] * further.x_factor,
                points["mean"],
                yerr=np.where(np.isfinite(points["half_width"]), points["half_width"], 0.0),
                capsize=2,
                **_style(used + index, label),
            )
    _renew_legend(chart, known)


def _used(chart: Chart) -> int:
    """The number of curves of the fullest panel."""
    return max((len(axes.get_legend_handles_labels()[0]) for axes in chart.axes), default=0)


def _style(place: int, label: str) -> dict[str, Any]:
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 5,
        "linewidth": 1.8,
        "linestyle": "--",
        "label": label,
    }


def _renew_legend(chart: Chart, more: Mapping[str, Any]) -> None:
    """The figure's legend with further lines; that of its first axes if it has none."""
    if not chart.legends:
        chart.axes[0].legend(frameon=False, fontsize="small")
        return
    old = chart.legends[0]
    title = old.get_title().get_text()
    handles = [handle for handle in old.legend_handles if handle is not None]
    labels = [text.get_text() for text in old.get_texts()]
    old.remove()
    chart.legend(
        [*handles, *more.values()],
        [*labels, *more],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        title=title or None,
        fontsize="small",
        title_fontsize="small",
    )


def mean_of(values: Callable[[Result], float]) -> Values:
    """The mean of a number of each run with samples over time, in the only panel."""

    def of(runs: Runs, point: Setting) -> dict[int, Interval]:
        return {0: interval([values(result) for result in runs.results(point)])}

    return of


def scaled(factor: float) -> Values:
    """The mean of the point's metric times a factor, in the only panel."""

    def of(runs: Runs, point: Setting) -> dict[int, Interval]:
        mean = runs.mean(point, metric_of(point))
        return {0: Interval(mean.mean * factor, mean.half_width * factor, mean.level, mean.n)}

    return of


def goodput(size: float, factor: float = 1.0) -> Values:
    """The goodput of transfers of `size` bytes, in the only panel."""

    def of(runs: Runs, point: Setting) -> dict[int, Interval]:
        times = runs.frame(point)[TRANSFER_TIME].astype(float)
        return {0: interval([factor * size / time for time in times if not math.isnan(time)])}

    return of
