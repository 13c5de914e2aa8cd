"""Which framework op, and which line of Python, launched a device op: by containment in time on the thread.

Ids that writers record (``External id``) are absent under many writers, and repeated by others. Time on a thread
is neither.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from traceaudit.model.deviceview import DeviceView
from traceaudit.model.hoststack import stretches
from traceaudit.model.intervals import Intervals, union
from traceaudit.model.schema import I64, DeviceOps, HostCategory
from traceaudit.model.trace import Trace

__all__ = ["Enclosing", "enclosing_rows", "issuing_rows", "python_site"]

NONE = -1
_LIBRARY = re.compile(
    r"^(?:<built-in|<eval|nn\.Module: |torch/|triton/|contextlib\.py|threading\.py|functools\.py)|"
    r"(?:site|dist)-packages/(?:torch|triton|functorch)/|/contextlib\.py\("
)
_PLACE = re.compile(r"^(?:.*/)?([^/]+\.py\(\d+\)): (.+)$")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Enclosing:
    """Rows of one category around launches.

    Attributes
    ----------
    innermost
        For each device op the row of `HostRows` that was open and began last when its launch began; -1 for none.
    parent
        For each such row and those around it, the row around it.
    """

    innermost: I64
    parent: dict[int, int]

    def chain(self, op: int) -> Iterable[int]:
        """Yield the rows around the launch of a device op, innermost first."""
        row = int(self.innermost[op])
        while row != NONE:
            yield row
            row = self.parent.get(row, NONE)


def enclosing_rows(trace: Trace, ops: DeviceOps, category: HostCategory) -> Enclosing:
    """Find the rows of a category around the launches of device ops."""
    host = trace.host
    innermost = np.full(len(ops), NONE, np.int64)
    parent: dict[int, int] = {}
    launched = np.flatnonzero(ops.launch >= 0)
    thread = host.thread[ops.launch[launched]]
    of_category = np.flatnonzero(host.category == category)
    for number in np.unique(thread):
        rows = of_category[host.thread[of_category] == number]
        if not len(rows):
            continue
        own = launched[thread == number]
        cut = stretches(host.start_ns[rows], host.end_ns[rows])
        at = np.searchsorted(cut.edge, host.start_ns[ops.launch[own]], "right") - 1
        inner = np.where(at >= 0, cut.row[np.maximum(at, 0)], NONE)
        innermost[own] = np.where(inner >= 0, rows[np.maximum(inner, 0)], NONE)
        parent.update(_parents(rows.tolist(), host.end_ns[rows].tolist()))
    return Enclosing(innermost, parent)


def issuing_rows(view: DeviceView, rows: I64) -> dict[int, Intervals]:
    """Return the host time spent on launching each kernel and nothing else, by the code of its name.

    That is its launch calls, each with the outermost framework op around it that launches only this kernel. A call that
    launches several kernels, such as a graph's, counts for none.

    Parameters
    ----------
    view, rows
        The device, and which of its ops to look at.
    """
    trace, ops = view.trace, view.ops
    frameworks = enclosing_rows(trace, ops, HostCategory.CPU_OP)
    launched = rows[ops.launch[rows] >= 0]
    around = {op: (int(ops.launch[op]), *frameworks.chain(op)) for op in launched.tolist()}
    only: dict[int, int] = {}
    for op, chain in around.items():
        for row in chain:
            only[row] = int(ops.name[op]) if only.get(row, ops.name[op]) == ops.name[op] else NONE
    found: dict[int, list[int]] = {}
    for op, chain in around.items():
        own = [row for row in chain if only[row] == ops.name[op]]
        if own:
            found.setdefault(int(ops.name[op]), []).append(own[-1])
    host = trace.host
    return {code: union(host.start_ns[own], host.end_ns[own]) for code, own in found.items()}


def python_site(trace: Trace, frames: Enclosing, op: int) -> str | None:
    """Return the innermost line of Python outside PyTorch that launched a device op; None if no frames are recorded.

    Frames without a file, and those of the libraries below the model's code, are passed over.
    """
    for row in frames.chain(op):
        name = trace.names[trace.host.name[row]]
        if _LIBRARY.search(name):
            continue
        found = _PLACE.match(_ADDRESS.sub("", name))
        if found is not None:
            return f"{found[1]}: {found[2]}"
    return None


def _parents(rows: list[int], ends: list[int]) -> dict[int, int]:
    """Return the row around each row, from rows in order of start, the longest first."""
    found: dict[int, int] = {}
    open_rows: list[tuple[int, int]] = []
    for row, end in zip(rows, ends, strict=True):
        while open_rows and open_rows[-1][1] < end:
            open_rows.pop()
        if open_rows:
            found[row] = open_rows[-1][0]
        open_rows.append((row, end))
    return found
