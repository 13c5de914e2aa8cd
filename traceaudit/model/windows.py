"""Step windows: how the device's time line is shared among steps.

A host that runs ahead begins step N + 1 while the device still works on step N. Windows therefore begin where the
device takes up a step's work, not where the host does: on the main stream, at the end of earlier work or at the step's
first kernel, whichever is earlier, but never before the step's marker. They touch, so nothing is counted twice.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceaudit.model.pending import PendingOps
from traceaudit.model.results import StepSource
from traceaudit.model.schema import I64, DeviceOps, Kind, OpType
from traceaudit.model.steps import StepMarks
from traceaudit.model.trace import Trace

__all__ = ["Windows", "step_windows"]

EARLIER = -1
NONE = -2
STEADY_MAIN_FRAC = 0.9
"""The main stream must carry work in this share of the steps; else replays change streams and all kernels count."""

_NEVER = np.iinfo(np.int64).max
_ALWAYS = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of the steps of one device.

    Attributes
    ----------
    edge_ns
        Window boundaries, one more than steps: step ``i`` is ``[edge_ns[i], edge_ns[i + 1])``.
    step
        Step of each device op by its launch; -1 for ops of earlier work, -2 for ops of no step.
    starts_pending
        The first window begins at its first op, since that op was pending and what ran before is not in the trace.
    """

    edge_ns: I64
    step: I64
    starts_pending: bool


def step_windows(trace: Trace, ops: DeviceOps, marks: StepMarks, pending: PendingOps) -> Windows:
    """Assign the device's ops to steps and cut its time line into windows."""
    if marks.source is StepSource.WHOLE_TRACE:
        edge = np.array([marks.start_ns[0], marks.end_ns[0]], np.int64)
        return Windows(edge, np.zeros(len(ops), np.int64), starts_pending=False)
    count = len(marks.start_ns)
    step = _step_of(trace, ops, marks)
    main = _main_ops(ops, step)
    first = _least(ops.start_ns, step, main & (ops.op_type == OpType.KERNEL), count)
    step = _claim_earlier(ops, step, first)
    ended = _running_end(ops, step, main, count)
    begin = np.maximum(marks.start_ns, np.minimum(ended[:-1], first))
    starts_pending = not (step == EARLIER).any() and _first_is_pending(ops, step, pending)
    if starts_pending:
        begin[0] = max(int(begin[0]), int(ops.start_ns[step == 0].min()))
    begin = np.maximum.accumulate(begin)
    own_end = _greatest_end(ops, step, main, count)
    end = max(int(marks.end_ns[-1]), int(own_end[-1]), int(begin[-1]))
    return Windows(np.append(begin, end), step, starts_pending)


def _step_of(trace: Trace, ops: DeviceOps, marks: StepMarks) -> I64:
    """Return the step in whose host interval each op's launch began."""
    step = np.full(len(ops), NONE, np.int64)
    known = ops.launch >= 0
    launched = trace.host.start_ns[ops.launch[known]]
    own = np.searchsorted(marks.start_ns, launched, "right") - 1
    own[launched >= marks.end_ns[-1]] = NONE
    step[known] = own
    return step


def _claim_earlier(ops: DeviceOps, step: I64, first: I64) -> I64:
    """Count ops without launch row that start before any step's first kernel as work of earlier steps."""
    begun = first[first < _NEVER]
    before = int(begun[0]) if len(begun) else _ALWAYS
    return np.where((ops.launch < 0) & (ops.start_ns < before), EARLIER, step)


def _main_ops(ops: DeviceOps, step: I64) -> npt.NDArray[np.bool_]:
    """Tell which ops run on the main stream, or are compute kernels where replays change streams."""
    compute = (ops.kind == Kind.COMPUTE) & (step >= 0)
    if not compute.any():
        return np.ones(len(ops), np.bool_)
    streams, inverse = np.unique(ops.stream, return_inverse=True)
    load = np.bincount(inverse[compute], weights=(ops.end_ns - ops.start_ns)[compute], minlength=len(streams))
    on_main = inverse == int(load.argmax())
    busy_steps = np.unique(step[compute])
    main_steps = np.unique(step[compute & on_main])
    steady = len(main_steps) >= STEADY_MAIN_FRAC * len(busy_steps)
    main: npt.NDArray[np.bool_] = on_main if steady else ops.kind == Kind.COMPUTE
    return main


def _least(values: I64, step: I64, mask: npt.NDArray[np.bool_], count: int) -> I64:
    result = np.full(count, _NEVER, np.int64)
    own = mask & (step >= 0)
    np.minimum.at(result, step[own], values[own])
    return result


def _greatest_end(ops: DeviceOps, step: I64, main: npt.NDArray[np.bool_], count: int) -> I64:
    result = np.full(count, _ALWAYS, np.int64)
    own = main & (step >= 0)
    np.maximum.at(result, step[own], ops.end_ns[own])
    return result


def _running_end(ops: DeviceOps, step: I64, main: npt.NDArray[np.bool_], count: int) -> I64:
    """Return the end of all work before each step (and, last, of all steps)."""
    earlier = ops.end_ns[main & (step == EARLIER)]
    before = np.array([earlier.max()], np.int64) if len(earlier) else np.array([_ALWAYS], np.int64)
    return np.maximum.accumulate(np.concatenate((before, _greatest_end(ops, step, main, count))))


def _first_is_pending(ops: DeviceOps, step: I64, pending: PendingOps) -> bool:
    """Tell whether the first step's first op was pending on a device that shows no earlier op."""
    own = np.flatnonzero((step == 0) & (ops.start_ns == ops.start_ns.min()))
    return bool(np.isin(own, pending.op).any())
