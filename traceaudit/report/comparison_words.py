"""The sentences and rows of a comparison that text reports share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceaudit.model.results.diff import Outcome, Status
from traceaudit.report.format import count_text, duration, plain

if TYPE_CHECKING:
    from traceaudit.model.noise import Effect
    from traceaudit.model.results.diff import CheckResult, DiffResult, GroupDiff, KernelDiff, Measure, SideSummary

__all__ = [
    "MEASURE_LABELS",
    "Row",
    "change_texts",
    "headline",
    "kernels_text",
    "measure_rows",
    "noise_note",
    "noise_text",
    "notes",
    "rows_that_matter",
    "share_text",
    "side_text",
    "signed",
    "unsettled",
]

MEASURE_LABELS = {
    "window": "step window (profiled)",
    "wall": "wall (unprofiled)",
    "op_time": "op time",
    "busy": "busy",
    "compute": "compute",
    "exposed_comm": "exposed comm",
    "exposed_copy": "exposed copy",
    "idle_graph": "idle graph",
    "idle_latency": "idle latency",
    "idle_host": "idle host",
    "idle_unknown": "idle unknown",
}
_CHANGE_LABELS = {"shared_memory": "shared memory", "blocks_per_sm": "blocks per SM"}


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel or a group of them, ready to print.

    Attributes
    ----------
    name
        Safe to print only after `plain` or the escape of the format.
    size
        What is to stand behind the name, whole, to tell it from other rows of that name; often empty.
    """

    name: str
    status: str
    effect: "Effect"
    launches: str
    violates: tuple[str, ...]
    suspects: tuple[str, ...]
    size: str = ""


def headline(check: "CheckResult") -> str:
    """Say the verdict in one sentence."""
    result = check.diff
    if not result.comparable:
        return "the sides are not alike; nothing was compared"
    failed = unsettled(check, Outcome.FAIL)
    open_ = unsettled(check, Outcome.INCONCLUSIVE)
    if check.verdict is Outcome.FAIL:
        return f"{count_text(len(failed), 'limit')} broken beyond the noise"
    if check.verdict is Outcome.INCONCLUSIVE:
        return f"the data cannot tell: {count_text(len(open_), 'question')} left open"
    return f"nothing grew beyond its limits and its noise, in {count_text(len(result.kernels), 'kernel')}"


def unsettled(check: "CheckResult", outcome: Outcome) -> list[str]:
    """Return the messages of the rulings with this outcome."""
    return [
        f"{ruling.message} [{_place(check, ruling.rule, ruling.line)}]"
        for ruling in check.rulings
        if ruling.outcome is outcome
    ]


def rows_that_matter(check: "CheckResult", most: int) -> tuple[list[Row], int]:
    """Return the rows that an engineer would look at, those that decide first, and how many rows are left."""
    result = check.diff
    rows = [_group_row(result, group) for group in result.groups]
    rows += [_kernel_row(result, kernel) for kernel in result.kernels if kernel.group is None]
    rows.sort(key=_importance)
    return rows[:most], len(rows) - min(most, len(rows))


def notes(check: "CheckResult") -> tuple[str, ...]:
    """Say what a reader must know to weigh the verdict."""
    result = check.diff
    if result.same_recordings:
        return ("Both sides are the very same recordings: this says nothing of any change.",)
    found = []
    single = [name for name, side in (("base", result.base), ("head", result.head)) if side.runs == 1]
    if len(single) == 2:  # noqa: PLR2004  (both sides)
        found.append(
            "One run a side: how much runs of the same code differ was not measured. Recorded noise stands in its "
            "place, and smaller differences stay unseen; three runs a side measure it."
        )
    if not result.step.judged and result.step.reason:
        wall = result.measure("wall")
        instead = "" if wall is not None and wall.judged else "; the host's part of the step was not judged"
        found.append(f"The step's window was not judged: {result.step.reason}{instead}.")
    return tuple(found)


def side_text(side: "SideSummary") -> str:
    """Describe a side in one line."""
    facts = ", ".join(
        f"{name.replace('_', ' ')} {value}" if name in ("batch", "context") else value
        for name, value in side.facts.items()
    )
    runs = f"{count_text(side.runs, 'run')}, {count_text(side.steps, 'step')}"
    return f"{plain(side.label)}: {runs}; {plain(facts) or 'nothing known of what ran'}; traces {side.verdict}"


def signed(time_ns: float) -> str:
    """Write a difference with its sign.

    Examples
    --------
    >>> signed(24_700), signed(0), signed(-1_500)
    ('+24.7 µs', '0 ns', '-1.50 µs')
    """
    return f"+{duration(time_ns)}" if time_ns > 0 else duration(time_ns)


def share_text(effect: "Effect") -> str:
    """Write a relative difference, empty where there is nothing to relate to."""
    return "" if effect.ratio is None else f"{100 * (effect.ratio - 1):+.1f}%"


def change_texts(result: "DiffResult", kernel: "KernelDiff") -> list[str]:
    """Say what else changed about a kernel."""
    renamed = kernel.base_name if kernel.status is Status.RENAMED else None
    texts = [] if renamed is None else [f"called {plain(result.shown(renamed))} before"]
    return texts + [
        f"{_CHANGE_LABELS.get(change.what, change.what)} {change.base or 'unknown'} -> {change.head or 'unknown'}"
        for change in kernel.changes
    ]


def measure_rows(check: "CheckResult") -> list["Measure"]:
    """Return the quantities of the step that are not zero on both sides."""
    rows = [check.diff.step, *check.diff.measures]
    return [row for row in rows if row.effect.base_ns or row.effect.head_ns]


def noise_text(row: "Measure", write: Callable[[float], str]) -> str:
    """Write the noise of a quantity, or that it says nothing."""
    return "too large" if row.noise_says_nothing else f"±{write(row.effect.noise_ns)}"


def noise_note(rows: "list[Measure]") -> str:
    """Say what is meant by noise that is too large; empty where none is."""
    if not any(row.noise_says_nothing for row in rows):
        return ""
    return "noise too large: not judged, since it is more than half of the value and larger than what it could show"


def kernels_text(check: "CheckResult") -> str:
    """Count the kernels that only one side has, those of groups left out, if kernels were compared."""
    if not check.diff.comparable:
        return "kernels not compared"
    alone = [kernel.status for kernel in check.diff.kernels if kernel.group is None]
    text = f"kernels new {alone.count(Status.NEW)}, gone {alone.count(Status.GONE)}"
    groups = len(check.diff.groups)
    return f"{text}, and those of {count_text(groups, 'group')}" if groups else text


def _place(check: "CheckResult", rule: str, line: int | None) -> str:
    return f"{plain(check.budget)}:{line} {rule}" if line is not None and check.budget is not None else rule


def _importance(row: Row) -> tuple[bool, bool, bool, float, str]:
    return not row.violates, not row.suspects, row.status == Status.SAME, -abs(row.effect.delta_ns), row.name


def _kernel_row(result: "DiffResult", kernel: "KernelDiff") -> Row:
    launches = [("-" if count is None else f"{count:,}") for count in (kernel.launches_base, kernel.launches_head)]
    text = launches[0] if launches[0] == launches[1] else " -> ".join(launches)
    name, size = result.shown(kernel.name), result.size_mark(kernel)
    return Row(name, str(kernel.status), kernel.effect, text, kernel.violates, kernel.suspects, size)


def _group_row(result: "DiffResult", group: "GroupDiff") -> Row:
    return Row(result.exchange(group), group.kind, group.effect, "", group.violates, group.suspects)
