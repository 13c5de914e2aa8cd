"""What `kernels` answers."""

from dataclasses import dataclass, field
from enum import StrEnum

from traceaudit.model.bytes.operands import Operand
from traceaudit.model.results.completeness import Completeness
from traceaudit.model.results.conservation import conserve
from traceaudit.model.trace import TraceSource

__all__ = [
    "Bound",
    "Ceilings",
    "DeviceKernels",
    "KernelFill",
    "KernelPart",
    "KernelRates",
    "KernelReport",
    "KernelRow",
    "LaunchUse",
    "MemoryLevel",
]


class Bound(StrEnum):
    """What keeps a kernel from being faster."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    LAUNCH = "launch"


class MemoryLevel(StrEnum):
    """Where most of a kernel's bytes come from, by their size and by who used them last."""

    DRAM = "dram"
    L2 = "l2"


class LaunchUse(StrEnum):
    """What a launch is there for, as far as it decides what can be done about its time.

    `LIGHT`: short, without weights or cache to read, and bound by its start and end, not by its bytes.
    `COPY`: writes all keys or values that attention then reads. `WORK`: everything else.
    """

    LIGHT = "light"
    COPY = "copy"
    WORK = "work"


@dataclass(frozen=True, slots=True)
class KernelFill:
    """How a launch fills the device; None where the trace or the device's limits do not tell.

    Attributes
    ----------
    registers, shared_mem_bytes
        Of a thread, and of a block.
    waves
        Blocks over those that the device holds at once.
    idle_slots_frac
        Share of block slots that stay empty in the waves taken, the last one above all.
    core
        ``tensor`` or ``cuda``: the units that do the products, where the name tells.
    """

    registers: int | None = None
    shared_mem_bytes: int | None = None
    waves: float | None = None
    idle_slots_frac: float | None = None
    core: str | None = None


@dataclass(frozen=True, slots=True)
class KernelRates:
    """What launches move and compute, over those that a source speaks of; None where none does.

    Attributes
    ----------
    moved_bytes, flop
        Summed over the launches that have a source.
    bytes_source
        ``reported``, ``annotated``, ``spec``, ``shape`` or ``model``; several are joined by ``+``.
    assumption
        What was assumed for the largest part of the bytes; empty where nothing was.
    covered_launches
        Launches with bytes.
    achieved_gbps, achieved_tflops
        Sums over sums.
    peak_frac, compute_peak_frac
        The same as a share of the device's peaks; never clipped.
    flop_per_byte
        Arithmetic intensity.
    sol_ns
        Mean time of a launch at the speed of light: the larger of bytes over bandwidth and FLOP over peak.
    sol_frac
        That time over the mean duration.
    memory_level
        Where the bytes come from.
    """

    moved_bytes: int | None = None
    bytes_source: str | None = None
    assumption: str = ""
    covered_launches: int = 0
    achieved_gbps: float | None = None
    peak_frac: float | None = None
    flop: int | None = None
    achieved_tflops: float | None = None
    compute_peak_frac: float | None = None
    flop_per_byte: float | None = None
    sol_ns: float | None = None
    sol_frac: float | None = None
    memory_level: MemoryLevel | None = None


@dataclass(frozen=True, slots=True)
class KernelPart:
    """The launches of one kernel that have one use.

    Attributes
    ----------
    per_step_ns, launches_per_step
        Of the own ops of the used steps, divided by those steps.
    rates
        Of all launches of the part.
    widens
        Whether most of its bytes are written by launches that write a multiple of what they read.
    ops
        Rows of the device's ops.
    """

    use: LaunchUse
    per_step_ns: float
    launches_per_step: float
    rates: KernelRates
    widens: bool = False
    ops: tuple[int, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class KernelRow:
    """All launches of one kernel (or copy) on one device, or those of one shape or launch site.

    Attributes
    ----------
    rule
        Why the kind is what it is.
    short_name
        The name without what tells it from no other kernel of the report; empty where it is the name itself.
    p99_ns
        Duration that one launch in a hundred exceeds.
    launches, op_time_ns
        Of the whole trace, ops outside the used steps among them.
    per_step_ns, launches_per_step
        Of the own ops of the used steps, divided by those steps; None where there are none.
    share_of_busy_frac
        Op time over busy time, both of the whole trace.
    share_of_wall_frac
        `per_step_ns` over the wall of a step; None without a wall.
    grid, block
        Those with most op time.
    grids
        Different grids of the launches; None where none is recorded.
    blocks_per_sm
        Of `grid`.
    op, site
        Framework op around most launches, and the line of Python, where recorded.
    operands
        What that op works on, in rows of one shape where recorded.
    strides_tell
        Whether the operands' strides alone tell the row from another.
    copied_bytes
        Size of each copy, in rows of one shape.
    role
        Part of the model, where a configuration was given.
    bound, bound_rule
        What limits the kernel, and the rule that decided.
    save_ns
        What removing the kernel would save a step, re-timed; None where that was not asked for.
    flags
        Codes of findings.
    parts
        Its launches by use; empty where that was not asked for.
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
    short_name: str = ""
    p99_ns: float | None = None
    per_step_ns: float | None = None
    launches_per_step: float | None = None
    share_of_busy_frac: float | None = None
    share_of_wall_frac: float | None = None
    grids: int | None = None
    op: str | None = None
    site: str | None = None
    operands: tuple[Operand, ...] | None = None
    strides_tell: bool = False
    copied_bytes: int | None = None
    role: str | None = None
    fill: KernelFill = field(default_factory=KernelFill)
    rates: KernelRates = field(default_factory=KernelRates)
    bound: Bound | None = None
    bound_rule: str = ""
    save_ns: float | None = None
    parts: tuple[KernelPart, ...] = ()

    @property
    def shown_name(self) -> str:
        """The short name, or the name where there is none."""
        return self.short_name or self.name


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What rates are held against; None where nothing is known.

    Attributes
    ----------
    gbps, gbps_source
        Memory bandwidth, and who says so.
    tflops_source
        Who says what the compute peaks are.
    uncertain
        Whether the bandwidth is in doubt.
    l2_bytes
        Size of the last cache before memory.
    missing
        Why there is no peak; empty where there is one.
    """

    gbps: float | None = None
    gbps_source: str | None = None
    tflops_source: str | None = None
    uncertain: bool = False
    l2_bytes: int | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class DeviceKernels:
    """The kernels of one device, most op time first.

    Attributes
    ----------
    steps
        Used steps, whose own ops the times per step are means of; None where there are none.
    ceilings
        Peaks of the device.
    covered_busy_frac
        Share of busy time in which an op with known bytes runs.
    sources
        Op time by source of bytes.
    grouped_by
        What the launches of a row have in common: ``name``, ``shape`` or ``site``.
    notes
        How much of the kernel sequence another trace or the model explained, and the like.
    """

    rank: int
    device: int
    name: str | None
    op_time_ns: int
    busy_ns: int
    kernels: tuple[KernelRow, ...]
    steps: int | None = None
    ceilings: Ceilings = field(default_factory=Ceilings)
    covered_busy_frac: float | None = None
    sources: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    grouped_by: str = "name"

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
