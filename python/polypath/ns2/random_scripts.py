"""The differential test over many random scripts, on all cores."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from polypath.ns2.compare import PATIENCE, compare
from polypath.ns2.run import NoAnswerError
from polypath.ns2.scripts import scenario
from polypath.ns2.transport import PROFILE


@dataclass(frozen=True)
class Verdict:
    """The result of one script."""

    seed: int
    agrees: bool
    packets: int
    #: Largest difference in time among packets that agree, in seconds.
    largest: float
    #: The accepted class of the first difference, if any, and the difference in one line.
    accepted: str | None
    text: str
    #: Whether ns-2 finished within its limit of processor time.
    answered: bool = True


def judge(
    seed: int,
    *,
    combination: str = "same",
    paths: int = 1,
    profile: str = PROFILE,
    failover: str | None = None,
    wide: bool = False,
    patience: int = PATIENCE,
) -> Verdict:
    """Runs one script in both simulators; `patience` limits ns-2's processor time in seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            plan = scenario(
                seed,
                combination=combination,
                paths=paths,
                profile=profile,
                failover=failover,
                wide=wide,
            )
            found = compare(plan, patience=patience)
        except NoAnswerError as error:
            return Verdict(seed, False, 0, 0.0, None, str(error), answered=False)
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
    wide: bool = False,
    patience: int = PATIENCE,
) -> Iterator[Verdict]:
    """Runs scripts in parallel and yields their verdicts in the order of the seeds."""
    one = partial(
        judge,
        combination=combination,
        paths=paths,
        profile=profile,
        failover=failover,
        wide=wide,
        patience=patience,
    )
    if jobs == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, seeds, chunksize=4)


def summary(verdicts: list[Verdict]) -> str:
    """Counts scripts that agree, are of an accepted class, differ, or have no answer from ns-2."""
    agree = sum(verdict.agrees for verdict in verdicts)
    classes = Counter(v.accepted for v in verdicts if v.accepted is not None)
    named = "".join(f", {count} {name}" for name, count in sorted(classes.items()))
    silent = sum(not verdict.answered for verdict in verdicts)
    rest = len(verdicts) - agree - classes.total() - silent
    unknown = f", {silent} without an answer from ns-2" if silent else ""
    largest = max((v.largest for v in verdicts if v.agrees), default=0.0)
    return (
        f"{agree} of {len(verdicts)} agree{named}, {rest} differ{unknown}; "
        f"largest difference {largest * 1e6:.0f} us"
    )
