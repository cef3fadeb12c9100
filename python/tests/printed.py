"""What a reader of a printed figure, or one who is colour-blind, needs to see."""

import re
from collections.abc import Iterator

import numpy as np
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray

from polypath.figures import COLOURS

#: A unit in brackets, or what is counted.
UNIT = (
    r"\[|share|ratio| / | per |times|timeouts|transfers|failovers|packets|retransmissions|TSN|"
    r"Max\.Retrans|round trips|links"
)
#: Widest figure that a page prints in its own size, in inches, and the smallest text, in points.
PRINTED, SMALLEST = 6.7, 7.0
GREYS = re.compile(r"#([0-9a-f]{2})\1\1")


def faults_in_print(name: str, chart: Figure) -> Iterator[str]:
    """What a reader of the printed figure misses."""
    chart.draw_without_rendering()
    shrunk = min(1.0, PRINTED / chart.get_size_inches()[0])
    for text in chart.findobj(Text):
        if (
            text.get_visible()
            and text.get_text().strip()
            and text.get_fontsize() * shrunk < SMALLEST
        ):
            yield f"{name}: {text.get_fontsize() * shrunk:.1f} pt: {text.get_text()}"
    curves = 0
    for axes in chart.axes:
        spec = axes.get_subplotspec()
        named = any(re.search("[a-zA-Z]", one.get_text()) for one in axes.get_xticklabels())
        if not axes.get_xlabel() and not named and spec and spec.is_last_row():
            yield f"{name}: {axes.get_title()}: no label of the horizontal axis"
        if not axes.get_ylabel() and spec and spec.is_first_col() and axes.get_yticklabels():
            named = any(re.search("[a-zA-Z]", one.get_text()) for one in axes.get_yticklabels())
            if not named:
                yield f"{name}: {axes.get_title()}: no label of the vertical axis"
        for label in filter(None, (axes.get_xlabel(), axes.get_ylabel())):
            if not re.search(UNIT, label):
                yield f"{name}: no unit: {label}"
        handles, _ = axes.get_legend_handles_labels()
        curves = max(curves, len(handles))
        for line in axes.lines:
            colour = to_hex(line.get_color())
            if colour.upper() not in COLOURS and not GREYS.fullmatch(colour):
                yield f"{name}: colour {colour} is not of the palette"
    if curves > 1 and not chart.legends and not any(axes.get_legend() for axes in chart.axes):
        yield f"{name}: no legend"


def linear(colour: str) -> NDArray[np.float64]:
    """Linear RGB of a colour."""
    rgb = np.array(to_rgb(colour))
    return np.asarray(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4))


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIELAB of a colour in linear RGB (D65)."""
    xyz = (
        np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        @ np.clip(rgb, 0, 1)
        / [0.9505, 1.0, 1.089]
    )
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])
