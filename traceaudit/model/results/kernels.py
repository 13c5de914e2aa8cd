"""What `kernels` answers."""

from dataclasses import dataclass

from traceaudit.model.results.completeness import Completeness
from traceaudit.model.results.conservation import conserve
from traceaudit.model.trace import TraceSource

__all__ = [
    "DeviceKernels",
    "KernelReport",
    "KernelRow",
]


@dataclass(frozen=True, slots=True)
class KernelRow:
    """All launches of one kernel (or copy) on one device.

    Attributes
    ----------
    per_step_ns
        Op time divided by the steps of the device; None where there are no steps.
    rule
        Why the kind is what it is.
    """

    name: str
    kind: str
    rule: str
    launches: int
    op_time_ns: int
    share_of_op_time_frac: float
    mean_ns: float
    min_ns: int
    p50_ns: float
    max_ns: int
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    blocks_per_sm: float | None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceKernels:
    """The kernels of one device, most op time first."""

    rank: int
    device: int
    name: str | None
    op_time_ns: int
    busy_ns: int
    kernels: tuple[KernelRow, ...]

    def __post_init__(self) -> None:
        """Check that the rows sum to the device's op time."""
        conserve("op time of the kernels", sum(row.op_time_ns for row in self.kernels), self.op_time_ns)


@dataclass(frozen=True, slots=True)
class KernelReport:
    """The result of `kernels`."""

    sources: tuple[TraceSource, ...]
    path: str
    completeness: Completeness
    devices: tuple[DeviceKernels, ...]
