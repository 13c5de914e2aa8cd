"""One device of a trace with everything that analyses share: its ops, time line, steps and windows."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traceaudit.model import intervals
from traceaudit.model.occupancy import Occupancy, occupancy_of
from traceaudit.model.options import Selection, StepOptions
from traceaudit.model.results import Totals
from traceaudit.model.schema import DeviceOps
from traceaudit.model.shortnames import shortened
from traceaudit.model.steps import StepMarks, find_steps
from traceaudit.model.trace import DeviceInfo, Trace
from traceaudit.model.windows import Windows, step_windows

__all__ = ["DeviceView", "device_views", "own_ops"]


@dataclass(frozen=True, slots=True)
class DeviceView:
    """A device of a trace, keyed by rank and ordinal."""

    trace: Trace
    rank: int
    device: int
    name: str | None
    ops: DeviceOps
    occupancy: Occupancy
    marks: StepMarks
    windows: Windows

    @property
    def info(self) -> DeviceInfo | None:
        """What the file says of the device; of one that is not listed, what it says of all if they are alike."""
        listed = self.trace.devices
        own = next((info for info in listed if (info.rank, info.device) == (self.rank, self.device)), None)
        if own is not None:
            return own
        alike = {(info.name, info.sms, info.memory_bytes, info.compute_major, info.compute_minor) for info in listed}
        return listed[0] if len(alike) == 1 else None

    @property
    def short_names(self) -> dict[str, str]:
        """A short form of each name of an op, different for different names: what tables and findings print."""
        return shortened([self.trace.names[code] for code in np.unique(self.ops.name).tolist()])

    @property
    def pauses(self) -> tuple[tuple[int, int], ...]:
        """Stretches between two captures of the file, in ns: nothing was recorded, so nothing there is idle time."""
        captures = self.trace.source.captures_ns
        return tuple((before[1], after[0]) for before, after in pairwise(captures))

    @property
    def totals(self) -> Totals:
        """The device over the whole trace."""
        busy = self.occupancy.busy
        return Totals(
            device_ops=len(self.ops),
            op_time_ns=int((self.ops.end_ns - self.ops.start_ns).sum()),
            busy_ns=intervals.measure(busy),
            span_ns=int(self.ops.end_ns.max() - self.ops.start_ns.min()),
            gaps=max(len(busy.start) - 1, 0),
        )


def device_views(trace: Trace, steps: StepOptions, selection: Selection) -> Iterator[DeviceView]:
    """Yield the selected devices that have ops, by rank and ordinal."""
    end = _last_instant(trace)
    for rank, device in sorted(set(zip(trace.ops.rank.tolist(), trace.ops.device.tolist(), strict=True))):
        if selection.rank not in (None, rank) or selection.device not in (None, device):
            continue
        own = (trace.ops.rank == rank) & (trace.ops.device == device)
        ops = trace.ops if own.all() else trace.ops.take(own)
        marks = find_steps(trace, ops, steps)
        occupancy = occupancy_of(trace, ops, 0, end)
        windows = step_windows(trace, ops, marks, occupancy.pending)
        yield DeviceView(trace, rank, device, _name_of(trace, rank, device), ops, occupancy, marks, windows)


def _last_instant(trace: Trace) -> int:
    ends = (table.end_ns.max(initial=0) for table in (trace.ops, trace.host, trace.syncs, trace.overheads))
    return int(max(ends))


def _name_of(trace: Trace, rank: int, device: int) -> str | None:
    """Return the device's name; one that is not listed takes the name that all listed devices share."""
    for info in trace.devices:
        if (info.rank, info.device) == (rank, device):
            return info.name
    names = {info.name for info in trace.devices}
    return names.pop() if len(names) == 1 else None


def own_ops(view: DeviceView) -> Iterator[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Yield for each step the rows of its own ops, in order of start."""
    order = np.argsort(view.windows.step, kind="stable")
    steps = np.arange(len(view.windows.edge_ns) - 1)
    first = np.searchsorted(view.windows.step[order], steps, "left")
    last = np.searchsorted(view.windows.step[order], steps, "right")
    for begin, end in zip(first, last, strict=True):
        yield order[begin:end]
