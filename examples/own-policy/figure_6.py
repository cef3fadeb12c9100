"""Figure 6 of Caro et al. 2006 (retransmission policies) with a policy of this example as a curve.

Build the module first: ``make own-policy`` puts it into ``target/own-policy``, where Python finds it
with ``PYTHONPATH=target/own-policy``.
"""

import sys

import own_policy  # noqa: F401, its simulator takes the place of polypath's
from polypath.papers import Curve
from polypath.papers.caro2006_retransmission import figure_6

#: The paper's FrSameRtoAlt with this crate's window, and polypath's default profile.
AIMD = Curve("FrSameRtoAlt with aimd", policy={"congestion": "aimd:increase=2,decrease=0.7"})
CURVES = (AIMD, "modern")


def main(file: str) -> None:
    """Draws the figure into a file, and prints the mean transfer times of the further curves."""
    frame, figure = figure_6(policies=CURVES, progress=False)
    figure.savefig(file, dpi=150)
    further = frame.dropna(subset=["curve"])
    columns = ["curve", "primary_loss", "alternate_loss", "n", "mean", "half_width"]
    print(further[columns].to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "figure-6.png")
