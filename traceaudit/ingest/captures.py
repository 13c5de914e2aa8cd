"""Calls inside a stream capture: they are recorded into a graph and enqueue nothing."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traceaudit.ingest.links import roles_of_names
from traceaudit.model.apis import ApiRole
from traceaudit.model.schema import HostCategory, HostRows

__all__ = ["in_capture"]


def in_capture(rows: npt.NDArray[np.int64], host: HostRows, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which host rows lie between the begin and the end of a stream capture on their thread."""
    inside = np.zeros(len(rows), dtype=bool)
    apis = np.flatnonzero(host.category == HostCategory.API)
    roles = roles_of_names(names, host.name[apis])
    is_mark = (roles == ApiRole.CAPTURE_BEGIN) | (roles == ApiRole.CAPTURE_END)
    marks, begins = apis[is_mark], roles[is_mark] == ApiRole.CAPTURE_BEGIN
    for thread in np.unique(host.thread[marks]).tolist():
        here = host.thread[marks] == thread
        depth = np.cumsum(np.where(begins[here], 1, -1))
        mine = np.flatnonzero(host.thread[rows] == thread)
        place = np.searchsorted(host.start_ns[marks[here]], host.start_ns[rows[mine]], side="right") - 1
        inside[mine] = (place >= 0) & (depth[np.maximum(place, 0)] > 0)
        # A capture that was open when the recording began shows its end only.
        if not begins[here][0]:
            inside[mine] |= host.start_ns[rows[mine]] < host.start_ns[marks[here][0]]
    return inside
