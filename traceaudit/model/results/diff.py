"""What `diff` and `check` answer: two sides compared kernel by kernel, and the judgement.

All times are ns per step, as floats, since they are medians; see `traceaudit.model.noise` for values and noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from traceaudit.model.findings import Finding, Verdict
from traceaudit.model.noise import Effect
from traceaudit.model.results.completeness import Completeness

__all__ = [
    "Change",
    "CheckResult",
    "CommonShift",
    "DiffResult",
    "GroupDiff",
    "KernelDiff",
    "LaunchSize",
    "Measure",
    "Outcome",
    "Ruling",
    "SideSummary",
    "Status",
    "worst",
]


LOUD_FRAC = 0.5
"""Noise above this share of the larger value says nothing of the step."""


class Status(StrEnum):
    """What became of a kernel."""

    SAME = "same"
    SLOWER = "slower"
    FASTER = "faster"
    NEW = "new"
    GONE = "gone"
    RENAMED = "renamed"


class Outcome(StrEnum):
    """What a gate says."""

    PASS = "pass"  # noqa: S105  (no password)
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


def worst(outcomes: "list[Outcome]") -> Outcome:
    """Return the worst outcome, `PASS` if there is none.

    Examples
    --------
    >>> worst([Outcome.PASS, Outcome.INCONCLUSIVE])
    <Outcome.INCONCLUSIVE: 'inconclusive'>
    """
    order = (Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL)
    return max(outcomes, key=order.index, default=Outcome.PASS)


@dataclass(frozen=True, slots=True)
class Change:
    """Something other than time that changed, as text; None where a side does not have it."""

    what: str
    base: str | None
    head: str | None


@dataclass(frozen=True, slots=True)
class LaunchSize:
    """From what to what size the launches of a row may have: blocks of a grid, or bytes of a copy or fill."""

    unit: Literal["blocks", "bytes"]
    least: int
    most: int

    def __str__(self) -> str:
        """Write the size, as ``64-127 blocks``."""
        if self.least == self.most:
            return f"{self.least:,} {self.unit.removesuffix('s')}"
        return f"{self.least:,}-{self.most:,} {self.unit}"


@dataclass(frozen=True, slots=True)
class KernelDiff:
    """One kernel on both sides.

    Attributes
    ----------
    name
        On the head side, else on the base side.
    base_name
        On the base side where it differs.
    launches_base, launches_head
        Launches a step (median); None where the side has none.
    group
        Row in `DiffResult.groups` that this kernel is judged with, None if it is judged alone.
    violates
        Limits that it breaks.
    suspects
        Why nothing can be said, where that is so: ``within_noise`` (beyond a limit, but not beyond its noise) or
        ``noise_too_large`` (a regression worth knowing could hide).
    launch_size
        Of the launches on the head side, else on the base side; tells rows of one name apart. None where not recorded.
    """

    name: str
    base_name: str | None
    identity: str
    kind: str
    status: Status
    effect: Effect
    launches_base: int | None
    launches_head: int | None
    changes: tuple[Change, ...] = ()
    group: int | None = None
    violates: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    launch_size: LaunchSize | None = None


@dataclass(frozen=True, slots=True)
class GroupDiff:
    """Kernels that took the place of others: ``fused``, ``split`` or ``replaced``."""

    kind: str
    base: tuple[str, ...]
    head: tuple[str, ...]
    effect: Effect
    violates: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity of the step: an account, busy time, op time, the window or the wall.

    Attributes
    ----------
    judged
        Whether the gate looks at it without being asked to by a budget.
    reason
        Why it is not judged.
    """

    name: str
    effect: Effect
    judged: bool
    reason: str | None = None
    violates: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()

    @property
    def noise_says_nothing(self) -> bool:
        """Whether nothing judges it and its noise is more than half of its value: hardly a change would stand out."""
        value = max(self.effect.base_ns or 0.0, self.effect.head_ns or 0.0)
        unjudged = not (self.judged or self.violates or self.suspects)
        return unjudged and self.effect.noise_ns > LOUD_FRAC * value


@dataclass(frozen=True, slots=True)
class SideSummary:
    """What a side is.

    Attributes
    ----------
    steps
        Steps of all runs together.
    facts
        Device, dtype, batch, context, graph mode and step kind, where known; several values are joined by ", ".
    unaccounted_frac
        Idle time without explanation and time outside the trace, as a share of the step.
    """

    label: str
    sources: tuple[str, ...]
    runs: int
    steps: int
    facts: dict[str, str]
    verdict: Verdict
    unaccounted_frac: float


@dataclass(frozen=True, slots=True)
class CommonShift:
    """All precise kernels changed by one factor: clock or device, not code."""

    factor: float
    kernels: int


@dataclass(frozen=True, slots=True)
class DiffResult:
    """Two sides compared.

    Attributes
    ----------
    base, head
        The sides.
    comparable
        False where the sides are not alike and comparing was not allowed; then there are no kernels.
    step
        The profiled step window.
    measures
        Op time, busy, wall and the accounts.
    kernels
        Most time first.
    launches_base, launches_head
        Device ops a step (median).
    common
        The factor that all kernels share, if they do.
    tests
        Differences looked at together, which widens the band of each.
    same_recordings
        Both sides are the very same recordings.
    short_names
        A short form of each kernel's name, different for different names.
    split_names
        Names of several rows each, which the size of their launches tells apart.
    """

    base: SideSummary
    head: SideSummary
    comparable: bool
    step: Measure
    measures: tuple[Measure, ...]
    kernels: tuple[KernelDiff, ...]
    groups: tuple[GroupDiff, ...]
    launches_base: int
    launches_head: int
    findings: tuple[Finding, ...]
    common: CommonShift | None
    confidence: float
    tests: int
    same_recordings: bool = False
    short_names: Mapping[str, str] = field(default_factory=dict)
    split_names: frozenset[str] = frozenset()

    def shown(self, name: str) -> str:
        """Return the short form of a kernel's name, or the name where there is none."""
        return self.short_names.get(name, name)

    def size_mark(self, row: KernelDiff) -> str:
        """Return what tells a row from others of its name, as `` [64-127 blocks]``; empty where the name does."""
        if row.name not in self.split_names:
            return ""
        return " [size unknown]" if row.launch_size is None else f" [{row.launch_size}]"

    def called(self, row: KernelDiff) -> str:
        """Return the short form of a row's name, with the size of its launches where the name alone does not tell."""
        return self.shown(row.name) + self.size_mark(row)

    def exchange(self, group: GroupDiff, *, most: int = 1) -> str:
        """Say which kernels took the place of which by their short names, at most `most` of a side."""
        return " -> ".join(self._listed(names, most) for names in (group.base, group.head))

    def _listed(self, names: tuple[str, ...], most: int) -> str:
        more = len(names) - most
        return " + ".join([*map(self.shown, names[:most]), *([f"{more} more"] if more > 0 else [])])

    def measure(self, name: str) -> Measure | None:
        """Return a measure by its name."""
        return next((item for item in self.measures if item.name == name), None)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What one rule of a budget, or a general condition, says.

    Attributes
    ----------
    rule
        Where it stands in the budget, such as ``kernel[0].max_us``; a word for conditions that need no budget.
    line
        Line in the budget file.
    """

    rule: str
    outcome: Outcome
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A comparison with its judgement.

    Attributes
    ----------
    diff
        The comparison, with `violates` and `suspects` filled in.
    rulings
        What is not a pass, and every rule of the budget.
    budget
        The budget's file, None where the default limits decided.
    """

    diff: DiffResult
    verdict: Outcome
    rulings: tuple[Ruling, ...]
    budget: str | None = None
    completeness: Completeness = field(default_factory=lambda: Completeness.of(()))
