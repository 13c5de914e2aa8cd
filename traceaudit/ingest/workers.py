"""Further processes that collect blocks of rows, for files so large that it pays.

A worker is started as a program of its own and not forked: a fork copies the locks of whatever threads the caller has.
It knows no state, answers one request after the other, and may fail at any time: what it leaves undone, the caller
does itself.
"""

import gc
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import IO

from traceaudit.ingest.decode import decode_rows
from traceaudit.ingest.parts import Part, part_of

__all__ = ["Worker", "serve", "spare_processors"]

_SIZE_BYTES = 8
_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from traceaudit.ingest.workers import serve; serve()"
_READY = b"ready"


class Worker:
    """A process that collects blocks.

    Parameters
    ----------
    details
        Whether it keeps the details of framework ops.
    """

    def __init__(self, *, details: bool) -> None:
        self._process = subprocess.Popen(  # noqa: S603  (runs this package)
            [sys.executable, "-c", _PROGRAM, str(int(details)), *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self._is_ready = False
        self._is_lost = False
        self._asked = 0

    @property
    def is_idle(self) -> bool:
        """Whether it waits for blocks."""
        if not self._is_ready and not self._is_lost and self.has_answer:
            self._is_ready = self._receive() == _READY
        return self._is_ready and not self._is_lost and not self._asked

    @property
    def has_answer(self) -> bool:
        """Whether an answer can be taken without waiting for long."""
        return self._is_lost or bool(select.select([_stream(self._process.stdout)], [], [], 0)[0])

    def ask(self, texts: Sequence[bytes]) -> None:
        """Give blocks to an idle worker."""
        self._asked = len(texts)
        try:
            stdin = _stream(self._process.stdin)
            stdin.write(len(texts).to_bytes(_SIZE_BYTES, "little"))
            for text in texts:
                _write(stdin, text)
            stdin.flush()
        except OSError:
            self._is_lost = True

    def answer(self) -> Sequence[Part | None]:
        """Wait for what it made of the blocks; None where it could not collect one on its own."""
        asked, self._asked = self._asked, 0
        received = self._receive()
        if received is None:
            return [None] * asked
        parts: list[Part | None] = pickle.loads(received)  # noqa: S301  (written by this package's own process)
        return parts

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        try:
            self._process.communicate()
        except OSError:
            self._process.wait()

    def _receive(self) -> bytes | None:
        try:
            received = None if self._is_lost else _read(_stream(self._process.stdout))
        except OSError:
            received = None
        self._is_lost = received is None
        return received


def spare_processors() -> int:
    """Return how many processors this process may use beside its own; 0 where workers cannot be had."""
    if os.name != "posix" or not sys.executable or getattr(sys, "frozen", False):
        return 0
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return usable - 1


def serve() -> None:
    """Be a worker: collect what comes on standard input until it ends."""
    # An interrupt reaches the whole group of processes, and is the caller's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    details = sys.argv[1] == "1"
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    _write(stdout, _READY)
    stdout.flush()
    while head := stdin.read(_SIZE_BYTES):
        texts = [_read(stdin) for _ in range(int.from_bytes(head, "little"))]
        _write(stdout, pickle.dumps([_collect(text, details=details) for text in texts], pickle.HIGHEST_PROTOCOL))
        stdout.flush()


def _collect(text: bytes | None, *, details: bool) -> Part | None:
    if text is None:
        return None
    try:
        return part_of(decode_rows(text), details=details)
    except Exception:  # noqa: BLE001  (the caller meets it again, and reports it in its place)
        return None


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise OSError
    return stream


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(len(data).to_bytes(_SIZE_BYTES, "little"))
    stream.write(data)


def _read(stream: IO[bytes]) -> bytes | None:
    """Return the next message, None if the stream ends before."""
    head = stream.read(_SIZE_BYTES)
    size = int.from_bytes(head, "little")
    data = stream.read(size)
    return data if len(head) == _SIZE_BYTES and len(data) == size else None
