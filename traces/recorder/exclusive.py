"""One recording at a time on this machine."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["exclusive"]


@contextmanager
def exclusive() -> Iterator[None]:
    """Hold the device alone: other recordings started meanwhile import what they need and wait."""
    with (Path(tempfile.gettempdir()) / "traceaudit-recording.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
