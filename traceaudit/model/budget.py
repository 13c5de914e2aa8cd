"""Budgets: what a change may cost, and what a step may cost at all."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traceaudit.model.findings import Verdict
from traceaudit.model.identity import family_of
from traceaudit.model.results.diff import DiffResult, KernelDiff

__all__ = [
    "ACCOUNTS",
    "DEFAULT_LIMITS",
    "Budget",
    "FloorRule",
    "KernelRule",
    "LaunchRule",
    "Limits",
    "MeasureRule",
    "ShareRule",
    "propose",
]

ACCOUNTS = ("compute", "exposed_comm", "exposed_copy", "idle_graph", "idle_latency", "idle_host", "idle_unknown")

_US = 1000.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How much longer head may take; a limit that is None is not looked at, and all others must be exceeded together.

    Attributes
    ----------
    relative
        Share of the base's time.
    absolute_ns
        Time per step.
    step_frac
        Share of the base's op time per step.
    """

    relative: float | None = None
    absolute_ns: float | None = None
    step_frac: float | None = None

    def allowed_ns(self, base_ns: float, op_time_ns: float) -> float:
        """Return the growth in ns that is still allowed.

        Examples
        --------
        >>> Limits(relative=0.02, absolute_ns=1000.0).allowed_ns(400_000, 520_000)
        8000.0
        """
        parts = (
            None if self.relative is None else self.relative * base_ns,
            self.absolute_ns,
            None if self.step_frac is None else self.step_frac * op_time_ns,
        )
        return max((part for part in parts if part is not None), default=0.0)

    def names(self) -> tuple[str, ...]:
        """Name the limits that are set."""
        return tuple(
            name
            for name, value in (
                ("relative", self.relative),
                ("absolute", self.absolute_ns),
                ("step_share", self.step_frac),
            )
            if value is not None
        )


DEFAULT_LIMITS = Limits(relative=0.02, absolute_ns=1 * _US, step_frac=0.001)
"""Growth that is not worth a word: up to 2 %, or up to 1 µs a step, or up to 0.1 % of the step's op time."""


@dataclass(frozen=True, slots=True)
class KernelRule:
    """Limits of the kernels whose name `match` finds (`re.search`).

    Attributes
    ----------
    limits
        In place of the general ones; None keeps those.
    max_ns, max_launches
        Bounds of head alone, for all matched kernels together, per step.
    ignore
        Never judge them.
    """

    rule: str
    line: int | None
    match: re.Pattern[str]
    limits: Limits | None = None
    max_ns: float | None = None
    max_launches: int | None = None
    ignore: bool = False


@dataclass(frozen=True, slots=True)
class MeasureRule:
    """Limits of a quantity of the step: an account, ``op_time``, ``busy``, ``window`` or ``wall``.

    Attributes
    ----------
    max_ns, max_frac
        Bounds of head alone: per step, and as a share of its window.
    """

    rule: str
    line: int | None
    measure: str
    limits: Limits | None = None
    max_ns: float | None = None
    max_frac: float | None = None


@dataclass(frozen=True, slots=True)
class LaunchRule:
    """Bounds on device ops a step: at most `maximum`, and at most `increase` more than base."""

    rule: str
    line: int | None
    maximum: int | None = None
    increase: int | None = None


@dataclass(frozen=True, slots=True)
class ShareRule:
    """Bound on the share of the step that is idle without explanation or outside the trace."""

    rule: str
    line: int | None
    max_frac: float


@dataclass(frozen=True, slots=True)
class FloorRule:
    """Bound on the share of the step that its roofline floor explains."""

    rule: str
    line: int | None
    floor_ns: float
    min_frac: float


@dataclass(frozen=True, slots=True)
class Budget:
    """Everything that a gate judges by.

    Attributes
    ----------
    source
        File it was read from, None for the defaults.
    limits
        For every kernel, group and judged measure without a rule of its own.
    confidence
        See `traceaudit.analyses.diff.DiffOptions`.
    hidden_frac, hidden_step_frac
        A pass promises that no kernel lost more than this share of its time *and* this share of the step's op time;
        where the noise leaves room for more, the gate is inconclusive.
    require
        Least completeness of both sides; `Verdict.PARTIAL` accepts partial traces.
    min_runs
        Runs that each side must have.
    """

    source: str | None = None
    limits: Limits = DEFAULT_LIMITS
    confidence: float = 0.99
    hidden_frac: float = 0.05
    hidden_step_frac: float = 0.01
    require: Verdict = Verdict.PARTIAL
    min_runs: int = 1
    allow: frozenset[str] = frozenset()
    kernels: tuple[KernelRule, ...] = ()
    measures: tuple[MeasureRule, ...] = ()
    launches: tuple[LaunchRule, ...] = ()
    unaccounted: tuple[ShareRule, ...] = ()
    floors: tuple[FloorRule, ...] = ()


BOUND_MARGIN = 1.10
"""A proposed bound lies this much above what was measured, so that another day's device passes it."""

NOTABLE_FRAC = 0.05
"""Kernels with this share of the op time get a rule of their own in a proposed budget."""


def propose(result: DiffResult) -> Budget:
    """Return a budget that what was measured just meets, from a side compared with itself."""
    total = result.measure("op_time")
    op_time = 0.0 if total is None else total.effect.head_ns or 0.0
    kernels = [
        KernelRule(
            rule=f"kernel[{number}]",
            line=None,
            match=match,
            max_ns=_rounded_up(BOUND_MARGIN * sum(row.effect.head_ns or 0.0 for row in rows)),
            max_launches=sum(row.launches_head or 0 for row in rows),
        )
        for number, (match, rows) in enumerate(_named_alike(result, NOTABLE_FRAC * op_time))
    ]
    share = max(0.02, math.ceil(200 * result.head.unaccounted_frac) / 100)
    return Budget(
        kernels=tuple(kernels),
        measures=(MeasureRule("total", None, "op_time", max_ns=_rounded_up(BOUND_MARGIN * op_time)),),
        launches=(LaunchRule("launches", None, increase=0),),
        unaccounted=(ShareRule("unaccounted", None, min(share, 1.0)),),
    )


def _named_alike(result: DiffResult, least_ns: float) -> Iterator[tuple[re.Pattern[str], list[KernelDiff]]]:
    """Yield a pattern for each notable kernel, once, and all kernels that it finds."""
    notable = [row for row in result.kernels if (row.effect.head_ns or 0.0) >= least_ns and row.launches_head]
    for pattern in dict.fromkeys(_named(row) for row in notable):
        yield pattern, [row for row in result.kernels if pattern.search(row.name)]


def _named(row: KernelDiff) -> re.Pattern[str]:
    """Return a pattern for a kernel's name, open at the end where the name ends with something volatile."""
    family = family_of(row.identity)
    text = re.escape(family if row.name.startswith(family) else row.name).replace(r"\ ", " ")
    return re.compile(f"^{text}" if family != row.name else f"^{text}$")


def _rounded_up(time_ns: float) -> float:
    """Round up to three digits."""
    if time_ns <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(time_ns)) - 2)
    return math.ceil(round(time_ns / unit, 6)) * unit
