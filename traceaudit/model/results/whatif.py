"""What `whatif` answers: the step after a change, with its range and the naive bound beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from traceaudit.model.results.completeness import Completeness
from traceaudit.model.trace import TraceSource

__all__ = ["DeviceWhatIf", "KernelGain", "WhatIf"]


@dataclass(frozen=True, slots=True)
class KernelGain:
    """What removing a kernel would save a step; ns.

    Attributes
    ----------
    save_ns
        Re-timed with a kernel that takes no time and is still launched.
    save_with_launch_ns
        Re-timed without its launches too, and without the framework ops that launch nothing else.
    naive_save_ns
        Its op time.
    """

    name: str
    op_time_ns: float
    save_ns: float
    save_with_launch_ns: float
    naive_save_ns: float


@dataclass(frozen=True, slots=True)
class DeviceWhatIf:
    """The prediction for one device; all times in ns a step.

    Attributes
    ----------
    changes
        What was asked for: the text of each speed-up, ``graph replay``, ``no gaps``.
    baseline_ns
        The wall if there is one, else the profiled window.
    predicted_ns, low_ns, high_ns
        The step after the change; the range covers the ways in which the profiler may have slowed the host.
    naive_ns
        Baseline minus the op time that the change removes.
    busy_share_frac
        Busy time over baseline: what the naive bound can reach at most.
    bound_by
        ``device`` or ``host`` when that side alone, the other taking no time, takes nine tenths of the predicted step;
        ``both`` if each does, ``neither`` if none does; ``outside`` when most of the step is not in the trace.
    changed_op_time_ns
        Op time a step that the change removes.
    matched
        Ops and host rows that each change matched, by its text.
    reasons
        Why prediction and naive bound differ, and what was assumed.
    kernels
        What removing each kernel would save, most first.
    steps
        Steps that were re-timed.
    short_names
        A short form of the name of each op, different for different names.
    """

    rank: int
    device: int
    name: str | None
    changes: tuple[str, ...]
    baseline_ns: float
    predicted_ns: float
    low_ns: float
    high_ns: float
    naive_ns: float
    busy_share_frac: float
    bound_by: str
    changed_op_time_ns: float
    matched: Mapping[str, int]
    reasons: tuple[str, ...]
    kernels: tuple[KernelGain, ...]
    steps: int
    short_names: Mapping[str, str] = field(default_factory=dict)

    def shown(self, name: str) -> str:
        """Return the short form of an op's name, or the name where there is none."""
        return self.short_names.get(name, name)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The result of `whatif`."""

    sources: tuple[TraceSource, ...]
    path: str
    completeness: Completeness
    devices: tuple[DeviceWhatIf, ...]
