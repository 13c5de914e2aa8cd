"""Rows without a category: RPD's, those of PyTorch's first profiler, and Ascend's; what they are tells their process.

Their launches are found by flows: a flow ends where a device op starts, and begins inside the call that enqueued it.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec import Raw, Struct, json

from traceaudit.ingest.arguments import UNKNOWN_STREAM, as_int
from traceaudit.ingest.categories import Part, Role
from traceaudit.ingest.decode import Row
from traceaudit.ingest.pairs import as_us
from traceaudit.ingest.times import MISSING, Scalar, to_ns
from traceaudit.model.schema import HostCategory, OpType

__all__ = ["Catless"]

_RPD_GPU = re.compile(r"GPU\s?\d+$")
_RPD_GRAPH = re.compile(r"Graph \S+$")  # drawn over the kernels of the graph, which have rows of their own
_RPD_HOST_THREAD = re.compile(r"(?:Hip|HSA) ")
_ROCM_CALL = re.compile(r"(?:hip|hsa_|roctx)")
_COPY = re.compile(r"(?:hip)?(?:Memcpy|Copy)")
_FILL = re.compile(r"(?:hip)?(?:Memset|Fill)")
_XLA_PROCESS = re.compile(r"/(?:device|host):")

_LEGACY_HOST = "CPU functions"
_LEGACY_DEVICES = frozenset({"CUDA functions", "XPU functions"})
_RPD_LEAD_NS = 2_000  # RPD begins a flow this long before its call ends
_RPD_SLACK_NS = 2  # and prints both as decimal floats
_LOOK_BACK = 64

_Place = tuple[str, str]


class _Named(Struct):
    name: str | None = None


_STREAM_ID = re.compile(rb'"Stream Id"\s*:\s*"?(\d+)')
_DESCRIPTION = re.compile(rb'"desc"\s*:\s*"((?:[Hh]ip)?(?:Mem|Copy|Fill)\w*)')


@dataclass(slots=True)
class _Kept:
    row: Row
    start: int
    end: int
    stream: int | None
    description: str
    link: int = 0


class Catless:
    """Collects rows without a category, names of processes, and flows.

    Attributes
    ----------
    features
        Whose processes were seen: ``legacy``, ``RPD``, ``Ascend`` or ``XLA``.
    """

    def __init__(self) -> None:
        self.features: set[str] = set()
        self._rows: list[_Kept] = []
        self._processes: dict[str, str] = {}
        self._threads: dict[_Place, str] = {}
        self._begins: dict[str, tuple[_Place, int]] = {}
        self._ends: list[tuple[str, _Place, int]] = []

    def add(self, rows: Iterable[Row]) -> None:
        """Take complete rows without a category, and metadata rows."""
        for row in rows:
            if row.ph == "M":
                self._add_name(row)
                continue
            start, length = _ns(row.ts), _ns(row.dur)
            if MISSING in (start, length):
                continue
            args = bytes(row.args)
            stream = _STREAM_ID.search(args)
            description = _DESCRIPTION.search(args)
            # A copy, because arguments keep the text of their whole block alive.
            ts, dur = _convertible(row.ts, start), _convertible(row.dur, length)
            bare = Row(ph="X", name=row.name, pid=row.pid, tid=row.tid, ts=ts, dur=dur)
            self._rows.append(
                _Kept(
                    bare,
                    start,
                    start + length,
                    as_int(stream.group(1).decode()) if stream else None,
                    description.group(1).decode() if description else row.name,
                )
            )

    def add_flows(self, rows: Iterable[Row]) -> None:
        """Take begins and ends of flows."""
        for row in rows:
            time = _ns(row.ts)
            if time == MISSING:
                continue
            if row.ph == "s":
                self._begins[str(row.id)] = (_place(row), time)
            elif row.ph in {"f", "t"}:
                self._ends.append((str(row.id), _place(row), time))

    def resolve(self) -> Iterator[tuple[Role, list[Row]]]:
        """Yield the rows that belong in a table, with a link as correlation."""
        sorted_rows: defaultdict[Role, list[_Kept]] = defaultdict(list)
        for kept in self._rows:
            role = self._role(kept)
            if role is not None:
                sorted_rows[role].append(kept)
        self._link(
            [kept for role, rows in sorted_rows.items() if role.part is Part.DEVICE for kept in rows],
            [kept for role, rows in sorted_rows.items() if role.part is Part.HOST for kept in rows],
        )
        for role, rows in sorted_rows.items():
            yield role, [_with_args(kept) for kept in rows]

    def _add_name(self, row: Row) -> None:
        try:
            name = json.decode(row.args, type=_Named).name or ""
        except (ValueError, RecursionError):
            return
        if row.name == "process_name":
            self._processes[str(row.pid)] = name
            if _XLA_PROCESS.match(name):
                self.features.add("XLA")
        elif row.name == "thread_name":
            self._threads[_place(row)] = name

    def _role(self, kept: _Kept) -> Role | None:
        process = self._processes.get(str(kept.row.pid), "")
        if kept.row.pid == _LEGACY_HOST:
            self.features.add("legacy")
        elif process in {"Python", "CANN", "Ascend Hardware"}:
            self.features.add("Ascend")
        elif _RPD_GPU.match(process):
            self.features.add("RPD")
        if kept.row.pid == _LEGACY_HOST or process == "Python":
            return Role(Part.HOST, HostCategory.CPU_OP)
        if process == "CANN":
            return Role(Part.HOST, HostCategory.API)
        on_host_thread = _RPD_HOST_THREAD.match(self._threads.get(_place(kept.row), ""))
        if kept.row.pid in _LEGACY_DEVICES or process == "Ascend Hardware":
            return _device_role(kept)
        if _RPD_GPU.match(process) and not on_host_thread:
            return None if _RPD_GRAPH.match(kept.row.name) else _device_role(kept)
        if on_host_thread:
            is_call = _ROCM_CALL.match(kept.row.name)
            return Role(Part.HOST, HostCategory.API if is_call else HostCategory.ANNOTATION)
        return None

    def _link(self, ops: Sequence[_Kept], calls: Sequence[_Kept]) -> None:
        ops_at: defaultdict[tuple[_Place, int], list[_Kept]] = defaultdict(list)
        for op in reversed(ops):
            ops_at[_place(op.row), op.start].append(op)
        calls_of: defaultdict[_Place, list[_Kept]] = defaultdict(list)
        for call in sorted(calls, key=lambda kept: (kept.start, -kept.end)):
            calls_of[_place(call.row)].append(call)
        starts = {place: [call.start for call in rows] for place, rows in calls_of.items()}
        links = 0
        for key, place, time in self._ends:
            begin = self._begins.get(key)
            found = ops_at.get((place, time))
            if begin is None or not found:
                continue
            launching = _call_at(calls_of[begin[0]], starts.get(begin[0], []), begin[1])
            if launching is None:
                continue
            if not launching.link:
                links += 1
                launching.link = links
            found.pop().link = launching.link


def _call_at(calls: Sequence[_Kept], starts: Sequence[int], time: int) -> _Kept | None:
    """Return the call in which a flow begins."""
    last = bisect_right(starts, time + _RPD_SLACK_NS)
    # RPD puts the begin of the flow of a very short call before the call itself.
    nearby = calls[max(0, last - _LOOK_BACK) : bisect_right(starts, time + _RPD_LEAD_NS + _RPD_SLACK_NS)]
    for call in nearby[::-1]:
        if abs(call.end - _RPD_LEAD_NS - time) <= _RPD_SLACK_NS or call.start == time:
            return call
    return next((call for call in reversed(calls[max(0, last - _LOOK_BACK) : last]) if call.end >= time), None)


def _device_role(kept: _Kept) -> Role:
    if _COPY.match(kept.description):
        return Role(Part.DEVICE, OpType.MEMCPY)
    return Role(Part.DEVICE, OpType.MEMSET if _FILL.match(kept.description) else OpType.KERNEL)


def _with_args(kept: _Kept) -> Row:
    args = {"correlation": kept.link}
    if kept.row.pid in _LEGACY_DEVICES:
        # Their thread is the device; streams were not recorded.
        args |= {"device": as_int(kept.row.tid) or 0, "stream": UNKNOWN_STREAM}
    if kept.stream is not None:
        args["stream"] = kept.stream
    kept.row.args = Raw(json.encode(args))
    return kept.row


def _place(row: Row) -> _Place:
    return str(row.pid), str(row.tid)


def _convertible(value: Scalar, ns: int) -> Scalar:
    """Return a time so that it can be converted again without the text of its row, which large decimals need."""
    return as_us(ns) if isinstance(value, float) else value


def _ns(value: Scalar) -> int:
    times, _ = to_ns([value], lambda: [repr(value).encode()])
    return int(times[0])
