"""The ledger computed slowly, from the JSON text alone: what the fast code is checked against.

Plain loops over rows, one instant after the other, in whole nanoseconds. Nothing is imported from `traceaudit`, so a
mistake there cannot repeat itself here. It follows the laws of the ledger sentence by sentence (docs/concepts), and
knows what clean Kineto traces of CUDA devices hold: no damaged rows, one rank, one device.
"""

import gzip
import itertools
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from statistics import median, median_low

__all__ = ["Reference", "assert_same_ledger", "reference_of"]

INFINITY = 10**30
OP_TYPES = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
HOST_TYPES = {
    "cuda_runtime": "api",
    "cuda_driver": "api",
    "cpu_op": "cpu_op",
    "user_annotation": "annotation",
    "python_function": "python",
}
NESTING = ("python", "annotation", "cpu_op", "api", "overhead")
WAITS = {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy"}
IDLE = ("idle_graph", "idle_latency", "idle_host", "idle_unknown")
ACCOUNTS = ("compute", "exposed_comm", "exposed_copy", *IDLE)


@dataclass
class Row:
    """A row of the file; `end` is exclusive."""

    type: str
    name: str
    start: int
    end: int
    place: tuple
    number: int
    correlation: int = 0
    launch: "Row | None" = None
    step: int | None = None


@dataclass
class Step:
    """A step: host interval, window, and what its window holds."""

    name: str | None
    start: int
    end: int
    window: tuple = ()
    used: bool = True
    ops: list = field(default_factory=list)
    accounts: Counter = field(default_factory=Counter)


@dataclass
class Reference:
    """What the slow way found; times in ns from the earliest row."""

    totals: dict
    source: str
    steps: list
    window: int
    accounts: dict
    latency_by: dict
    host_by: dict
    position: dict


@dataclass
class Segment:
    """A stretch of the device's time line with one owner; `part` tells idle latency apart."""

    start: int
    end: int
    owner: str
    part: str | None = None
    gap: tuple | None = None
    after: Row | None = None


def reference_of(text) -> Reference:
    """Account for every nanosecond of the steps of a trace, given as text or as the path of a file."""
    if isinstance(text, Path):
        data = text.read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    ops, host, overheads, waits = rows_of(json.loads(text, parse_float=Decimal))
    link(ops, host)
    source, steps, touching = steps_of(ops, host)
    late = pending(ops, overheads + waits)
    cut_windows(ops, steps, late)
    line = time_line(ops, host + overheads + waits, late)
    leave_out(steps, touching)
    return account(ops, host, overheads, source, steps, line)


def rows_of(document):
    """Sort the events into device ops, host rows, rows of the profiler and waits; time 0 is the earliest of them."""
    ops, host, overheads, waits = [], [], [], []
    for number, event in enumerate(document["traceEvents"]):
        if event.get("ph") != "X":
            continue
        category, args = event.get("cat"), event.get("args", {})
        start = round(Decimal(event["ts"]) * 1000)
        end = start + round(Decimal(event["dur"]) * 1000)
        row = Row("", event["name"], start, end, (event["pid"], event["tid"]), number, args.get("correlation", 0))
        if category in OP_TYPES:
            row.type, row.place = OP_TYPES[category], (args["device"], args["stream"])
            ops.append(row)
        elif category in HOST_TYPES:
            row.type = HOST_TYPES[category]
            host.append(row)
        elif category == "overhead":
            row.type = "overhead"
            overheads.append(row)
        elif category == "cuda_sync":
            waits.append(row)
    zero = min(row.start for row in (*ops, *host, *overheads, *waits))
    for row in (*ops, *host, *overheads, *waits):
        row.start -= zero
        row.end -= zero
    return sorted(ops, key=lambda row: (row.start, row.end, row.number)), host, overheads, waits


def link(ops, host):
    """Give each op the call that has its correlation."""
    calls = {row.correlation: row for row in host if row.type == "api"}
    for op in ops:
        op.launch = calls.get(op.correlation)


def kind_of(op) -> str:
    if op.type != "kernel":
        return "copy"
    return "comm" if op.name.startswith("nccl") else "compute"


def assert_same_ledger(device, expected: Reference) -> None:
    """Compare what the fast code says of a device with what the slow way found."""
    assert {key: getattr(device.totals, key) for key in expected.totals} == expected.totals
    assert device.steps.source == expected.source
    found = [(item.name, item.start_ns, item.window_ns, item.device_ops, item.used) for item in device.steps.items]
    assert found == [
        (step.name, step.window[0], step.window[1] - step.window[0], len(step.ops), step.used)
        for step in expected.steps
    ]
    for item, step in zip(device.steps.items, expected.steps, strict=True):
        assert {account: getattr(item.accounts, account) for account in ACCOUNTS} == {
            account: step.accounts[account] for account in ACCOUNTS
        }
    ledger = device.ledger
    assert ledger.window_ns == expected.window
    assert {account: getattr(ledger.accounts, account) for account in ACCOUNTS} == expected.accounts
    assert {part: getattr(ledger.idle_latency_by, part) for part in expected.latency_by} == expected.latency_by
    assert dict(ledger.idle_host_by) == expected.host_by
    assert {part: getattr(ledger.idle_by_position, part) for part in expected.position} == expected.position


# ---------------------------------------------------------------- steps


def steps_of(ops, host):
    """Return source, steps as host intervals, and whether their markers touch."""
    for source, pattern in (
        ("profiler_step", r"ProfilerStep#\d+"),
        ("sglang", r"step\[.*\]"),
        ("vllm", r"execute_(\d+_)?context_\d+(\(.*\))?_generation_\d+(\(.*\))?"),
    ):
        marks = [row for row in host if row.type == "annotation" and re.fullmatch(pattern, row.name)]
        if marks:
            return source, *from_marks(sorted(marks, key=lambda row: row.start), host, source)
    last = max(row.end for row in host)
    launches = sorted(row.start for row in host if row.name == "cudaGraphLaunch")
    if len(launches) > 1:  # the recordings replay one graph
        return "graph_launch", from_starts(launches, last), False
    return "kernel_cycle", from_starts(cycle_starts(ops), last), False


def from_marks(marks, host, source):
    gaps = [b.start - a.end for a, b in itertools.pairwise(marks)]
    lengths = [b.start - a.start for a, b in itertools.pairwise(marks)]
    touching = bool(gaps) and all(g * 1000 <= n for g, n in zip(gaps, lengths, strict=True))
    touching |= source == "profiler_step"
    ends = [row.start for row in marks[1:]] + [marks[-1].end if touching else max(row.end for row in host)]
    return [Step(row.name, row.start, end) for row, end in zip(marks, ends, strict=True)], touching


def from_starts(starts, last):
    return [Step(None, start, end) for start, end in zip(starts, [*starts[1:], last], strict=True)]


def cycle_starts(ops):
    """Find the launches that begin a cycle: try every period; a recording of whole cycles begins with one.

    Else the kernel begins it, of those that occur once a cycle, before which the host pauses longest.
    """
    launched = sorted((op for op in ops if op.launch), key=lambda op: (op.launch.start, op.start))
    names = [op.name for op in launched]
    agreement = {
        period: sum(a == b for a, b in zip(names, names[period:], strict=False)) / (len(names) - period)
        for period in range(1, len(names) // 2 + 1)
    }
    best = max(agreement.values())
    assert best >= 0.9
    period = min(p for p, share in agreement.items() if share >= best - 0.002)
    if len(names) % period == 0:
        return [launched[i].launch.start for i in range(0, len(names), period)]
    found = (-1, [])
    for name in sorted(set(names)):
        at = [i for i, one in enumerate(names) if one == name]
        if abs(len(at) - len(names) / period) > 1 or len(at) < 2:
            continue
        if median(b - a for a, b in itertools.pairwise(at)) != period:
            continue
        pause = median(launched[i].launch.start - launched[i - 1].launch.start for i in at if i)
        found = max(found, (pause, at))
    return [launched[i].launch.start for i in found[1]]


# ---------------------------------------------------------------- windows


def cut_windows(ops, steps, late):
    """Give each op its step and each step its window."""
    for op in ops:
        if op.launch is None:
            continue
        if op.launch.start < steps[0].start:
            op.step = -1
        for index, step in enumerate(steps):
            if step.start <= op.launch.start < step.end:
                op.step = index
    on_main = main_ops(ops)

    def first_kernel(index):
        return min((op.start for op in on_main if op.step == index and op.type == "kernel"), default=INFINITY)

    begins = next((at for at in map(first_kernel, range(len(steps))) if at < INFINITY), -INFINITY)
    for op in ops:
        if op.launch is None and op.start < begins:
            op.step = -1
    before, edges = -INFINITY, []
    for index, step in enumerate(steps):
        before = max([before] + [op.end for op in on_main if op.step is not None and op.step < index])
        edges.append(max(step.start, min(before, first_kernel(index)), *edges[-1:]))
        lost = any(op.step == 0 and op in late for op in ops if op.start == ops[0].start)
        if index == 0 and lost and not any(op.step == -1 for op in ops):
            edges[0] = max(edges[0], ops[0].start)
    last = len(steps) - 1
    end = max([steps[last].end, edges[last]] + [op.end for op in on_main if op.step == last])
    for index, step in enumerate(steps):
        step.window = (edges[index], [*edges[1:], end][index])
        step.ops = [op for op in ops if op.step == index]


def main_ops(ops):
    """Return the ops of the main stream; all compute kernels where a tenth of the steps computes elsewhere."""
    compute = [op for op in ops if op.step is not None and op.step >= 0 and kind_of(op) == "compute"]
    load = Counter()
    for op in sorted(compute, key=lambda op: op.place):
        load[op.place] += op.end - op.start
    if not compute:
        return ops
    main = max(load, key=lambda place: load[place])
    there = {op.step for op in compute if op.place == main}
    if 10 * len(there) >= 9 * len({op.step for op in compute}):
        return [op for op in ops if op.place == main]
    return [op for op in ops if kind_of(op) == "compute"]


def leave_out(steps, touching):
    last = len(steps) - 1
    if not touching and last > 0:
        steps[last].used = False
    for index in {0, last} if last >= 2 else ():
        others = [step for step in steps if step is not steps[index]]
        usual = median(step.window[1] - step.window[0] for step in others)
        length = steps[index].window[1] - steps[index].window[0]
        if len(steps[index].ops) != median(len(step.ops) for step in others) or abs(length - usual) > usual / 10:
            steps[index].used = False


# ---------------------------------------------------------------- the device's time line


def merged(ops):
    """Return the stretches in which any of the ops runs."""
    found = []
    for op in sorted(ops, key=lambda op: op.start):
        if op.end == op.start:
            continue
        if found and op.start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], op.end)
        else:
            found.append([op.start, op.end])
    return found


def ending_op(ops, gap_end):
    """Return the op that ends a gap: of those that start then, the one launched earliest."""
    starting = [op for op in ops if op.start == gap_end and op.end > op.start]
    return min(starting, key=lambda op: begun(op.launch) if op.launch else (INFINITY,), default=None)


def begun(row):
    """Order host rows by their start; of those that start together the outer comes first: the longest, the frame."""
    return row.start, -row.end, NESTING.index(row.type), row.number


def pending(ops, excuses):
    """Return ops that start on an idle device long after everything they could wait for."""
    waits = []
    busy = merged(ops)
    for index, (start, _) in enumerate(busy):
        op = ending_op(ops, start)
        if op.launch is None or start == 0:  # nothing comes before time 0, so nothing could wait
            continue
        since = max(op.launch.end, busy[index - 1][1] if index else -INFINITY)
        excused = sum(max(0, min(end, start) - max(begin, since)) for begin, end in merged(excuses) if since < start)
        waits.append((max(start - since, 0) - excused, op))
    late = []
    for wait, op in waits:
        others = [one for one, other in waits if other is not op]
        if wait > max(250_000, 10 * (median_low(others) if others else 0)):
            late.append(op)
    return late


def time_line(ops, others, late):
    """Return the device's time line in segments, from the first row to the last."""
    edges = {0, max(row.end for row in (*ops, *others))}
    for op in ops:
        if op.end > op.start:
            edges |= {op.start, op.end}
    busy = merged(ops)
    free = list(zip([0] + [end for _, end in busy], [start for start, _ in busy] + [max(edges)], strict=True))
    line, running, waiting, gap = [], [], list(ops), 0
    points = sorted(edges)
    for start, end in itertools.pairwise(points):
        while waiting and waiting[0].start <= start:
            running.append(waiting.pop(0))
        running = [op for op in running if op.end > start]
        kinds = {kind_of(op) for op in running}
        owner = next((name for kind, name in BUSY_OWNERS if kind in kinds), None)
        if owner:
            line.append(Segment(start, end, owner))
            continue
        while free[gap][1] <= start:
            gap += 1
        line += idle_segments(ops, free[gap], late)
    return line


BUSY_OWNERS = (("compute", "compute"), ("comm", "exposed_comm"), ("copy", "exposed_copy"))


def idle_segments(ops, gap, late):
    start, end = gap
    op = ending_op(ops, end)
    if op is None:
        return [Segment(start, end, "idle_host", None, gap)]
    call = op.launch
    if call is None or op in late:
        return [Segment(start, end, "idle_unknown", None, gap, op)]
    earlier = [one for one in ops if one.end == start and one.end > one.start]
    inside_graph = bool(earlier) and earlier[-1].launch is call  # of ops that end together, the one that began last
    cuts = sorted({start, end} | {t for t in (call.start, call.end) if start < t < end})
    found = []
    for a, b in itertools.pairwise(cuts):
        if a < call.start:
            found.append(Segment(a, b, "idle_host", None, gap, op))
        elif a < call.end:
            found.append(Segment(a, b, "idle_latency", "launch_call", gap, op))
        elif inside_graph:
            found.append(Segment(a, b, "idle_graph", None, gap, op))
        else:
            part = "delivery" if call.end > start else "turnaround"
            found.append(Segment(a, b, "idle_latency", part, gap, op))
    return found


# ---------------------------------------------------------------- accounts


def account(ops, host, overheads, source, steps, line) -> Reference:
    position, latency, host_by = Counter(), Counter(), Counter()
    causes = Causes(ops, host, overheads, {step.name for step in steps if step.name})
    last_launch = max((op.launch for op in ops if op.launch), key=begun, default=None)
    marker = next((row for row in host if row.name == steps[0].name), None)
    for segment in line:
        for step in steps:
            begin, end = max(segment.start, step.window[0]), min(segment.end, step.window[1])
            if begin >= end:
                continue
            step.accounts[segment.owner] += end - begin
            if not step.used or segment.gap is None:
                continue
            position[place_of(segment.gap, step.window)] += end - begin
            if segment.part:
                latency[segment.part] += end - begin
            if segment.owner == "idle_host":
                by = segment.after.launch if segment.after else last_launch or marker
                host_by.update(causes.between(by.place, begin, end))
    used = [step for step in steps if step.used]
    busy = merged(ops)
    return Reference(
        totals={
            "device_ops": len(ops),
            "op_time_ns": sum(op.end - op.start for op in ops),
            "busy_ns": sum(end - start for start, end in busy),
            "span_ns": max(op.end for op in ops) - min(op.start for op in ops),
            "gaps": max(len(busy) - 1, 0),
        },
        source=source,
        steps=steps,
        window=sum(step.window[1] - step.window[0] for step in used),
        accounts={name: sum(step.accounts[name] for step in used) for name in ACCOUNTS},
        latency_by={name: latency[name] for name in ("launch_call", "delivery", "turnaround")},
        host_by=folded(host_by),
        position={name: position[name] for name in ("leading", "between", "trailing")},
    )


def place_of(gap, window):
    if gap[0] <= window[0]:
        return "leading"
    return "trailing" if gap[1] >= window[1] else "between"


def folded(host_by):
    """Keep the 20 largest frames, and add every cause without a name."""
    frames = sorted((item for item in host_by.items() if item[0].startswith("python:")), key=lambda f: (-f[1], f[0]))
    result = {name: time for name, time in host_by.items() if not name.startswith("python:")} | dict(frames[:20])
    if frames[20:]:
        result["python:other"] = sum(time for _, time in frames[20:])
    for name in ("sync", "launch_api", "other_api", "framework", "profiler", "unrecorded"):
        result.setdefault(name, 0)
    return result


class Causes:
    """What each thread was doing at each instant: the open row that began last."""

    def __init__(self, ops, host, overheads, markers):
        self._done = defaultdict(int)
        for op in ops:
            if op.launch:
                self._done[op.launch.number] = max(self._done[op.launch.number], op.end)
        self._late = self._late_calls(host)
        self._rows = [row for row in host if row.name not in markers]
        self._overheads = overheads
        self._cuts: dict = {}

    def _late_calls(self, host):
        """Return the calls that outlast their ops: copies, and launches where nine in ten of them do."""
        calls = [row for row in host if row.type == "api" and row.number in self._done]
        launches = [row for row in calls if "Memcpy" not in row.name]
        late = {row.number for row in calls if row.end > self._done[row.number]}
        late_launches = {row.number for row in launches} & late
        blocking = len(launches) >= 10 and len(late_launches) >= 0.9 * len(launches)
        return late if blocking else late - late_launches

    def between(self, thread, start, end):
        found = Counter()
        for a, b, cause in self._thread(thread):
            if a < end and b > start:
                found[cause] += min(b, end) - max(a, start)
        rest = end - start - sum(found.values())
        if rest:
            found["unrecorded"] += rest
        return found

    def _thread(self, thread):
        if thread not in self._cuts:
            self._cuts[thread] = list(self._cut([row for row in self._rows if row.place == thread] + self._overheads))
        return self._cuts[thread]

    def _cut(self, rows):
        rows = sorted(rows, key=begun)
        points = sorted({t for row in rows for t in (row.start, row.end)})
        active, waiting = [], iter([*rows, None])
        following = next(waiting)
        for start, end in itertools.pairwise(points):
            while following is not None and following.start <= start:
                active.append(following)
                following = next(waiting)
            active = [row for row in active if row.end > start]
            if active:
                yield start, end, self._cause(active[-1])

    def _cause(self, row):
        if row.type == "api":
            if row.name in WAITS or row.number in self._late:
                return "sync"
            return "launch_api" if re.search(r"Launch|Mem(cpy|set)", row.name) else "other_api"
        if row.type == "cpu_op" or row.name.startswith("## Call CompiledFxGraph "):
            return "framework"
        if row.type == "annotation":
            return f"annotation:{row.name}"
        if row.type == "python":
            return f"python:{frame(row.name)}"
        return "profiler"


def frame(name):
    """Return ``base.py:function`` of a frame ``path/base.py(12): function``, without addresses."""
    name = re.sub(r"\s*(object )?at 0x[0-9a-fA-F]+", "", name)
    found = re.match(r"(.*)\((\d+)\): (.*)", name)
    return f"{found[1].split('/')[-1]}:{found[3]}" if found else name
