"""Settings of `kernels`, as plain values."""

from dataclasses import dataclass, field

from traceaudit.model.bytes.fromtrace import RunFacts
from traceaudit.model.kernelgroups import GroupBy
from traceaudit.model.kernelspec import KernelSpec
from traceaudit.model.llm.architecture import Architecture
from traceaudit.model.llm.workload import Workload
from traceaudit.model.machine import Machine
from traceaudit.model.options import ReconcileOptions

__all__ = ["KernelOptions", "PeakOptions"]


@dataclass(frozen=True, slots=True)
class PeakOptions:
    """What rates are held against, where it is not the table's: numbers, or a machine's measured ceilings."""

    gbps: float | None = None
    tflops: float | None = None
    machine: Machine | None = None


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """Settings of `kernels`.

    Attributes
    ----------
    base
        How to find steps and the wall, and what to look at.
    group_by
        What the launches of a row have in common beside their name.
    peaks
        Ceilings given by hand.
    specs
        The user's file of kernels; the first entry that matches decides.
    run
        What the user says of the run, for expressions and paged attention.
    model, workload
        The model and its batch, for kernels without shapes; both or neither.
    shapes_from
        Path of another trace of the same model whose ops have shapes.
    gains
        Whether to work out what removing each kernel would save.
    """

    base: ReconcileOptions = field(default_factory=ReconcileOptions)
    group_by: GroupBy = GroupBy.NAME
    peaks: PeakOptions = field(default_factory=PeakOptions)
    specs: tuple[KernelSpec, ...] = ()
    run: RunFacts = field(default_factory=RunFacts)
    model: Architecture | None = None
    workload: Workload | None = None
    shapes_from: str | None = None
    gains: bool = False
