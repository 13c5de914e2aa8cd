"""Launches without device ops, and device ops without launches."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traceaudit.ingest.captures import in_capture
from traceaudit.ingest.links import roles_of_names
from traceaudit.ingest.severity import by_share, examples_of, in_ms, percent
from traceaudit.model.apis import ApiRole
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.schema import DeviceOps, HostCategory, HostRows, Threads
from traceaudit.model.shortnames import shortened

__all__ = ["find_launches_without_ops", "find_ops_without_launches"]

_HINT_LOST = "device rows were lost or cut away; idle time may be work that is not shown"


def find_launches_without_ops(ops: DeviceOps, host: HostRows, threads: Threads, names: Sequence[str]) -> list[Finding]:
    """Report enqueuing calls that have no device op.

    Calls inside a stream capture enqueue nothing; the message says how many were left out. Calls after the last one
    that has an op enqueued what the end of the capture cut off: that is a finding of its own.
    """
    apis = np.flatnonzero(host.category == HostCategory.API)
    roles = roles_of_names(names, host.name[apis])
    launches = apis[(roles == ApiRole.LAUNCH) & (host.correlation[apis] >= 0)]
    if not len(launches) or not len(ops):
        return []
    used = np.zeros(len(host), dtype=bool)
    used[ops.launch[ops.launch >= 0]] = True
    lacking = launches[~used[launches]]
    lacking = lacking[~_shares_correlation(lacking, ops, host, threads)]
    captured = in_capture(lacking, host, names)
    last = int(host.start_ns[np.flatnonzero(used)].max(initial=-1))
    late = ~captured & (host.start_ns[lacking] > last) if last >= 0 else np.zeros(len(lacking), dtype=bool)
    missing = lacking[~captured & ~late]
    found = _tail_loss(lacking[late], ops, host, names)
    if not len(missing):
        return found
    impact = _expected_time(missing, ops, host)
    total = int((ops.end_ns - ops.start_ns).sum())
    left_out = f"; {int(captured.sum())} more during a stream capture" if captured.any() else ""
    return [
        Finding(
            "launch_without_op",
            by_share(impact, total + impact),
            f"{len(missing)} of {len(launches)} enqueuing calls have no device op ({_counts(missing, host, names)}), "
            f"which at the mean of their kind is {in_ms(impact)} of device time{left_out}",
            hint=_HINT_LOST,
            count=len(missing),
            impact_ns=impact,
            examples=_calls(missing, host, names),
        ),
        *found,
    ]


def _tail_loss(late: npt.NDArray[np.int64], ops: DeviceOps, host: HostRows, names: Sequence[str]) -> list[Finding]:
    """Report the calls at the end of the capture whose ops it did not see any more."""
    if not len(late):
        return []
    impact = _expected_time(late, ops, host)
    total = int((ops.end_ns - ops.start_ns).sum())
    return [
        Finding(
            "capture_edge_loss",
            by_share(impact, total + impact),
            f"the last {len(late)} enqueuing calls have no device op ({_counts(late, host, names)}), which at the mean "
            f"of their kind is {in_ms(impact)} of device time: the capture ended before they ran, or lost its end; the "
            "time after the last op is not idle",
            hint="wait for the device before the profiler stops; judge by steps that are whole",
            count=len(late),
            impact_ns=impact,
            examples=_calls(late, host, names),
        )
    ]


def _counts(rows: npt.NDArray[np.int64], host: HostRows, names: Sequence[str]) -> str:
    by_name = Counter(names[code] for code in host.name[rows].tolist())
    return ", ".join(f"{count} {name}" for name, count in by_name.most_common(4))


def _calls(rows: npt.NDArray[np.int64], host: HostRows, names: Sequence[str]) -> tuple[str, ...]:
    return examples_of(
        f"{names[host.name[row]]} at {in_ms(host.start_ns[row])} (correlation {host.correlation[row]})"
        for row in rows.tolist()
    )


def find_ops_without_launches(ops: DeviceOps, host: HostRows, names: Sequence[str]) -> list[Finding]:
    """Report device ops that no host row enqueued."""
    lacking = np.flatnonzero(ops.launch < 0)
    if not len(lacking):
        return []
    length = ops.end_ns - ops.start_ns
    impact, total = int(length[lacking].sum()), int(length.sum())
    head = _before_all_launched(ops)[lacking]
    severity, why, hint = _judge(lacking, head, length, total, host)
    worst = lacking[np.argsort(-length[lacking], kind="stable")]
    by_name = Counter(names[code] for code in ops.name[lacking].tolist())
    return [
        Finding(
            "op_without_launch",
            severity,
            f"{len(lacking)} of {len(ops)} device ops have no launch row ({in_ms(impact)}, {percent(impact, total)} of "
            f"the op time; most often {_short(by_name.most_common(1)[0][0])}){why}",
            hint=hint,
            count=len(lacking),
            impact_ns=impact,
            examples=examples_of(
                f"{_short(names[ops.name[row]])} at {in_ms(ops.start_ns[row])}, {in_ms(length[row])} "
                f"(correlation {ops.correlation[row] if ops.correlation[row] >= 0 else 'none'})"
                for row in worst.tolist()
            ),
        )
    ]


def _judge(
    lacking: npt.NDArray[np.int64],
    head: npt.NDArray[np.bool_],
    length: npt.NDArray[np.int64],
    total: int,
    host: HostRows,
) -> tuple[Severity, str, str]:
    """Return how much ops without a launch matter, why they may have none, and what to do."""
    if not (host.category == HostCategory.API).any():
        return (
            Severity.WARNING,
            "; the trace has no API rows at all, so nothing tells what the host did",
            "record with ProfilerActivity.CPU as well",
        )
    # What was queued before the capture is complete itself, and lies outside every step's own ops.
    queued = int(length[lacking[head]].sum())
    severity = by_share(int(length[lacking[~head]].sum()), total)
    if not head.any():
        return severity, "", "calls that the profiler does not record, or lost rows: the cause of their idle is unknown"
    why = f"; {int(head.sum())} of them ({in_ms(queued)}) come before every launched op of their queue: queued before "
    return severity, f"{why}the capture began, so no step counts them", "begin the capture after a synchronisation"


def _before_all_launched(ops: DeviceOps) -> npt.NDArray[np.bool_]:
    """Return which ops start before every launched op of their queue; of a queue without any, of their device."""
    never, always = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    device = np.unique(np.stack((ops.rank, ops.device)), axis=1, return_inverse=True)[1].ravel()
    queue = np.unique(np.stack((device, ops.stream)), axis=1, return_inverse=True)[1].ravel()
    launched = ops.launch >= 0
    first_on_device = np.full(int(device.max(initial=0)) + 1, never, np.int64)
    first_on_queue = np.full(int(queue.max(initial=0)) + 1, never, np.int64)
    np.minimum.at(first_on_device, device[launched], ops.start_ns[launched])
    np.minimum.at(first_on_queue, queue[launched], ops.start_ns[launched])
    # Where a device shows no launch at all, nothing tells when the capture caught up with it.
    first_on_device[first_on_device == never] = always
    first = np.where(first_on_queue[queue] < never, first_on_queue[queue], first_on_device[device])
    before: npt.NDArray[np.bool_] = ops.start_ns < first
    return before


def _shares_correlation(
    rows: npt.NDArray[np.int64], ops: DeviceOps, host: HostRows, threads: Threads
) -> npt.NDArray[np.bool_]:
    """Return which rows share their correlation with another row that has ops (a driver's under a runtime's)."""
    launched = ops.launch >= 0
    taken = set(zip(ops.rank[launched].tolist(), ops.correlation[launched].tolist(), strict=True))
    pairs = zip(threads.rank[host.thread[rows]].tolist(), host.correlation[rows].tolist(), strict=True)
    return np.array([pair in taken for pair in pairs], dtype=bool)


def _expected_time(missing: npt.NDArray[np.int64], ops: DeviceOps, host: HostRows) -> int:
    """Return the op time that the calls would have at the mean of calls of the same name, or of all calls."""
    launched = ops.launch >= 0
    length = (ops.end_ns - ops.start_ns)[launched].astype(np.float64)
    of_name = host.name[ops.launch[launched]]
    size = int(max(of_name.max(initial=0), host.name[missing].max(initial=0))) + 1
    time = np.bincount(of_name, weights=length, minlength=size)
    calls = np.bincount(host.name[np.unique(ops.launch[launched])], minlength=size)
    everything = float(length.sum()) / max(1, int(calls.sum()))
    mean = np.where(calls > 0, time / np.maximum(calls, 1), everything)
    return round(float(mean[host.name[missing]].sum()))


def _short(name: str, limit: int = 60) -> str:
    name = shortened([name])[name]
    return name if len(name) <= limit else name[: limit - 1] + "…"
