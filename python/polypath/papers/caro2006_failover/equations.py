"""The gain of PMR 0 after a timeout: equations (1) to (10) of Section III.7.

In scenario 3 the sender with PMR 0 continues over the alternate path for `r` round trips, while the
sender with PMR 1 waits; in scenario 4 it continues over the primary path. `d` is the number of
packets sent in that time. Symbols are the paper's; windows and amounts are in packets, times in
seconds.

As printed, (1) and (10) have "min" and (3) has "max". The text around them requires that "r must be
at least 1" and "r_ss <= r", which takes the opposite function in each; so do these equations.
"""

from __future__ import annotations

import math

#: Congestion window when the transfer over a path begins, packets.
INIT_CWND = 1


def growth(b: int) -> float:
    """Factor by which a window grows in a round trip of slow start: 1 + 1/b.

    Args:
        b: Packets per acknowledgement; 2 with delayed acknowledgements.
    """
    return 1 + 1 / b


def round_trips(rto_1_2: float, rtt_1: float, rtt_2: float) -> float:
    """(1): round trips of the alternate path until the second heartbeat is acknowledged.

    Args:
        rto_1_2: The primary's RTO for the second timeout in a row, seconds.
        rtt_1: Round trip of the primary path, seconds.
        rtt_2: Round trip of the alternate path, seconds.
    """
    return max(1, (rto_1_2 + rtt_1) / rtt_2)


def cwnd_of_slow_start(r_ss: float, b: int = 2) -> float:
    """(2): the window of the last of `r_ss` round trips of slow start, packets."""
    return float(INIT_CWND * growth(b) ** (r_ss - 1))


def round_trips_of_slow_start(r: float, ssthresh: float, b: int = 2) -> float:
    """(3): the part of `r` round trips in slow start, until the window is `ssthresh` packets."""
    return min(r, 1 + math.log(ssthresh / INIT_CWND, growth(b)))


def packets_of_slow_start(r_ss: float, b: int = 2) -> float:
    """(4): packets sent in `r_ss` round trips of slow start."""
    return float(INIT_CWND * (1 - growth(b) ** r_ss) / (1 - growth(b)))


def round_trips_of_congestion_avoidance(r: float, r_ss: float) -> float:
    """(5): the round trips that remain."""
    return r - r_ss


def cwnd_of_congestion_avoidance(i: float, ssthresh: float) -> float:
    """(6), (7): the window of round trip `i` of congestion avoidance, counted from 1, packets."""
    return ssthresh + i


def packets_of_congestion_avoidance(r_ca: float, ssthresh: float) -> float:
    """(8): packets sent in `r_ca` round trips of congestion avoidance, one more in each."""
    return r_ca * ssthresh + (r_ca + r_ca**2) / 2


def packets(r: float, ssthresh: float, b: int = 2) -> float:
    """(9): the packets `d` sent in `r` round trips without loss.

    PMR 1 sends one of them: the gain of PMR 0 is at most `d - 1`.
    """
    r_ss = round_trips_of_slow_start(r, ssthresh, b)
    r_ca = round_trips_of_congestion_avoidance(r, r_ss)
    return packets_of_slow_start(r_ss, b) + packets_of_congestion_avoidance(r_ca, ssthresh)


def round_trips_after_both_are_lost(rto_1_2: float, rto_2_1: float, rtt_1: float) -> float:
    """(10): round trips of the primary path, by the printed sum of the two RTOs.

    Args:
        rto_1_2: The primary's RTO for the second timeout in a row, seconds.
        rto_2_1: The alternate's RTO, seconds.
        rtt_1: Round trip of the primary path, seconds.
    """
    return max(1, (rto_1_2 + rto_2_1) / rtt_1)


def round_trips_between_the_timeouts(rto_1_2: float, rto_2_1: float, rtt_1: float) -> float:
    """(10) with the difference of the two RTOs, as scenario 4 describes.

    Both timers start with the first timeout. The sender with PMR 0 sends data again when the
    alternate's timer expires; the sender with PMR 1 is blocked until the primary's timer expires.
    Arguments are those of :func:`round_trips_after_both_are_lost`.
    """
    return max(1, (rto_1_2 - rto_2_1) / rtt_1)
