"""Words for what `gaps` found: causes, limits and the lines an engineer would act on."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traceaudit.report.format import DOUBT, Scale, count_text, duration, percent

if TYPE_CHECKING:
    from traceaudit.model.results import Completeness
    from traceaudit.model.results.gaps import CriticalPath, DeviceGaps

__all__ = ["ACTIVITIES", "CAUSES", "LIMITS", "host_rows", "mark_of", "remarks", "verdict_line"]

NOTABLE_FRAC = 0.01
"""Share of the window from which on a part of the path's ops is told."""

MOST_THREADS = 3

LIMITS = {
    "device_bound": "device-bound",
    "host_bound": "host-bound",
    "sync_bound": "sync-bound",
    "copy_bound": "copy-bound",
    "comm_bound": "comm-bound",
    "mixed": "mixed",
}
CAUSES = {
    "graph_node": "node latency in a graph",
    "launch_call": "the launch call itself",
    "delivery": "launched, not yet started",
    "turnaround": "from one queued op to the next",
    "unknown": "unknown: rows are missing",
    "profiler_buffer": "launch call waits for the profiler",
    "stream_wait": "waits for another stream",
    "between_replays": "between graph replays",
    "sync": "a blocking call and its wake-up",
    "schedule": "engine scheduling",
    "prepare": "preparing inputs",
    "output": "sampling and output",
    "launch_api": "another launch call",
    "memory": "allocation",
    "other_api": "other API call",
    "framework": "framework dispatch",
    "forward": "Python around the model",
    "python": "Python",
    "annotation": "annotated host work",
    "profiler": "the profiler",
    "other_thread": "another thread at work",
    "unrecorded": "unrecorded host time",
}

ACTIVITIES = {**CAUSES, "launch_api": "launch calls"}
"""What the host did. As the cause of a gap, a launch call is another than the one that ends it."""


def mark_of(completeness: "Completeness", device: "DeviceGaps") -> str:
    """Return the mark of numbers that a finding makes doubtful, empty where none does."""
    return DOUBT if completeness.doubts(device.rank, device.device, "idle_ns", "idle_host", "idle_latency") else ""


def verdict_line(device: "DeviceGaps", mark: str = "") -> str:
    """Say what bounds the steps, with the shares of the window."""
    ranked = sorted(device.shares.items(), key=lambda share: -share[1])
    shares = ", ".join(
        f"{LIMITS[name].removesuffix('-bound')} {percent(part, 1)}{mark}" for name, part in ranked if part > 0
    )
    return f"{LIMITS[device.verdict]} ({shares} of the window)"


def host_rows(device: "DeviceGaps", scale: Scale, mark: str = "") -> list[list[str]]:
    """Return rows of total, exposed and activity: of the launching thread, then of the others that are waited for."""
    steps, host = max(device.steps_used, 1), device.host
    ranked = sorted(host.shares.items(), key=lambda one: -one[1].total_ns)
    rows = [
        [scale.text(share.total_ns / steps), scale.text(share.exposed_ns / steps) + mark, ACTIVITIES[name]]
        for name, share in ranked
        if share.total_ns or share.exposed_ns
    ]
    shown, rest = host.others[:MOST_THREADS], host.others[MOST_THREADS:]
    others = [(f"other launching thread {one.thread}", one.exposed_ns) for one in shown]
    if rest:
        others.append((count_text(len(rest), "more launching thread"), sum(one.exposed_ns for one in rest)))
    return rows + [["-", scale.text(time / steps) + mark, text] for text, time in others]


def remarks(device: "DeviceGaps", mark: str = "") -> Iterator[str]:
    """Yield the lines to act on."""
    steps = max(device.steps_used, 1)
    if device.verdict == "host_bound" and max(device.shares.values()) > device.shares["host_bound"]:
        yield (
            "The host alone, with a device that takes no time, would take nearly the step, and the device alone would "
            "not: faster ops would gain little."
        )
    lead = "the host leads" if device.queue_depth >= 1 else "the host chases the device"
    yield f"Launch-ahead depth {device.queue_depth:.2f} on average: {lead}."
    short = device.short
    if short.gaps:
        yield (
            f"Gaps below {duration(short.limit_ns)}: {short.gaps / steps:,.0f} a step, "
            f"{duration(short.time_ns / steps)}{mark} a step; "
            f"{short.shorter_than_launch:,} of {short.kernels:,} ops are shorter than their own launch call."
        )
    path = device.path
    parts = ", ".join(
        f"{kind.replace('_', ' ')} {duration(time)}{mark}{_of_it(path) if kind == 'op' else ''}"
        for kind, time in list(path.by_kind().items())[:5]
    )
    yield f"Critical path of step {path.step} ({duration(path.window_ns)}): {parts}."


def _of_it(path: "CriticalPath") -> str:
    """Say how much of the ops on a path is communication and copies, empty if none is notable."""
    times = {"communication": path.of_op_kinds("comm"), "copies": path.of_op_kinds("memcpy", "memset")}
    parts = [f"{name} {duration(time)}" for name, time in times.items() if time >= NOTABLE_FRAC * path.window_ns]
    return f" ({', '.join(parts)})" if parts else ""
