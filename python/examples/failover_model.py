"""When does a permanent failover pay? The grid of docs/failover-model.md.

python examples/failover_model.py --megabytes 80 --seeds 4
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor

from polypath import simulate
from polypath.papers import delaware

#: Round trips of the primary and the alternate path, milliseconds (Figs. 10, 11 and 12).
ROUND_TRIPS = ((90, 90), (90, 210), (210, 90))
#: Loss of the alternate path, percent; the primary's is 5.
LOSSES = (0, 1, 2, 3, 4, 5, 6, 8, 10)
#: Mechanism and Change Primary Threshold.
THRESHOLDS = tuple(("permanent", threshold) for threshold in (0, 1, 2, 3, 5, "off"))
MECHANISMS = (*THRESHOLDS, ("model", "off"), ("full-model", "off"))

Job = tuple[tuple[int, int], int, tuple[str, object], int, int]


def duration(job: Job) -> float:
    """Seconds from the first DATA to the last byte."""
    round_trips, loss, (failover, threshold), megabytes, seed = job
    paths = [
        {"name": name, "loss": f"{percent} %", "delay": f"{(rtt - 40) / 2:g} ms"}
        for name, percent, rtt in zip(("primary", "alternate"), (5, loss), round_trips, strict=True)
    ]
    plan = delaware.transfer(
        megabytes,
        {"topology": "two-paths", "path": paths},
        {**delaware.policy("FrSameRtoAlt", "MFR"), "failover": failover},
        transport={
            "path_confirmation": "off",
            "path_max_retrans": 0,
            "association_max_retrans": 1000,
            "change_primary_threshold": threshold,
        },
    )
    return float(simulate(plan, seed=seed).metrics["time_from_first_data"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    jobs: list[Job] = [
        (round_trips, loss, mechanism, options.megabytes, seed)
        for round_trips in ROUND_TRIPS
        for loss in LOSSES
        for mechanism in MECHANISMS
        for seed in range(1, options.seeds + 1)
    ]
    times = defaultdict(list)
    with ProcessPoolExecutor() as pool:
        for job, seconds in zip(jobs, pool.map(duration, jobs, chunksize=8), strict=True):
            times[job[:3]].append(seconds)
    mean = {point: sum(found) / len(found) for point, found in times.items()}
    print("RTT ms, loss %:", *(f"{name} {threshold}" for name, threshold in MECHANISMS))
    for round_trips in ROUND_TRIPS:
        for loss in LOSSES:
            best = min(mean[round_trips, loss, one] for one in THRESHOLDS)
            row = [mean[round_trips, loss, one] for one in MECHANISMS]
            cells = [f"{seconds:.1f} ({seconds / best - 1:+.0%})" for seconds in row]
            print(*round_trips, loss, *cells)


if __name__ == "__main__":
    main()
