"""Tests whether two samples agree: compares the difference of their means with their spread."""

import dataclasses
import math
import statistics

from scipy import stats


@dataclasses.dataclass(frozen=True)
class Agreement:
    """Agreement of a sample with a reference, in their unit."""

    # Difference of the means, and half the width of its 95 % interval (Welch).
    difference: float
    half: float
    # Standard deviation of the difference between a run of the sample and a run of the reference.
    spread: float

    def holds(self, resolution: float) -> bool:
        """Whether the difference is within the spread of single runs and the resolution of the clocks."""
        return abs(self.difference) - self.half <= self.spread + resolution

    def margin(self, resolution: float) -> float:
        """The largest difference of the means that would still count as agreement."""
        return self.half + self.spread + resolution


def agreement(sample: list[float], reference: list[float]) -> Agreement:
    """Compare two samples of at least two values each, by Welch's t-test."""
    spread = math.sqrt(statistics.variance(sample) + statistics.variance(reference))
    difference = statistics.mean(sample) - statistics.mean(reference)
    if spread == 0:
        return Agreement(difference, 0.0, 0.0)
    interval = stats.ttest_ind(sample, reference, equal_var=False).confidence_interval(0.95)
    return Agreement(difference, float(interval.high - interval.low) / 2, spread)
