"""Logical traces as bytes, the way each generation of writers puts them.

`WRITERS` names them all. What a writer cannot express is left out by it: RPD knows no framework ops, PyTorch's first
profiler no API calls. `KINETO` are those that express everything.
"""

import gzip
import io
import json
import random
from dataclasses import dataclass, field

import zstandard
from builders import TraceBuilder

__all__ = [
    "BASE_NS",
    "COARSE",
    "KINETO",
    "WRITERS",
    "Document",
    "compress",
    "document",
    "dump",
    "render",
    "render_merged",
]

BASE_NS = 1_767_225_600_000_000_000
_RELATIVE_US = 4_402_211_000_000
_PID = 21877
_WINDOW_SLACK_NS = 20_000


class Literal(str):
    """Text put into the JSON as it is."""

    __slots__ = ()


@dataclass
class Writer:
    """What one generation writes differently."""

    layout: str
    categories: dict
    coarse: bool = False
    base: str | None = "before"
    string_tids: bool = False
    external: str = "External id"
    quoted_times: bool = False
    flow: tuple[str, str | None] = ("ac2g", "ac2g")
    versions: dict = field(default_factory=dict)
    device_properties: bool = True
    metadata_first: bool = False


_OLD = {
    "kernel": "Kernel",
    "memcpy": "Memcpy",
    "memset": "Memset",
    "api": "Runtime",
    "cpu_op": "Operator",
    "annotation": "User",
}
_MID = {**_OLD, "cpu_op": "cpu_op", "annotation": "user_annotation"}
_NEW = {
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "api": "cuda_runtime",
    "cpu_op": "cpu_op",
    "annotation": "user_annotation",
}
_CUDA = {"cupti_version": 24, "cuda_runtime_version": 12060, "cuda_driver_version": 12040}
_ROCM = {"roctracer_version": Literal("4.1"), "hip_runtime_version": 60443483, "hip_driver_version": 60443483}

WRITERS = {
    "kineto-1.8": Writer(
        "kineto", _OLD, coarse=True, base=None, string_tids=True, external="external id", flow=("async", "launch"),
        device_properties=False,
    ),
    "kineto-1.10": Writer("kineto", _MID, coarse=True, base=None, external="external id", flow=("async_gpu", None)),
    "kineto-1.12": Writer("kineto", _NEW, coarse=True, base=None, flow=("async_cpu_to_gpu", "async_gpu")),
    "kineto-2.2": Writer("kineto", _NEW, coarse=True, base=None),
    "kineto-2.4": Writer("kineto", _NEW, base="after"),
    "kineto-2.6": Writer("kineto", _NEW, base="after", versions=_CUDA),
    "kineto-2.12": Writer("kineto", _NEW, versions=_CUDA),
    "nightly-epoch": Writer("kineto", _NEW, base=None),
    "python": Writer("lines", _NEW, versions={"cuda_runtime_version": 13010}, metadata_first=True),
    "cpu-wheel": Writer("keys", _NEW),
    "compact": Writer("compact", _NEW, versions=_CUDA),
    "rocm": Writer("kineto", _NEW, versions=_ROCM),
    "xpu": Writer("kineto", {**_NEW, "api": "xpu_runtime"}, versions={"xpupti_version": "0.10"}),
    "privateuse1": Writer("lines", {**_NEW, "api": "privateuse1_runtime"}),
    "quoted": Writer("compact", _NEW, quoted_times=True, base=None),
    "begin-end": Writer("compact", _NEW, versions=_CUDA),
    "bare-list": Writer("compact", _NEW, base=None, coarse=True),
    "open-list": Writer("lines", _NEW, base=None, coarse=True),
    "rpd": Writer("rpd", {}, base=None),
    "legacy": Writer("legacy", {}, base=None, coarse=True),
}  # fmt: skip
KINETO = tuple(name for name in WRITERS if name not in {"rpd", "legacy"})
COARSE = tuple(name for name, writer in WRITERS.items() if writer.coarse)


@dataclass
class Document:
    """A file before it is text."""

    head: dict
    events: list
    tail: dict
    layout: str
    is_list: bool = False


def render(trace: TraceBuilder, writer: str = "kineto-2.6", *, shuffle=None, keys_first=None, space="") -> bytes:
    """Return the file that `writer` would write.

    Parameters
    ----------
    shuffle
        Seed of a random order of the events.
    keys_first
        Puts all top-level keys before (True) or after (False) the events.
    space
        Put between the events in addition.
    """
    made = document(trace, writer)
    if shuffle is not None:
        random.Random(shuffle).shuffle(made.events)
    if keys_first is not None and not made.is_list:
        every = {**made.head, **made.tail}
        made.head, made.tail = (every, {}) if keys_first else ({}, every)
    text = dump(made, space)
    return text.removesuffix("]").encode() if writer == "open-list" else text.encode()


def document(trace: TraceBuilder, writer: str) -> Document:
    """Return the file that `writer` would write, before it is text."""
    if writer == "rpd":
        return _rpd(trace)
    if writer == "legacy":
        return _legacy(trace)
    kind = WRITERS[writer]
    offset = BASE_NS if kind.base is None else _RELATIVE_US * 1000
    events = [*_device_events(trace, kind, offset), *_host_events(trace, kind, offset)]
    events += _other_events(trace, kind, offset)
    if writer == "begin-end":
        events = _halves(events)
    head = {"schemaVersion": 1}
    if kind.device_properties:
        head["deviceProperties"] = [
            {"id": number, "name": trace.device_name, "totalGlobalMem": 84942979072, "computeMajor": 9, "numSms": 132}
            for number in range(trace.devices)
        ]
    if trace.rank is not None:
        head["distributedInfo"] = {"backend": "nccl", "rank": trace.rank, "world_size": trace.world_size}
    head |= kind.versions | trace.keys
    tail = {"traceName": "/tmp/trace [1].json"}
    base = {"displayTimeUnit": "ms", "baseTimeNanoseconds": BASE_NS - _RELATIVE_US * 1000}
    if kind.base == "before":
        head |= base
    elif kind.base == "after":
        tail |= base
    return Document(head, events, tail, kind.layout, is_list=writer in {"bare-list", "open-list"})


def render_merged(traces: list[TraceBuilder]) -> bytes:
    """Return the file into which SGLang merges the traces of tensor-parallel ranks; ids are not renumbered."""
    merged = document(traces[0], "kineto-2.6")
    merged.layout = "compact"
    merged.events = []
    for rank, trace in enumerate(traces):
        for event in document(trace, "kineto-2.6").events:
            merged.events.append({**event, "pid": f"[TP{rank:02d}] {event['pid']}"})
    merged.head["deviceProperties"] = merged.head["deviceProperties"] * len(traces)
    return dump(merged).encode()


def compress(data: bytes, how: str) -> bytes:
    """Compress the bytes: gz, members (two gzip members), zst, or none."""
    if how == "gz":
        return gzip.compress(data)
    if how == "members":
        middle = len(data) // 2
        return gzip.compress(data[:middle]) + gzip.compress(data[middle:])
    if how == "zst":
        return zstandard.compress(data)
    return data


def dump(made: Document, space="") -> str:
    """Return the JSON text in the layout of the writer."""
    out = io.StringIO()
    if not made.is_list:
        out.write(_KEY_BREAK[made.layout].join(["{", *(f"{_text(k)}: {_text(v)}," for k, v in made.head.items())]))
        out.write(f'{_KEY_BREAK[made.layout]}"traceEvents": ')
    events = [_event(event, made.layout) for event in made.events]
    out.write("[" + space + (_SEPARATOR[made.layout] + space).join(events) + space + _END[made.layout] + "]")
    if not made.is_list:
        for key, value in made.tail.items():
            out.write(f",{_KEY_BREAK[made.layout]}{_text(key)}: {_text(value)}")
        out.write("}\n" if made.layout == "kineto" else "}")
    return out.getvalue()


_KEY_BREAK = {"kineto": "\n  ", "lines": "\n", "keys": "\n  ", "compact": "", "rpd": "", "legacy": ""}
_SEPARATOR = {"kineto": ",\n  ", "lines": ",\n", "keys": ",\n    ", "compact": ",", "rpd": "\n,", "legacy": ", "}
_END = {"kineto": "\n  ", "lines": "\n", "keys": "\n  ", "compact": "", "rpd": "\n", "legacy": ""}


def _event(event, layout) -> str:
    if layout == "keys":
        return _indented(event, 4)
    text = _text(event)
    if layout == "kineto":
        return text.replace('"args": {', '\n    "args": {\n      ', 1).replace('"name": ', '\n    "name": ', 1)
    return text.replace(": ", ":") if layout == "lines" and '\\"' not in text else text


def _indented(value, depth) -> str:
    pad, end = " " * (depth + 2), " " * depth
    if isinstance(value, dict) and value:
        inner = ",\n".join(f"{pad}{_text(k)}: {_indented(v, depth + 2)}" for k, v in value.items())
        return f"{{\n{inner}\n{end}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(pad + _indented(item, depth + 2) for item in value) + f"\n{end}]"
    return _text(value)


def _text(value) -> str:
    if isinstance(value, Literal):
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(k)}: {_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return json.dumps(value)


def _times(kind: Writer, start_ns, dur_ns, offset):
    start = start_ns + offset
    if kind.coarse:
        assert start % 1000 == 0, "this writer has whole microseconds"
        assert dur_ns % 1000 == 0, "this writer has whole microseconds"
        return Literal(start // 1000), Literal(dur_ns // 1000)
    texts = _decimal(start), _decimal(dur_ns)
    return tuple(texts) if kind.quoted_times else tuple(map(Literal, texts))


def _decimal(value_ns) -> str:
    sign = "-" if value_ns < 0 else ""
    return f"{sign}{abs(value_ns) // 1000}.{abs(value_ns) % 1000:03d}"


def _device_events(trace, kind, offset):
    for op in trace.ops:
        ts, dur = _times(kind, op.start_ns, op.dur_ns, offset)
        args = {"device": op.device, "context": 1, "stream": op.stream, "correlation": op.correlation, kind.external: 5}
        if op.type == "kernel" and "xpu_runtime" not in kind.categories.values():
            args |= {"registers per thread": 32, "shared memory": 0, "grid": [108, 2, 1], "block": [128, 1, 1]}
        tid = f"stream {op.stream}" if kind.string_tids else op.stream
        event = {"ph": "X", "cat": kind.categories[op.type], "name": op.name, "pid": op.device, "tid": tid}
        yield {**event, "ts": ts, "dur": dur, "args": args | op.args}
        yield _flow(kind, "f", op.correlation, op.device, tid, ts)
    if trace.ops and "annotation" in kind.categories and kind.base is not None:
        first = min(trace.ops, key=lambda op: op.start_ns)
        ts, dur = _times(kind, first.start_ns, 10**9, offset)
        bar = {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#2", "pid": 0, "tid": 7}
        yield {**bar, "ts": ts, "dur": dur}


def _flow(kind, phase, correlation, pid, tid, ts):
    category, name = kind.flow
    flow = {"ph": phase, "id": correlation, "pid": pid, "tid": tid, "ts": ts, "cat": category, "name": name or "x"}
    return flow | ({"bp": "e"} if phase == "f" else {})


def _host_events(trace, kind, offset):
    for number, row in enumerate(trace.host):
        ts, dur = _times(kind, row.start_ns, row.dur_ns, offset)
        tid = str(_PID + row.thread) if kind.string_tids else _PID + row.thread
        category = kind.categories.get(row.category, "python_function")
        if kind.categories["annotation"] == "User" and row.name.startswith("ProfilerStep"):
            category = "Operator"
        args = {"External id": number + 1, **row.args}
        if row.category == "api":
            args = {"cbid": 211, "correlation": row.correlation, kind.external: 5}
            yield _flow(kind, "s", row.correlation, _PID, tid, ts)
        elif row.category == "python":
            args = {"Python id": number, "Python parent id": None}
        event = {"ph": "X", "cat": category, "name": row.name, "pid": _PID, "tid": tid}
        yield {**event, "ts": ts, "dur": dur, "args": args}


def _other_events(trace, kind, offset):
    for name, start, dur in trace.overheads:
        ts, length = _times(kind, start, dur, offset)
        yield {"ph": "X", "cat": "overhead", "name": name, "pid": -1, "tid": 0, "ts": ts, "dur": length}
    for name, start, dur, device, stream, correlation in trace.syncs:
        ts, length = _times(kind, start, dur, offset)
        args = {"cuda_sync_kind": name, "stream": stream, "correlation": correlation, "device": device, "context": 1}
        event = {"ph": "X", "cat": "cuda_sync", "name": name, "pid": device, "tid": stream, "ts": ts, "dur": length}
        yield {**event, "args": args}
    starts = [row.start_ns for row in (*trace.ops, *trace.host)]
    ends = [row.start_ns + row.dur_ns for row in (*trace.ops, *trace.host)]
    if starts:
        begin, end = min(starts) - _WINDOW_SLACK_NS, max(ends) + _WINDOW_SLACK_NS
        ts, dur = _times(kind, begin, end - begin, offset)
        span = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler"}
        yield {**span, "ts": ts, "dur": dur, "args": {"Op count": 0}}
        yield {"name": "process_name", "ph": "M", "ts": ts, "pid": _PID, "tid": 0, "args": {"name": "python3"}}
        stop, _ = _times(kind, end, 0, offset)
        yield {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": stop}


def _halves(events):
    """Write host rows as begins and ends."""
    changed = []
    for event in events:
        if event.get("cat") in {"cpu_op", "cuda_runtime"}:
            end = _decimal(int(event["ts"].replace(".", "")) + int(event["dur"].replace(".", "")))
            begin = {key: value for key, value in event.items() if key != "dur"}
            place = {"pid": event["pid"], "tid": event["tid"]}
            changed += [{**begin, "ph": "B"}, {"ph": "E", **place, "ts": Literal(end)}]
        else:
            changed.append(event)
    return changed


def _rpd(trace) -> Document:
    kind = Writer("rpd", {}, quoted_times=True)
    events = [{}]
    events += (
        {"name": "process_name", "ph": "M", "pid": str(device), "args": {"name": f"GPU{device}"}}
        for device in sorted({op.device for op in trace.ops})
    )
    for thread in sorted({row.thread for row in trace.host}):
        name = {"name": f"Hip {thread}"}
        events.append({"name": "thread_name", "ph": "M", "pid": str(_PID), "tid": str(thread), "args": name})
    what = {"kernel": "KernelExecution", "memcpy": "CopyHostToDevice", "memset": "FillBuffer"}
    for op in trace.ops:
        ts, dur = _times(kind, op.start_ns, op.dur_ns, BASE_NS)
        place = {"pid": str(op.device), "tid": str(op.stream)}
        events.append({**place, "name": op.name, "ts": ts, "dur": dur, "ph": "X", "args": {"desc": what[op.type]}})
    if trace.ops:
        ts, _ = _times(kind, trace.ops[0].start_ns, 0, BASE_NS)
        graph = {"pid": "0", "tid": "7", "name": "Graph 94123", "ts": ts, "dur": "9999.000", "ph": "X"}
        events.append({**graph, "args": {"kernels": "12"}})
    calls = {row.correlation: row for row in trace.host if row.category == "api"}
    for row in trace.host:
        if row.category in {"api", "annotation"}:
            ts, dur = _times(kind, row.start_ns, row.dur_ns, BASE_NS)
            place = {"pid": str(_PID), "tid": str(row.thread)}
            events.append({**place, "name": row.name, "ts": ts, "dur": dur, "ph": "X", "args": {"desc": "x"}})
    for number, op in enumerate(trace.ops):
        call = calls.get(op.correlation)
        if call is None:
            continue
        begin, _ = _times(kind, min(call.start_ns + call.dur_ns - 2000, op.start_ns), 0, BASE_NS)
        end, _ = _times(kind, op.start_ns, 0, BASE_NS)
        flow = {"cat": "api_op", "name": "api_op", "id": str(number + 1)}
        events.append({"pid": str(_PID), "tid": str(call.thread), **flow, "ts": begin, "ph": "s"})
        events.append({"pid": str(op.device), "tid": str(op.stream), **flow, "ts": end, "ph": "f", "bp": "e"})
    events.append({"pid": "0", "name": "QueueDepth", "ph": "C", "ts": Literal(1), "args": {"depth": 1}})
    return Document({}, events, {}, "rpd")


def _legacy(trace) -> Document:
    """Write what PyTorch's first profiler knew: framework ops, kernels, and flows from op to kernel."""
    kind = Writer("legacy", {}, coarse=True)
    offset = 10**9
    events = []
    ops_of = {}
    calls = {row.correlation: row for row in trace.host if row.category == "api"}
    for row in trace.host:
        if row.category == "cpu_op":
            ts, dur = _times(kind, row.start_ns, row.dur_ns, offset)
            place = {"tid": row.thread, "pid": "CPU functions"}
            events.append({"name": row.name, "ph": "X", "ts": ts, "dur": dur, **place, "args": {}})
            for call in calls.values():
                inside = row.start_ns <= call.start_ns and call.start_ns + call.dur_ns <= row.start_ns + row.dur_ns
                if inside and call.thread == row.thread:
                    ops_of[call.correlation] = row
    for number, op in enumerate(trace.ops):
        ts, dur = _times(kind, op.start_ns, op.dur_ns, offset)
        place = {"tid": op.device, "pid": "CUDA functions"}
        events.append({"name": op.name, "ph": "X", "ts": ts, "dur": dur, **place, "args": {}})
        row = ops_of.get(op.correlation)
        if row is not None:
            begin, _ = _times(kind, row.start_ns, 0, offset)
            flow = {"id": number, "cat": "cpu_to_cuda", "args": {}}
            events.append({"name": row.name, "ph": "s", "ts": begin, "tid": row.thread, "pid": "CPU functions", **flow})
            events.append({"name": op.name, "ph": "f", "ts": ts, **place, **flow})
    return Document({}, events, {}, "legacy", is_list=True)
