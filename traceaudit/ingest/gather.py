"""All blocks of a file into one collector: one after the other, or shared with workers where the file is large.

Whoever collects a block, blocks are joined in the order of the file, so that the result is always the same.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from traceaudit.ingest.chrome import BlockReader, Guess
from traceaudit.ingest.collect import Collector
from traceaudit.ingest.container import Source
from traceaudit.ingest.decode import Failure, decode_rows
from traceaudit.ingest.limits import Limits

if TYPE_CHECKING:
    from traceaudit.ingest.parts import Part
    from traceaudit.ingest.workers import Worker

__all__ = ["gather"]

LARGE_BYTES = 128 << 20
"""A worker takes a fifth of a second to start and costs as much to wait on; smaller files are nearly done by then."""

BATCH = 4
"""Blocks that a worker gets at a time; while it waits for more, it does nothing."""

MOST_PENDING = 12


class _Job:
    """Blocks that follow each other, and who collects them."""

    def __init__(self, guesses: list[Guess], worker: "Worker | None" = None, part: "Part | None" = None) -> None:
        self.guesses = guesses
        self._worker = worker
        self._part = part

    @property
    def is_done(self) -> bool:
        return self._worker is None or self._worker.has_answer

    def join(self, collected: Collector) -> bool:
        """Add the blocks to those before; False if a cut was wrong, which leaves that block and later ones undone."""
        from traceaudit.ingest.parts import join

        for part in [self._part] if self._worker is None else self._worker.answer():
            if part is not None:
                join(collected, part)
            else:
                try:
                    collected.add(decode_rows(self.guesses[0].rows))
                except Failure:
                    return False
            del self.guesses[0]
        return True


def gather(
    reader: BlockReader, source: Source, collected: Collector, limits: Limits, *, report: Callable[[], None]
) -> None:
    """Collect all rows.

    Parameters
    ----------
    report
        Called after each block.

    Raises
    ------
    TraceFormatError
        If the input is no Chrome trace, or beyond the limits.
    """
    for block in reader:
        collected.add(block)
        report()
        if max(source.total or 0, source.bytes_read) >= LARGE_BYTES:
            break
    else:
        return
    del block
    with _workers(limits, details=collected.with_details) as workers:
        if workers:
            _share(reader, collected, workers, report)
    for block in reader:
        collected.add(block)
        report()


@contextmanager
def _workers(limits: Limits, *, details: bool) -> Iterator[list["Worker"]]:
    if not limits.max_workers:
        yield []
        return
    from traceaudit.ingest.workers import Worker, spare_processors

    workers: list[Worker] = []
    with suppress(OSError):  # no more processes, or no interpreter to start
        workers.extend(Worker(details=details) for _ in range(min(limits.max_workers, spare_processors())))
    try:
        yield workers
    finally:
        for worker in workers:
            worker.close()


def _share(reader: BlockReader, collected: Collector, workers: list["Worker"], report: Callable[[], None]) -> None:
    """Collect with the workers until a block has to be looked at more closely, and leave the reader there."""
    pending: deque[_Job] = deque()
    while True:
        for worker in workers:
            if worker.is_idle and (guesses := _guesses(reader, BATCH)):
                worker.ask([guess.rows for guess in guesses])
                pending.append(_Job(guesses, worker))
        own = reader.guess()
        if own is not None:
            pending.append(_Job([own], part=_collect(own, details=collected.with_details)))
        while pending and (own is None or pending[0].is_done or len(pending) > MOST_PENDING):
            if not pending[0].join(collected):
                reader.go_back([guess for job in pending for guess in job.guesses])
                return
            pending.popleft()
            report()
        if own is None:
            return


def _guesses(reader: BlockReader, count: int) -> list[Guess]:
    guesses: list[Guess] = []
    while len(guesses) < count and (guess := reader.guess()) is not None:
        guesses.append(guess)
    return guesses


def _collect(guess: Guess, *, details: bool) -> "Part | None":
    from traceaudit.ingest.parts import part_of

    try:
        return part_of(decode_rows(guess.rows), details=details)
    except Failure:
        return None
