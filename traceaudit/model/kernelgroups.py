"""Launches that a report counts together: of one name, of one name and shape, or of one name and launch site."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from traceaudit.model.deviceview import DeviceView
from traceaudit.model.enclosing import Enclosing, python_site
from traceaudit.model.schema import I64

__all__ = ["GroupBy", "KernelGroup", "kernel_groups"]

MOST_SITES_LOOKED_AT = 64
"""Launches of a group whose site is looked up to find the usual one."""


class GroupBy(StrEnum):
    """What the launches of a row have in common beside their name and kind."""

    NAME = "name"
    SHAPE = "shape"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class KernelGroup:
    """Launches of one row.

    Attributes
    ----------
    ops
        Rows of the view's ops, in order of start.
    op, site
        Framework op and line of Python around most of them.
    """

    ops: I64
    op: str | None
    site: str | None


def kernel_groups(
    view: DeviceView, chosen: I64, by: GroupBy, around: Enclosing, frames: Enclosing
) -> tuple[KernelGroup, ...]:
    """Group the chosen ops of a device, those with most op time first.

    Parameters
    ----------
    view
        The device.
    chosen
        Rows of its ops.
    by
        What tells groups apart.
    around, frames
        Framework ops and Python frames around launches.
    """
    members: dict[Hashable, list[int]] = {}
    for op in chosen.tolist():
        members.setdefault(_key(view, op, by, around, frames), []).append(op)
    groups = [
        KernelGroup(np.array(rows, np.int64), _usual_op(view, rows, around), _usual_site(view, rows, frames))
        for rows in members.values()
    ]
    time = view.ops.end_ns - view.ops.start_ns
    names = view.trace.names
    return tuple(
        sorted(groups, key=lambda group: (-int(time[group.ops].sum()), names[int(view.ops.name[group.ops[0]])]))
    )


def _key(view: DeviceView, op: int, by: GroupBy, around: Enclosing, frames: Enclosing) -> Hashable:
    ops = view.ops
    same = (int(ops.name[op]), int(ops.kind[op]))
    if by is GroupBy.NAME:
        return same
    row = int(around.innermost[op])
    host = view.trace.host
    if by is GroupBy.SHAPE:
        detail = int(host.detail[row]) if row >= 0 else -1
        sizes = (ops.grid_x, ops.grid_y, ops.grid_z, ops.block_x, ops.block_y, ops.block_z, ops.copied)
        return (*same, detail, *(int(size[op]) for size in sizes))
    return (*same, int(host.name[row]) if row >= 0 else -1, python_site(view.trace, frames, op))


def _usual_op(view: DeviceView, rows: list[int], around: Enclosing) -> str | None:
    host, names = view.trace.host, view.trace.names
    found = Counter(int(host.name[row]) for row in around.innermost[rows].tolist() if row >= 0)
    return names[found.most_common(1)[0][0]] if found else None


def _usual_site(view: DeviceView, rows: list[int], frames: Enclosing) -> str | None:
    looked_at = rows[:: max(1, len(rows) // MOST_SITES_LOOKED_AT)]
    found = Counter(site for row in looked_at if (site := python_site(view.trace, frames, row)) is not None)
    return found.most_common(1)[0][0] if found else None
