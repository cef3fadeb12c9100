"""The differential test over many random scripts, on all cores."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from polypath.ns2.compare import compare
from polypath.ns2.scripts import scenario
from polypath.ns2.transport import PROFILE


@dataclass(frozen=True)
class Verdict:
    """What came of one script."""

    seed: int
    agrees: bool
    packets: int
    #: Largest difference in time among packets that agree, in seconds.
    largest: float
    #: The accepted class of the first difference, if one; and the difference in one line.
    accepted: str | None
    text: str


def judge(
    seed: int,
    *,
    combination: str = "same",
    paths: int = 1,
    profile: str = PROFILE,
    failover: str | None = None,
) -> Verdict:
    """Runs one script in both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            plan = scenario(
                seed, combination=combination, paths=paths, profile=profile, failover=failover
            )
            found = compare(plan)
        except RuntimeError as error:
            text = " ".join(str(error).split())
            return Verdict(seed, False, 0, 0.0, None, f"{type(error).__name__}: {text}")
    return Verdict(seed, found.agrees, found.packets, found.largest, found.accepted, str(found))


def judge_many(
    seeds: range,
    jobs: int,
    *,
    combination: str = "same",
    paths: int = 1,
    profile: str = PROFILE,
    failover: str | None = None,
) -> Iterator[Verdict]:
    """Runs scripts in parallel; verdicts in the order of the seeds."""
    one = partial(judge, combination=combination, paths=paths, profile=profile, failover=failover)
    if jobs == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, seeds, chunksize=4)


def summary(verdicts: list[Verdict]) -> str:
    """How many agree, and how many belong to which accepted class."""
    agree = sum(verdict.agrees for verdict in verdicts)
    classes = Counter(v.accepted for v in verdicts if v.accepted is not None)
    named = "".join(f", {count} {name}" for name, count in sorted(classes.items()))
    rest = len(verdicts) - agree - classes.total()
    largest = max((v.largest for v in verdicts if v.agrees), default=0.0)
    return (
        f"{agree} of {len(verdicts)} agree{named}, {rest} differ; "
        f"largest difference {largest * 1e6:.0f} us"
    )
