"""Ops whose recorded end cannot be: they overrun later ops of their queue and the end of the capture.

On real devices ops of one queue do overlap: dependent launch starts a kernel before the one ahead of it ends, branches
of a graph share a stream's number, ends are rounded. All of those end inside the capture. A damaged end does not.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from traceaudit.ingest.arguments import UNKNOWN_STREAM
from traceaudit.ingest.severity import by_share, examples_of, in_ms, percent
from traceaudit.model.findings import Finding
from traceaudit.model.schema import I64, DeviceOps

__all__ = ["OVERRUN_SHARE", "clip_damaged"]

OVERRUN_SHARE: Final = 0.10
"""An op is damaged if at least this share of it lies beyond the capture's end; the true last op may end a little
after all other rows, where the file does not tell when the capture ended."""


def clip_damaged(
    ops: DeviceOps, host_end_ns: int | None, window_end_ns: int | None, names: Sequence[str]
) -> tuple[DeviceOps, list[Finding]]:
    """Clip damaged ops at the next start on their queue.

    Parameters
    ----------
    host_end_ns
        Last end of a host row, None without one.
    window_end_ns
        End of the capture as the file tells it, None where it does not.
    """
    if len(ops) < 2:  # noqa: PLR2004  (one op overruns nothing)
        return ops, []
    next_start, contains = _followers(ops)
    contains &= ops.stream != UNKNOWN_STREAM
    if not contains.any():
        return ops, []
    believable = int(ops.end_ns[~contains].max(initial=0))
    if host_end_ns is not None:
        believable = max(believable, host_end_ns)
    last_end = int(ops.end_ns.max())
    # Newer writers derive the window's end from the last row, damaged or not.
    if window_end_ns is not None and window_end_ns < last_end:
        believable = max(believable, window_end_ns)
    length = ops.end_ns - ops.start_ns
    beyond = ops.end_ns - believable
    damaged = contains & (beyond > 0) & (beyond >= OVERRUN_SHARE * length)
    if not damaged.any():
        return ops, []
    clipped = np.where(damaged, ops.end_ns - next_start, 0)
    end = ops.end_ns - clipped
    order = np.lexsort((end, ops.start_ns))
    repaired = ops.replace(end_ns=end, clipped_ns=clipped).take(order)
    return repaired, [_finding(ops, clipped, believable, names)]


def _followers(ops: DeviceOps) -> tuple[I64, npt.NDArray[np.bool_]]:
    """Return the next later start on each op's queue, and whether the op ends after an op that starts later does."""
    order = np.lexsort((ops.end_ns, ops.start_ns, ops.stream, ops.device, ops.rank))
    start, end = ops.start_ns[order], ops.end_ns[order]
    same = np.ones(len(order), dtype=bool)
    for column in (ops.rank, ops.device, ops.stream):
        same[:-1] &= column[order][1:] == column[order][:-1]
    same[-1] = False
    following = np.full(len(order), np.iinfo(np.int64).max, dtype=np.int64)
    contains = np.zeros(len(order), dtype=bool)
    following[:-1][same[:-1]] = start[1:][same[:-1]]
    contains[:-1] = same[:-1] & (end[1:] < end[:-1]) & (start[1:] > start[:-1])
    # An op with a later one of the same start before it in order: look past equal starts.
    for index in np.flatnonzero(same & (following == start)).tolist():
        later = index + 1
        while same[later] and start[later] == start[index]:
            later += 1
        if start[later] > start[index]:
            following[index] = start[later]
            contains[index] = end[later] < end[index]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return following[back], contains[back]


def _finding(ops: DeviceOps, clipped: I64, believable: int, names: Sequence[str]) -> Finding:
    worst = np.argsort(-clipped, kind="stable")[: int((clipped > 0).sum())]
    removed = int(clipped.sum())
    total = int((ops.end_ns - ops.start_ns).sum())
    return Finding(
        "impossible_overlap",
        by_share(removed, total),
        f"{len(worst)} device op{'s' if len(worst) > 1 else ''} overrun later ops of their queue and the end of the "
        f"capture at {in_ms(believable)}; cut at the next start on the queue, which removes {in_ms(removed)} "
        f"({percent(removed, total)}) of the recorded op time",
        hint="the recorded end is damaged; record again if the op matters",
        count=len(worst),
        impact_ns=removed,
        examples=examples_of(
            f"{names[ops.name[row]]} at {in_ms(ops.start_ns[row])}: {in_ms(ops.end_ns[row] - ops.start_ns[row])} "
            f"recorded, {in_ms(clipped[row])} removed"
            for row in worst.tolist()
        ),
    )
