"""What a comparison needs of one run: per-step times of each kernel, the accounts, and what ran where.

A summary is small (tens of kB), is all that a baseline keeps, and holds no paths but the trace's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from traceaudit.model.findings import Verdict
from traceaudit.model.launchshape import LaunchShape

__all__ = ["GraphMode", "KernelKey", "KernelSamples", "RunFacts", "RunSummary", "Side", "same_recordings"]

KernelKey = tuple[str, int]
"""Identity of a kernel and class of its launch shape; see `traceaudit.model.identity`."""

GraphMode = str
"""``eager``, ``graph`` or ``mixed``: how a step's ops are launched."""


@dataclass(frozen=True, slots=True)
class KernelSamples:
    """One kernel of a run (launches of one identity and shape class).

    Attributes
    ----------
    name
        As written; the one with most time where several names have this identity.
    kind
        ``compute``, ``comm``, ``memcpy`` or ``memset``.
    step_ns
        Sum of durations in each step; the mean step where a whole trace was divided.
    step_launches
        Launches in each step.
    launch_sd_ns
        Standard deviation of the durations of launches within a step, None with a single launch.
    """

    key: KernelKey
    name: str
    kind: str
    step_ns: tuple[float, ...]
    step_launches: tuple[float, ...]
    launch_sd_ns: float | None = None
    shape: LaunchShape = field(default_factory=LaunchShape)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What ran where, as far as the trace tells; None where it does not.

    Attributes
    ----------
    dtype
        Data type that most of the compute time names.
    versions
        Software versions that the trace carries.
    """

    device: str | None = None
    capability: tuple[int, int] | None = None
    sms: int | None = None
    dtype: str | None = None
    batch: int | None = None
    context: int | None = None
    graph_mode: GraphMode | None = None
    step_kind: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run: the steps used, and every kernel in them.

    Attributes
    ----------
    source
        The trace's path as given.
    rank, device
        The device looked at.
    step_source
        Where the steps come from.
    window_ns, busy_ns
        Window of each step, and how long the device is busy in it.
    accounts
        Accounts of each step's window, by name.
    wall_ns
        Unprofiled step times that the recorder stored, one for each repeat; empty without.
    resolution_ns
        Resolution of the trace's times.
    kernels
        In the order of their first launch in `sequence`, others behind.
    sequence
        Rows in `kernels` of the ops of one typical step, in order of start.
    verdict
        Whether the trace can be believed.
    """

    source: str
    rank: int
    device: int
    facts: RunFacts
    step_source: str
    window_ns: tuple[float, ...]
    busy_ns: tuple[float, ...]
    accounts: Mapping[str, tuple[float, ...]]
    wall_ns: tuple[int, ...]
    resolution_ns: int
    kernels: tuple[KernelSamples, ...]
    sequence: tuple[int, ...]
    verdict: Verdict
    doubts: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """Number of steps with samples."""
        return len(self.window_ns)


@dataclass(frozen=True, slots=True)
class Side:
    """Repeated runs of the same code.

    Attributes
    ----------
    label
        What the user called it.
    runs
        In an order that does not depend on the order of files.
    """

    label: str
    runs: tuple[RunSummary, ...]

    @classmethod
    def of(cls, label: str, runs: tuple[RunSummary, ...]) -> "Side":
        """Sort the runs by content."""
        return cls(label, tuple(sorted(runs, key=_content)))


def same_recordings(base: Side, head: Side) -> bool:
    """Tell whether two sides hold the very same recordings, whatever their files are called."""
    return [replace(run, source="") for run in base.runs] == [replace(run, source="") for run in head.runs]


def _content(run: RunSummary) -> tuple[object, ...]:
    return (run.window_ns, run.busy_ns, tuple((kernel.key, kernel.step_ns) for kernel in run.kernels), run.source)
