"""Which rows have times that can be believed, and how many do not, by reason."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceaudit.ingest.times import MISSING

__all__ = ["ABSURD_NS", "Rejected", "center_of", "keep_rows"]

ABSURD_NS = 86_400 * 10**9
"""A day. Kineto keeps every record in memory, so captures last seconds, minutes at most."""

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows left out, by the first reason that applies.

    Attributes
    ----------
    without_times
        No time, no number, or time 0 with duration 0 among device ops: a record whose times were never filled in.
    far_away
        Days away from all others.
    absurd
        Longer than a day.
    negative
        Ends before it starts.
    """

    without_times: int = 0
    far_away: int = 0
    absurd: int = 0
    negative: int = 0
    negative_ns: int = 0


def center_of(*starts: npt.NDArray[np.int64]) -> int | None:
    """Return the median start of the first table that has rows with times, None if none has."""
    for start in starts:
        times = start[start != MISSING]
        if len(times):
            return int(np.partition(times, len(times) // 2)[len(times) // 2])
    return None


def keep_rows(
    start: npt.NDArray[np.int64], end: npt.NDArray[np.int64], center: int | None, *, is_device: bool
) -> tuple[_Mask | None, Rejected]:
    """Return which rows to keep (None for all), and the count of the others."""
    if center is None or not len(start):
        return (
            (None, Rejected()) if not len(start) else (np.zeros(len(start), bool), Rejected(without_times=len(start)))
        )
    low, high = center - ABSURD_NS, center + ABSURD_NS
    length = end - start
    fine = (start >= low) & (start <= high) & (length >= 0) & (length <= ABSURD_NS)
    if is_device:
        fine &= (start != 0) | (end != 0)
    if fine.all():
        return None, Rejected()
    without = start == MISSING
    if is_device:
        without |= (start == 0) & (end == 0)
    far = ~without & ((start < low) | (start > high))
    absurd = ~(without | far) & (length > ABSURD_NS)
    negative = ~(without | far) & (length < 0)
    return fine, Rejected(
        int(without.sum()), int(far.sum()), int(absurd.sum()), int(negative.sum()), int(-length[negative].sum())
    )
