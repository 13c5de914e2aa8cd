"""A line on stderr that tells how far a long run is."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Report", "progress_line"]

PATIENCE_S = 1.0
INTERVAL_S = 0.1
MB = 1_000_000


class Report(Protocol):
    """What analyses call while they read: bytes done, and bytes in all if that is known."""

    def __call__(self, done: int, total: int | None, /) -> None:
        """Take note of the progress."""


@contextmanager
def progress_line(*, quiet: bool) -> Iterator[Report | None]:
    """Yield a callback that shows progress after a second, or None where nobody would see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    line = _Line(time.monotonic() + PATIENCE_S)
    try:
        yield line
    finally:
        line.clear()


class _Line:
    def __init__(self, start_s: float) -> None:
        self._next_s = start_s
        self._width = 0

    def __call__(self, done: int, total: int | None, /) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + INTERVAL_S
        share = f"{min(100, 100 * done // total)} %, " if total else ""
        text = f"traceaudit: reading, {share}{done / MB:.0f} MB"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def clear(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
