"""Measures how late the machine is while clock times are compared.

A separate process for each processor (the first eight), pinned to it, alternates between sleeping and
computing for a moment, and records how much longer both took than on an idle machine. It takes five
percent of each processor. Started by `Watch`; its clock is `time.monotonic()`, which all processes share.
"""

import contextlib
import dataclasses
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Seconds of sleep and of computation in each turn.
SLEEP, BURST = 0.02, 0.001
# End time of a turn, and its lateness, in seconds.
TURN = struct.Struct("dd")
# With more lateness, as a fraction of the time or in one turn (seconds), the machine is busy.
BUSY_SHARE, BUSY_TURN = 0.05, 0.03


@dataclasses.dataclass(frozen=True)
class Lateness:
    """Lateness in a span of time: total seconds, fraction of the span, and seconds in the worst turn."""

    seconds: float
    share: float
    worst: float

    def busy(self) -> bool:
        """Whether a comparison of clock times is unreliable."""
        return self.share > BUSY_SHARE or self.worst > BUSY_TURN

    def __str__(self) -> str:
        return f"late for {self.share:.0%} of the time, {self.worst * 1000:.0f} ms at once"


NONE = Lateness(0.0, 0.0, 0.0)


class Watch:
    """Measures from its creation until it is closed."""

    def __init__(self):
        self.file = tempfile.TemporaryFile(prefix="polypath-lateness-")
        self.processors = len(_processors())
        # The child exits when its standard input is closed, even if this process is killed.
        self.popen = subprocess.Popen([sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=self.file)
        while os.fstat(self.file.fileno()).st_size < TURN.size and self.popen.poll() is None:
            time.sleep(SLEEP)

    def close(self) -> None:
        self.popen.stdin.close()
        self.popen.wait(10)
        self.file.close()

    def since(self, begin: float) -> Lateness:
        """Lateness from `begin`, as of `time.monotonic()`, until now."""
        end = time.monotonic()
        # A turn is recorded when it is over: wait for the one in progress.
        time.sleep(5 * SLEEP)
        size = os.fstat(self.file.fileno()).st_size // TURN.size * TURN.size
        turns = TURN.iter_unpack(os.pread(self.file.fileno(), size, 0))
        late = [min(by, at - begin) for at, by in turns if begin < at and at - by < end]
        seconds = min(sum(late) / self.processors, 0.9 * (end - begin))
        return Lateness(seconds, seconds / (end - begin), max(late, default=0.0))


def _processors() -> list[int]:
    return sorted(os.sched_getaffinity(0))[:8]


def _measure(parent: int, processor: int) -> None:
    """Measure turns on one processor, as long as the parent lives."""
    os.sched_setaffinity(0, {processor})
    while os.getppid() == parent:
        begin = time.monotonic()
        time.sleep(SLEEP)
        computed = time.process_time() + BURST
        while time.process_time() < computed:
            pass
        end = time.monotonic()
        os.write(sys.stdout.fileno(), TURN.pack(end, max(0.0, end - begin - SLEEP - BURST)))


def _main() -> None:
    this = os.getpid()
    for processor in _processors():
        if os.fork() == 0:
            with contextlib.suppress(KeyboardInterrupt):
                _measure(this, processor)
            os._exit(0)
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.buffer.read()


if __name__ == "__main__":
    _main()
