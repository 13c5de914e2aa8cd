"""The step from the wall to the residual, as lines with a place for their bars; shared by every text report."""

from dataclasses import dataclass, fields
from enum import Enum, auto
from typing import TYPE_CHECKING

from traceaudit.report.format import plain

if TYPE_CHECKING:
    from traceaudit.model.results import DeviceAudit

__all__ = ["DILATED", "Line", "Role", "Section", "doubted", "label_of", "sections"]

DILATED = 1.02
"""Above this dilation the wall gets a ledger of its own, and the accounts are shown as profiled."""

LABELS = {
    "compute": "compute",
    "exposed_comm": "exposed comm",
    "exposed_copy": "exposed copy",
    "idle_graph": "idle graph",
    "idle_latency": "idle latency",
    "idle_host": "idle host",
    "idle_unknown": "idle unknown",
    "launch_call": "launch call",
    "launch_api": "launch API",
    "other_api": "other API",
}


class Role(Enum):
    """What a line stands for; renderers choose colours and bars by it."""

    WHOLE = auto()
    COMPUTE = auto()
    COMM = auto()
    COPY = auto()
    IDLE = auto()
    PART = auto()
    RESIDUAL = auto()


@dataclass(frozen=True, slots=True)
class Line:
    """One term of the ledger, per step.

    Attributes
    ----------
    label
        Text of the term, safe to print.
    time_ns
        Time of the mean step.
    at_ns
        Where its bar begins, from the start of the step.
    doubtful
        Whether a finding makes the time doubtful.
    share_doubtful
        Whether one makes its share of the whole doubtful: of an unreliable trace all are.
    """

    label: str
    time_ns: float
    at_ns: float
    role: Role
    doubtful: bool = False
    share_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Lines that share a whole; `zeros` are the terms that are exactly 0."""

    title: str
    whole: str
    whole_ns: float
    lines: tuple[Line, ...]
    zeros: tuple[str, ...] = ()


def sections(device: "DeviceAudit", *, unreliable: bool) -> tuple[Section, ...]:
    """Lay the step out: one waterfall, or the wall's own ledger and the profiled one where the profiler dilates."""
    step = device.step
    if device.ledger.steps == 0:
        return ()
    if step.dilation is None or step.dilation <= DILATED:
        return (_waterfall(device, unreliable=unreliable, dilated=False),)
    profiled = _waterfall(device, unreliable=unreliable, dilated=True)
    if step.full_speed_idle_ns is None:
        return (profiled,)
    return (_full_speed(device, unreliable=unreliable), profiled)


def doubted(device: "DeviceAudit", *names: str) -> bool:
    """Tell whether a finding makes one of these numbers of the JSON contract doubtful."""
    return any(name in device.doubtful for name in names)


def label_of(name: str) -> str:
    """Return the text for an account, a cause or a part, safe to print.

    Examples
    --------
    >>> label_of("idle_host"), label_of("python:scheduler.py:schedule")
    ('idle host', 'python:scheduler.py:schedule')
    """
    return LABELS.get(name) or plain(name)


def _waterfall(device: "DeviceAudit", *, unreliable: bool, dilated: bool) -> Section:
    ledger, step = device.ledger, device.step
    on_wall = step.wall_ns is not None and not dilated
    lines: list[Line] = []
    if step.wall_ns is not None and on_wall:
        lines.append(Line("wall", step.wall_ns, 0, Role.WHOLE))
    zeros: list[str] = []
    at_ns = 0.0
    for item in fields(ledger.accounts):
        time_ns = getattr(ledger.accounts, item.name) / ledger.steps
        if not time_ns:
            zeros.append(label_of(item.name))
            continue
        lines.append(_account(device, item.name, time_ns, at_ns, unreliable=unreliable))
        lines += _parts(device, item.name, at_ns, unreliable=unreliable)
        at_ns += time_ns
    window = Line("window", step.window_ns, 0, Role.WHOLE)
    lines.insert(0, window) if not on_wall else lines.append(window)
    if step.residual_ns is not None:
        if step.residual_ns:
            lines.append(Line("residual", step.residual_ns, step.window_ns, Role.RESIDUAL))
        else:
            zeros.append("residual")
    title = "as profiled" if dilated else "the step"
    if step.wall_ns is not None and on_wall:
        return Section(title, "wall", step.wall_ns, tuple(lines), tuple(zeros))
    return Section(title, "window", step.window_ns, tuple(lines), tuple(zeros))


def _full_speed(device: "DeviceAudit", *, unreliable: bool) -> Section:
    """Lay out ``wall = busy + (wall - busy)``."""
    step, accounts = device.step, device.ledger.accounts
    assert step.wall_ns is not None  # noqa: S101  (there is no dilation without a wall)
    assert step.full_speed_idle_ns is not None  # noqa: S101  (the caller looked)
    lines = [Line("wall", step.wall_ns, 0, Role.WHOLE)]
    at_ns = 0.0
    for name in ("compute", "exposed_comm", "exposed_copy"):
        time_ns = getattr(accounts, name) / device.ledger.steps
        if time_ns:
            lines.append(_account(device, name, time_ns, at_ns, unreliable=unreliable))
            at_ns += time_ns
    doubtful = unreliable or doubted(device, "full_speed_idle_ns", "busy_ns")
    label = "idle at full speed, split as in the profile (estimate)"
    lines.append(Line(label, step.full_speed_idle_ns, at_ns, Role.IDLE, doubtful, doubtful))
    return Section("at full speed", "wall", step.wall_ns, tuple(lines))


def _account(device: "DeviceAudit", name: str, time_ns: float, at_ns: float, *, unreliable: bool) -> Line:
    role = ROLES.get(name, Role.IDLE)
    idle = role is Role.IDLE
    doubtful = doubted(device, name, "idle_ns" if idle else "busy_ns") or (unreliable and idle)
    return Line(label_of(name), time_ns, at_ns, role, doubtful, doubtful or unreliable)


def _parts(device: "DeviceAudit", name: str, at_ns: float, *, unreliable: bool) -> list[Line]:
    """Lay out what `idle_latency` and `idle_host` are made of, largest cause first."""
    ledger = device.ledger
    if name == "idle_latency":
        latency = ledger.idle_latency_by
        parts = {item.name: getattr(latency, item.name) for item in fields(latency)}
    elif name == "idle_host":
        parts = dict(sorted(ledger.idle_host_by.items(), key=lambda item: -item[1]))
    else:
        return []
    doubtful = unreliable or doubted(device, name, "idle_ns")
    lines = []
    for part, total_ns in parts.items():
        if total_ns:
            time_ns = total_ns / ledger.steps
            lines.append(Line(label_of(part), time_ns, at_ns, Role.PART, doubtful, doubtful))
            at_ns += time_ns
    return lines


ROLES = {"compute": Role.COMPUTE, "exposed_comm": Role.COMM, "exposed_copy": Role.COPY}
