"""Tests whether two samples agree: compares the difference of their means with their spread."""

import dataclasses
import math
import statistics


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
    """Compare two samples of at least two values each."""
    means = statistics.mean(sample) - statistics.mean(reference)
    variances = [(statistics.variance(values), len(values)) for values in (sample, reference)]
    error = sum(variance / count for variance, count in variances)
    below = sum((variance / count) ** 2 / (count - 1) for variance, count in variances)
    half = t_quantile(error ** 2 / below) * math.sqrt(error) if below else 0.0
    return Agreement(means, half, math.sqrt(sum(variance for variance, _ in variances)))


def t_quantile(freedom: float) -> float:
    """Quantile of Student's t distribution at 97.5 %, by bisection; `freedom` need not be an integer."""
    low, high = 0.0, 1000.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if _t_within(middle, freedom) < 0.95 else (low, middle)
    return high


def _t_within(bound: float, freedom: float) -> float:
    """Probability of -bound ... bound. With t = sqrt(freedom) tan x the density is cos x to the power of
    freedom - 1; by Simpson's rule."""
    steps, end = 400, math.atan(bound / math.sqrt(freedom))
    values = [math.cos(end * n / steps) ** (freedom - 1) for n in range(steps + 1)]
    area = (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2])) * end / steps / 3
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    return 2 * scale * area
