"""Section 5: when fast retransmissions over a second path fill the receive buffer.

The sender has lost data on the primary path in slow start and retransmits it on the secondary path.
New data that arrives on the primary path meanwhile waits in the receive buffer for the missing
data. The buffer must not be full before the retransmissions arrive. The policy `receive-buffer`
decides by equation (8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BlockingModel:
    """Two paths and a receive buffer.

    Bandwidths are in bytes per second, times in seconds, sizes in bytes. The paper's symbols are
    B1, R1, Q1, B2, R2, A.
    """

    primary_bandwidth: float
    #: Round-trip time with an empty queue.
    primary_rtt: float
    #: Queue of the bottleneck.
    primary_queue: float
    secondary_bandwidth: float
    secondary_rtt: float
    receive_buffer: float
    mtu: float = 1500.0

    def avoids_blocking(self) -> bool:
        """Equation (1), W/V2 + R2/2 <= A/V1 + D1 + R1/2: the buffer is not full in time."""
        return self.released_by() <= self.filled_by()

    def released_by(self) -> float:
        """The left side of (1): when all data that waited for the retransmissions is delivered.

        In seconds from the first fast retransmission.
        """
        return self.sent_before() / self.release_rate() + self.secondary_rtt / 2

    def filled_by(self) -> float:
        """The right side of (1): when new data would fill the buffer, from the same time."""
        return self.receive_buffer / self.arrival_rate() + self.wait() + self.primary_rtt / 2

    def final_cwnd(self) -> float:
        """cwnd1_Final by (2): delayed acknowledgements let slow start grow it by half each time."""
        return 1.5 * self.previous_cwnd()

    def previous_cwnd(self) -> float:
        """cwnd1_Previous, at most B1 R1 + Q1 by (3): the capacity of the path and its queue."""
        return self.primary_bandwidth * self.primary_rtt + self.primary_queue

    def sent_before(self) -> float:
        """W, at most cwnd1_Final + 3 MTU by (4): each of three missing reports allows a packet."""
        return self.final_cwnd() + 3 * self.mtu

    def release_rate(self) -> float:
        """V2 = 3 B2 by (5): one of three packets was lost, so a retransmission releases three."""
        return 3 * self.secondary_bandwidth

    def arrival_rate(self) -> float:
        """V1, at most min(cwnd1_Final / 2 / R1, B1) by (6): the window is halved."""
        return min(self.final_cwnd() / 2 / self.primary_rtt, self.primary_bandwidth)

    def wait(self) -> float:
        """D1, at least R1/2 by (7): no new data is sent until half the window is acknowledged."""
        return self.primary_rtt / 2

    def least_secondary_bandwidth(self) -> float:
        """Equation (8): B2 must be above this. It is (1) with (4), (5), (7) and V1 = B1.

        Infinite if no bandwidth is enough, because the buffer is full before data arrives on the
        secondary path.
        """
        b1 = self.primary_bandwidth
        room = 2 * self.receive_buffer + b1 * (2 * self.primary_rtt - self.secondary_rtt)
        if room <= 0:
            return math.inf
        return b1 * (self.previous_cwnd() + 2 * self.mtu) / room

    def secondary_is_fast_enough(self) -> bool:
        """Equation (8) holds: a fast retransmission on the second path does not block."""
        return self.secondary_bandwidth > self.least_secondary_bandwidth()

    def largest_primary_bandwidth(self) -> float:
        """Equation (8) solved for B1: up to it, the secondary path is fast enough."""
        # R1 B1^2 + (Q1 + 2 MTU - B2 (2 R1 - R2)) B1 - 2 A B2 = 0, whose other root is negative.
        b2 = self.secondary_bandwidth
        b = self.primary_queue + 2 * self.mtu - b2 * (2 * self.primary_rtt - self.secondary_rtt)
        c = 2 * self.receive_buffer * b2
        return (math.sqrt(b * b + 4 * self.primary_rtt * c) - b) / (2 * self.primary_rtt)
