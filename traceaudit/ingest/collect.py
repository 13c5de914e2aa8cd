"""From blocks of rows to pieces of columns: sorted into parts by category, names coded, times exact."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from traceaudit.errors import TraceFormatError
from traceaudit.ingest.arguments import (
    UNKNOWN_STREAM,
    DeviceArgs,
    api_args,
    as_int,
    details,
    device_args,
    int64,
    stream_of_text,
    sync_args,
)
from traceaudit.ingest.categories import MARKERS_WITH_STREAM, Part, Role, role_of_category
from traceaudit.ingest.catless import Catless
from traceaudit.ingest.columns import Codes, DetailCodes, Pieces
from traceaudit.ingest.decode import Block, Row
from traceaudit.ingest.limits import Limits
from traceaudit.ingest.pairs import Pairs
from traceaudit.ingest.times import MISSING, to_ns
from traceaudit.model.schema import HostCategory

__all__ = ["Collector"]

_WINDOW_END = "Record Window End"
_INT32_END = 1 << 31
_UNSIGNED_MINUS_ONE = (2**32 - 1, 2**64 - 1)

_NAME = attrgetter("name")
_PROCESS = attrgetter("pid")
_PHASE = attrgetter("ph")


class Collector:
    """Takes blocks of rows, keeps what the tables need.

    Attributes
    ----------
    device, host, sync, overhead
        Columns by part; ``start`` and ``end`` in ns as written, `MISSING` where they are not.
    names, processes, threads, collectives, details
        What the codes in the columns stand for; the first of `details` stands for none.
    categories
        Rows by category and phase.
    events
        Rows of any kind.
    dropped
        Elements of the events array that are no rows.
    strangers
        By unknown category, rows that have a stream and a correlation, as only device ops have.
    decimals
        Some time has a decimal point.
    spans
        Start and end in ns of the profiler's own spans.
    window_end
        Time of ``Record Window End``, None without one.
    features
        What else tells writers apart: see `writers`.
    separable
        No row so far needs to be seen together with others.
    with_details
        Details are kept.
    """

    def __init__(self, limits: Limits, path: str, *, details: bool = True) -> None:
        self._limits = limits
        self.with_details = details
        self._path = path
        self.device, self.host, self.sync, self.overhead = Pieces(), Pieces(), Pieces(), Pieces()
        self.names, self.processes, self.threads = Codes(), Codes(), Codes()
        self.collectives, self.details = Codes(), DetailCodes()
        self.categories: Counter[tuple[str, str]] = Counter()
        self.events = 0
        self.dropped = 0
        self.strangers: Counter[str] = Counter()
        self.decimals = False
        self.spans: list[tuple[int, int]] = []
        self.window_end: int | None = None
        self.features: set[str] = set()
        self.separable = True
        self.catless = Catless()
        self._pairs = Pairs()
        self._linked_by_flows = False
        self._roles: dict[str | None, Role] = {}

    def add(self, block: Block) -> None:
        """Take the rows of a block.

        Raises
        ------
        TraceFormatError
            If the rows go beyond the limits.
        """
        buckets: defaultdict[str | None, list[Row]] = defaultdict(list)
        for row in block.rows:
            buckets[row.cat].append(row)
        self.events += len(block.rows) + block.dropped
        self.dropped += block.dropped
        has_halves = False
        for category, rows in buckets.items():
            phases = self._count(category, rows)
            has_halves |= "B" in phases or "E" in phases
            self._add_bucket(category, rows, block, all_complete=phases.get("X") == len(rows))
        if has_halves:
            self.separable = False
            self._pairs.add(block)
        self.check_limits()

    def check_limits(self) -> None:
        """Compare what was collected with the limits.

        Raises
        ------
        TraceFormatError
            If the rows go beyond the limits.
        """
        if len(self.names) > self._limits.max_names or self.events > self._limits.max_events:
            what, limit = ("names", "max_names") if self.events <= self._limits.max_events else ("events", "max_events")
            raise TraceFormatError(
                f"more than {getattr(self._limits, limit)} {what}", where=self._path, hint=f"raise Limits.{limit}"
            )

    def finish(self) -> None:
        """Take what could be judged only once all rows were seen."""
        decimals = self.decimals | self._pairs.decimals
        pairs = Block(self._pairs.rows(), b"[]")
        for category, rows in _by_category(pairs.rows):
            self._add_bucket(category, rows, pairs, all_complete=True)
        self.dropped += self._pairs.unmatched
        self.decimals = decimals
        self._linked_by_flows = True
        for role, rows in self.catless.resolve():
            self._add_rows(role, rows, Block(rows, b"[]"))
        self.features |= self.catless.features

    def _count(self, category: str | None, rows: Sequence[Row]) -> Mapping[str, int]:
        """Count the rows of a category by phase."""
        phases = list(map(_PHASE, rows))
        first = phases[0]
        alike = phases.count(first)
        counts = {first: alike} if alike == len(phases) else {phase: phases.count(phase) for phase in set(phases)}
        for phase, count in counts.items():
            self.categories[category or "", phase] += count
        return counts

    def _add_bucket(self, category: str | None, rows: list[Row], block: Block, *, all_complete: bool) -> None:
        role = self._roles.get(category)
        if role is None:
            role = self._roles[category] = role_of_category(category)
        if role.part is Part.FLOW:
            self.separable = False
            self.catless.add_flows(rows)
        elif category is None:
            self.separable = False
            self._add_uncategorised(rows, block)
        elif role.part is not Part.NONE:
            complete = rows if all_complete else [row for row in rows if row.ph == "X"]
            if complete:
                self._add_rows(role, complete, block)
        elif category.lower() not in MARKERS_WITH_STREAM:
            self.strangers[category] += sum(row.ph == "X" and _is_like_an_op(row) for row in rows)

    def _add_uncategorised(self, rows: Sequence[Row], block: Block) -> None:
        for row in rows:
            if row.ph == "i" and row.name == _WINDOW_END:
                times, _ = to_ns([row.ts], lambda row=row: block.time_texts([row], "ts"))  # type: ignore[misc]
                self.window_end = None if times[0] == MISSING else int(times[0])
                self.features.add("window end")
        self.catless.add([row for row in rows if row.ph in {"X", "M"}])

    def _add_rows(self, role: Role, rows: list[Row], block: Block) -> None:
        if role.value == HostCategory.ANNOTATION and role.part is Part.HOST:
            # 1.8 to 1.10 draw annotations on device tracks under the same category.
            rows = [row for row in rows if not (isinstance(row.tid, str) and row.tid.endswith(" user"))]
            if not rows:
                return
        start, end = self._times(rows, block)
        match role.part:
            case Part.DEVICE:
                self._add_device(role.value, rows, start, end)
            case Part.HOST:
                self._add_host(role.value, rows, start, end)
            case Part.SYNC:
                self._add_sync(rows, start, end)
            case Part.OVERHEAD:
                self.overhead.add(start=start, end=end, name=self._name_codes(rows), process=self._process_codes(rows))
            case Part.SPAN:
                self.spans += zip(start.tolist(), end.tolist(), strict=True)
                self.features.update("empty span" for row in rows if b'"Op count": 0' in bytes(row.args))

    def _times(self, rows: Sequence[Row], block: Block) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        start, decimals = to_ns([row.ts for row in rows], lambda: block.time_texts(rows, "ts"))
        length, _ = to_ns([row.dur for row in rows], lambda: block.time_texts(rows, "dur"))
        self.decimals |= decimals
        missing = (start == MISSING) | (length == MISSING)
        if missing.any():
            start[missing] = MISSING
            length[missing] = 0
        return start, start + length

    def _name_codes(self, rows: Sequence[Row]) -> npt.NDArray[np.int32]:
        return _coded(self.names, map(_NAME, rows), len(rows))

    def _thread_codes(self, rows: Sequence[Row]) -> npt.NDArray[np.int32]:
        threads = [row.tid for row in rows]
        processes = [row.pid for row in rows]
        # Mostly all rows of a block and a category are of one thread, and a pair of numbers costs more to look up.
        if threads.count(threads[0]) == len(rows) == processes.count(processes[0]):
            return np.full(len(rows), self.threads[processes[0], threads[0]], dtype=np.int32)
        return _coded(self.threads, zip(processes, threads, strict=True), len(rows))

    def _process_codes(self, rows: Sequence[Row]) -> npt.NDArray[np.int32]:
        return _coded(self.processes, map(_PROCESS, rows), len(rows))

    def _add_host(
        self, category: int, rows: list[Row], start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]
    ) -> None:
        size = len(rows)
        if category == HostCategory.API or self._linked_by_flows:
            correlation = _correlations(api_args(rows))
        else:
            correlation = np.full(size, -1, dtype=np.int64)
        if category == HostCategory.CPU_OP and self.with_details:
            detail = _coded(self.details, details(rows), size) - np.int32(1)
        else:
            detail = np.full(size, -1, dtype=np.int32)
        self.host.add(
            start=start,
            end=end,
            name=self._name_codes(rows),
            category=np.full(size, category, dtype=np.int8),
            thread=self._thread_codes(rows),
            correlation=correlation,
            detail=detail,
        )

    def _add_device(
        self, op_type: int, rows: Sequence[Row], start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]
    ) -> None:
        args = device_args(rows)
        if [item.ascend_stream for item in args].count(None) < len(args):
            self.features.add("Ascend")
        grid, block = _triples([item.grid for item in args]), _triples([item.block for item in args])
        self.device.add(
            start=start,
            end=end,
            name=self._name_codes(rows),
            op_type=np.full(len(rows), op_type, dtype=np.int8),
            process=self._process_codes(rows),
            device=_devices(args, rows),
            stream=self._streams(args, rows),
            correlation=_correlations(args),
            graph=int64([item.graph or -1 for item in args]),
            graph_node=int64([item.graph_node or -1 for item in args]),
            **{f"grid_{axis}": grid[:, place] for place, axis in enumerate("xyz")},
            **{f"block_{axis}": block[:, place] for place, axis in enumerate("xyz")},
            registers=_int32([item.registers for item in args]),
            shared_mem=_int32([item.shared_mem for item in args]),
            copied=int64([item.copied for item in args]),
            collective=np.array(
                [self._collective(item) if item.group_size >= 0 or item.collective else -1 for item in args], np.int32
            ),
        )

    def _add_sync(self, rows: Sequence[Row], start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> None:
        args = sync_args(rows)
        self.sync.add(
            start=start,
            end=end,
            name=self._name_codes(rows),
            process=self._process_codes(rows),
            device=_int32([item.device for item in args]),
            stream=int64([_signed(item.stream) for item in args]),
            correlation=_correlations(args),
            wait_on_stream=int64([_signed(item.wait_on_stream) for item in args]),
            wait_on_correlation=int64([_signed(item.wait_on_correlation) for item in args]),
        )

    def _streams(self, args: Sequence[DeviceArgs], rows: Sequence[Row]) -> npt.NDArray[np.int64]:
        streams = [item.stream if item.original_stream is None else item.original_stream for item in args]
        if None in streams:
            streams = [
                self._stream(item, row) if stream is None else stream
                for stream, item, row in zip(streams, args, rows, strict=True)
            ]
        return int64(cast("list[int]", streams))

    def _stream(self, args: DeviceArgs, row: Row) -> int:
        for value in (args.ascend_stream, row.tid):
            number = stream_of_text(value) if isinstance(value, str) else as_int(value)
            if number is not None:
                return number
        # Streams without numbers still are queues of their own.
        self.separable = False
        return -2 - self.names[str(row.tid)] if row.tid is not None else UNKNOWN_STREAM

    def _collective(self, args: DeviceArgs) -> int:
        # 2.2 and 2.3 wrote the same numbers under names that say "size"; they count elements too.
        return self.collectives[
            -1 if args.collective is None else self.names[args.collective],
            -1 if args.group is None else self.names[args.group],
            -1 if args.dtype is None else self.names[args.dtype],
            args.in_elements if args.in_elements >= 0 else args.in_size,
            args.out_elements if args.out_elements >= 0 else args.out_size,
            args.group_size,
        ]


def _is_like_an_op(row: Row) -> bool:
    args = bytes(row.args)
    return b'"stream"' in args and b'"correlation"' in args


def _by_category(rows: Sequence[Row]) -> Iterator[tuple[str | None, list[Row]]]:
    buckets: defaultdict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        buckets[row.cat].append(row)
    yield from buckets.items()


def _coded(codes: dict[Any, int], keys: Any, size: int) -> npt.NDArray[np.int32]:  # noqa: ANN401  (an iterable of any keys)
    look_up: Callable[[Any], int] = codes.__getitem__
    return np.fromiter(map(look_up, keys), np.int32, size)


def _correlations(args: Sequence[Any]) -> npt.NDArray[np.int64]:
    numbers = int64([item.correlation for item in args])
    numbers[numbers <= 0] = -1
    return numbers


def _int32(values: Sequence[int]) -> npt.NDArray[np.int32]:
    limit = np.iinfo(np.int32)
    return np.clip(int64(values), limit.min, limit.max).astype(np.int32)


def _triples(values: Sequence[list[int] | None]) -> npt.NDArray[np.int32]:
    limit, size = np.iinfo(np.int32).max, len(values)
    lists = cast("Sequence[list[int]]", values)
    try:
        # `fromiter` alone would not notice a list that is longer than the others.
        if set(map(len, lists)) == {3}:
            numbers = np.fromiter(chain.from_iterable(lists), np.int64, 3 * size)
            return np.clip(numbers, -1, limit).astype(np.int32).reshape(size, 3)
    except (TypeError, OverflowError):
        pass
    padded = [([*value, 1, 1, 1] if value else [-1] * 3)[:3] for value in values]
    return _int32([number for value in padded for number in value]).reshape(size, 3)


def _signed(value: int) -> int:
    return -1 if value in _UNSIGNED_MINUS_ONE else value


def _devices(args: Sequence[DeviceArgs], rows: Sequence[Row]) -> npt.NDArray[np.int32]:
    devices = [item.device for item in args]
    if min(devices) < 0 or max(devices) >= _INT32_END:
        devices = [_device(item, row) for item, row in zip(args, rows, strict=True)]
    return np.array(devices, dtype=np.int32)


def _device(args: DeviceArgs, row: Row) -> int:
    for value in (args.device, args.from_device):
        if 0 <= value < _INT32_END:
            return int(value)
    text = row.pid.rpartition("]")[2].strip() if isinstance(row.pid, str) else row.pid
    number = as_int(text)
    return number if number is not None and 0 <= number < _INT32_END else 0
