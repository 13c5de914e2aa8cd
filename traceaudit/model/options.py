"""Settings of the analyses, as plain values; `traceaudit.config` makes them from flags and files."""

import re
from dataclasses import dataclass, field

from traceaudit.model.results import Wall

__all__ = ["ReconcileOptions", "Selection", "Speedup", "StepOptions", "WhatIfOptions"]


@dataclass(frozen=True, slots=True)
class Selection:
    """What to look at: one rank, one device, one step (by index); None means all."""

    rank: int | None = None
    device: int | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class StepOptions:
    """How to find steps.

    Attributes
    ----------
    annotation
        Host annotations whose name this finds (`re.search`) are the step markers.
    divide_by
        Treat the whole trace as this many steps.
    """

    annotation: re.Pattern[str] | None = None
    divide_by: int | None = None


@dataclass(frozen=True, slots=True)
class ReconcileOptions:
    """Settings of `reconcile`.

    Attributes
    ----------
    wall
        Step time from outside the profiler; None takes what the recorder stored in the trace, if anything.
    scheduler
        Further names that count as engine scheduling (`re.search`).
    """

    steps: StepOptions = field(default_factory=StepOptions)
    wall: Wall | None = None
    selection: Selection = field(default_factory=Selection)
    scheduler: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Speedup:
    """A change: ops, annotations and frames whose name `pattern` finds take 1 / `factor` of their time.

    `ops`, if given, are the only device ops (rows of the device) that it changes.
    """

    text: str
    pattern: re.Pattern[str]
    factor: float
    ops: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class WhatIfOptions:
    """Settings of `whatif`.

    Attributes
    ----------
    base
        How to find steps and the wall.
    speedups
        What becomes faster, or slower for factors below 1; an infinite factor removes it.
    remove_gaps
        No idle time between ops at all.
    graph_replay
        The launches between two waits become one graph launch.
    """

    base: ReconcileOptions = field(default_factory=ReconcileOptions)
    speedups: tuple[Speedup, ...] = ()
    remove_gaps: bool = False
    graph_replay: bool = False
