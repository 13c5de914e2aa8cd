"""Launches that a report counts together: of one name, of one name and shape, or of one name and launch site."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from traceaudit.model.bytes.operands import Operand, op_call
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
    operands
        What that op works on, where the launches were told apart by it and the trace holds it; no values.
    strides_tell
        Whether strides alone tell the group from another.
    """

    ops: I64
    op: str | None
    site: str | None
    operands: tuple[Operand, ...] | None = None
    strides_tell: bool = False


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
    operands = _Operands(view, around)
    members: dict[Hashable, list[int]] = {}
    for op in chosen.tolist():
        members.setdefault(_key(view, op, by, around, frames, operands), []).append(op)
    groups = [
        KernelGroup(
            np.array(rows, np.int64),
            _usual_op(view, rows, around),
            _usual_site(view, rows, frames),
            operands.of(rows[0]) if by is GroupBy.SHAPE else None,
        )
        for rows in members.values()
    ]
    time = view.ops.end_ns - view.ops.start_ns
    names = view.trace.names
    groups.sort(key=lambda group: (-int(time[group.ops].sum()), names[int(view.ops.name[group.ops[0]])]))
    return _with_strides(view, groups) if by is GroupBy.SHAPE else tuple(groups)


class _Operands:
    """Operands of the framework ops around launches, each record decoded once."""

    def __init__(self, view: DeviceView, around: Enclosing) -> None:
        self._trace, self._around = view.trace, around
        self._decoded: dict[int, tuple[Operand, ...] | None] = {}

    def of(self, op: int) -> tuple[Operand, ...] | None:
        """Return what the op around a launch works on, None where nothing is recorded."""
        row = int(self._around.innermost[op])
        detail = int(self._trace.host.detail[row]) if row >= 0 else -1
        if detail not in self._decoded:
            found = op_call("", self._trace.details[detail]).operands if detail >= 0 else ()
            self._decoded[detail] = tuple(replace(operand, value="") for operand in found) or None
        return self._decoded[detail]


def _key(view: DeviceView, op: int, by: GroupBy, around: Enclosing, frames: Enclosing, operands: _Operands) -> Hashable:
    ops = view.ops
    same = (int(ops.name[op]), int(ops.kind[op]))
    if by is GroupBy.NAME:
        return same
    row = int(around.innermost[op])
    name = int(view.trace.host.name[row]) if row >= 0 else -1
    if by is GroupBy.SHAPE:
        return (*same, name, operands.of(op), *_sizes(view, op))
    return (*same, name, python_site(view.trace, frames, op))


def _sizes(view: DeviceView, op: int) -> tuple[int, ...]:
    ops = view.ops
    return tuple(int(size[op]) for size in (ops.grid_x, ops.grid_y, ops.grid_z, ops.copied))


def _with_strides(view: DeviceView, groups: Sequence[KernelGroup]) -> tuple[KernelGroup, ...]:
    """Note on groups that only strides tell from others that they do."""
    keys = [
        (int(view.ops.name[group.ops[0]]), group.op, _sizes(view, int(group.ops[0])), _without_strides(group.operands))
        for group in groups
    ]
    count = Counter(keys)
    return tuple(replace(group, strides_tell=count[key] > 1) for group, key in zip(groups, keys, strict=True))


def _without_strides(operands: tuple[Operand, ...] | None) -> tuple[Operand, ...] | None:
    if operands is None:
        return None
    return tuple(
        replace(operand, strides=None, members=_without_strides(operand.members) or ()) for operand in operands
    )


def _usual_op(view: DeviceView, rows: list[int], around: Enclosing) -> str | None:
    host, names = view.trace.host, view.trace.names
    found = Counter(int(host.name[row]) for row in around.innermost[rows].tolist() if row >= 0)
    return names[found.most_common(1)[0][0]] if found else None


def _usual_site(view: DeviceView, rows: list[int], frames: Enclosing) -> str | None:
    looked_at = rows[:: max(1, len(rows) // MOST_SITES_LOOKED_AT)]
    found = Counter(site for row in looked_at if (site := python_site(view.trace, frames, row)) is not None)
    return found.most_common(1)[0][0] if found else None
