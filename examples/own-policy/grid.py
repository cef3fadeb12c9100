"""A grid of Iyengar 2004 (losses of path 2 from 1 to 10 %) with the policies of this example.

Build the module first: ``make own-policy`` puts it into ``target/own-policy``, where Python finds it
with ``PYTHONPATH=target/own-policy``.
"""

import sys

import own_policy  # noqa: F401, its simulator takes the place of polypath's
import polypath
from polypath.papers.iyengar2004.settings import LOSSES, Transfer

#: The concurrent scheduler and Reno's window, then the policies of this crate.
POLICIES = (
    {"policy.scheduler": "concurrent", "policy.congestion": "rfc9260"},
    {"policy.scheduler": "fastest", "policy.congestion": "rfc9260"},
    {"policy.scheduler": "fastest", "policy.congestion": "aimd:increase=2,decrease=0.7"},
)


def main(seeds: int) -> None:
    """Prints the mean time of a transfer of 8 MB, for each loss and each choice of policies."""
    transfers = [Transfer("profile cmt", loss).scenario() for loss in LOSSES]
    scenarios = [one.with_(policies) for one in transfers for policies in POLICIES]
    frame = polypath.sweep(scenarios, range(1, seeds + 1), progress=False)
    columns = ["path.alternate.loss", "policy.scheduler", "policy.congestion", "mean", "half_width"]
    print(polypath.summary(frame)[columns].to_string(index=False))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
