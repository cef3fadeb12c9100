"""Progress of a sweep: a bar on a terminal, otherwise a line every 30 seconds."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

#: Seconds between lines without a terminal.
BETWEEN_LINES = 30.0


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a sweep."""

    #: Runs that finished since the sweep began.
    finished: int
    #: Runs that were in the store already.
    found: int
    #: Runs that failed, of both.
    failed: int
    #: Estimate of all runs that will be needed.
    expected: int
    #: Runs per second.
    rate: float
    #: Seconds left; infinite if not known.
    left: float
    #: The widest interval as a share of its mean; NaN without a stopping rule.
    widest: float
    #: The scenario with the widest interval.
    widest_of: str

    def __str__(self) -> str:
        parts = [f"{self.found + self.finished} of {self.expected} runs", f"{self.rate:.3g} runs/s"]
        if math.isfinite(self.left):
            parts.append(f"{_span(self.left)} left")
        if not math.isnan(self.widest):
            share = f"{self.widest:.1%}" if math.isfinite(self.widest) else "not known"
            parts.append(f"widest interval {share} ({self.widest_of})")
        if self.failed:
            parts.append(f"{self.failed} failed")
        return ", ".join(parts)


class Reporter:
    """Shows progress on stderr, or passes it to a function."""

    def __init__(self, wanted: bool | Callable[[Progress], object]) -> None:
        self._call = wanted if callable(wanted) else None
        self._console = Console(stderr=True)
        self._bar: Bar | None = None
        self._shows = wanted is True
        self._last = time.monotonic()
        if self._shows and self._console.is_terminal:
            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
            self._bar = Bar(*columns, console=self._console)

    def __enter__(self) -> Reporter:
        if self._bar is not None:
            self._bar.start()
            self._bar.add_task("", total=None)
        return self

    def show(self, progress: Progress) -> None:
        """Shows the current progress."""
        if self._call is not None:
            self._call(progress)
        elif self._bar is not None:
            text = str(progress).partition(" runs, ")[2]
            done = progress.found + progress.finished
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=done, total=progress.expected, description=text)
        elif self._shows and time.monotonic() - self._last >= BETWEEN_LINES:
            self._last = time.monotonic()
            print(f"sweep: {progress}", file=sys.stderr, flush=True)

    def tell(self, line: str) -> None:
        """Prints a line, if progress is shown."""
        if self._shows:
            self._console.print(line, markup=False, highlight=False)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _span(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
