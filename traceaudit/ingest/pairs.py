"""Rows written as a begin and an end (phases ``B`` and ``E``), as one row each."""

from collections import defaultdict

from msgspec import Raw

from traceaudit.ingest.decode import Block, Row
from traceaudit.ingest.times import MISSING, to_ns
from traceaudit.units import NS_PER_US

__all__ = ["Pairs", "as_us"]


class Pairs:
    """Begins and ends, matched by nesting on each thread once all are there.

    Attributes
    ----------
    decimals
        Some time has a decimal point.
    unmatched
        Begins without an end and ends without a begin, known after `rows`.
    """

    def __init__(self) -> None:
        self.decimals = False
        self.unmatched = 0
        self._by_thread: defaultdict[tuple[object, object], list[tuple[int, int, Row]]] = defaultdict(list)
        self._count = 0

    def add(self, block: Block) -> None:
        """Take the begins and ends of a block."""
        rows = [row for row in block.rows if row.ph in {"B", "E"}]
        times, decimals = to_ns([row.ts for row in rows], lambda: block.time_texts(rows, "ts"))
        self.decimals |= decimals
        for row, time in zip(rows, times.tolist(), strict=True):
            if time == MISSING:
                self.unmatched += 1
            else:
                row.args = Raw(bytes(row.args))  # else it keeps the text of its whole block alive
                self._by_thread[row.pid, row.tid].append((time, self._count, row))
                self._count += 1

    def rows(self) -> list[Row]:
        """Return the pairs as complete rows; times are texts, so that nothing is lost."""
        complete: list[Row] = []
        for marks in self._by_thread.values():
            marks.sort(key=lambda mark: mark[:2])
            open_rows: list[tuple[int, Row]] = []
            for time, _, row in marks:
                if row.ph == "B":
                    open_rows.append((time, row))
                elif open_rows:
                    begin, first = open_rows.pop()
                    complete.append(_joined(first, begin, time, row))
                else:
                    self.unmatched += 1
            self.unmatched += len(open_rows)
        self._by_thread.clear()
        return complete


def _joined(first: Row, begin: int, end: int, last: Row) -> Row:
    return Row(
        ph="X",
        cat=first.cat if first.cat is not None else last.cat,
        name=first.name or last.name,
        pid=first.pid,
        tid=first.tid,
        ts=as_us(begin),
        dur=as_us(end - begin),
        args=first.args,
    )


def as_us(ns: int) -> str:
    """Return a time as a writer puts it.

    Examples
    --------
    >>> as_us(-1_500), as_us(1_767_225_600_000_000_123)
    ('-1.500', '1767225600000000.123')
    """
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // NS_PER_US}.{abs(ns) % NS_PER_US:03d}"
