"""The gate: from a comparison and a budget to pass, fail or inconclusive.

Something *fails* when its growth is beyond every limit that is set and beyond its noise. It is *inconclusive* when it
is beyond the limits but within the noise, or when the noise leaves room for a regression that a pass must exclude. A
raised limit never makes a judgement worse.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from traceaudit.model.budget import Budget, KernelRule, Limits, MeasureRule
from traceaudit.model.findings import Finding, Severity, Verdict
from traceaudit.model.noise import Effect
from traceaudit.model.results.completeness import Completeness
from traceaudit.model.results.diff import (
    CheckResult,
    DiffResult,
    GroupDiff,
    KernelDiff,
    Measure,
    Outcome,
    Ruling,
    worst,
)

__all__ = ["MIN_STEPS", "baseline_regressed", "judge"]

MIN_STEPS = 3
"""Steps that each side must have in all its runs together; with fewer its noise is a guess."""

NAMES_SHOWN = 2
"""Kernels of a side that a message names where many took the place of many."""

WITHIN_NOISE, NOISE_TOO_LARGE, COMMON_SHIFT = "within_noise", "noise_too_large", "common_shift"


_DEFAULT = Budget()

_Judged = tuple[tuple[str, ...], tuple[str, ...]]


def judge(result: DiffResult, budget: Budget = _DEFAULT) -> CheckResult:
    """Judge a comparison.

    Parameters
    ----------
    result
        The comparison; its kernels, groups and measures come back with `violates` and `suspects` filled in.
    """
    judged = _with_limits(result, budget)
    blocking = list(_conditions(judged, budget))
    rulings = [*blocking, *_growth(judged, budget), *_bounds(judged, budget)]
    verdict = Outcome.INCONCLUSIVE if blocking else worst([ruling.outcome for ruling in rulings])
    return CheckResult(judged, verdict, tuple(rulings), budget.source, Completeness.of(judged.findings))


def baseline_regressed(check: CheckResult) -> Finding | None:
    """Return the finding that a base is slower than its own record, from the judgement of record against base."""
    broken = [ruling for ruling in check.rulings if ruling.outcome is Outcome.FAIL]
    if check.verdict is not Outcome.FAIL:
        return None
    step = check.diff.measure("op_time")
    return Finding(
        "baseline_regressed",
        Severity.WARNING,
        f"the base is itself slower than its record {check.diff.base.label!r}: {broken[0].message}",
        "head is judged against this base; find what made the base slow, or save the record anew",
        count=len(broken),
        impact_ns=None if step is None else round(step.effect.delta_ns),
    )


def _with_limits(result: DiffResult, budget: Budget) -> DiffResult:
    limiter = _Limiter(result, budget)
    return replace(
        result,
        kernels=tuple(limiter.kernel(row) for row in result.kernels),
        groups=tuple(
            replace(row, violates=violates, suspects=suspects)
            for row in result.groups
            for violates, suspects in (limiter.effect(row.effect, budget.limits),)
        ),
        measures=tuple(limiter.measure(row) for row in result.measures),
        step=limiter.measure(result.step),
    )


class _Limiter:
    """Holds effects against the limits of a budget."""

    def __init__(self, result: DiffResult, budget: Budget) -> None:
        self.budget = budget
        op_time = result.measure("op_time")
        self.op_time_ns = (op_time.effect.base_ns or 0.0) if op_time is not None else 0.0
        self.same = result.same_recordings  # what is the same does not differ, however noisy it is
        self.factor = 1.0 if result.common is None else result.common.factor

    def kernel(self, row: KernelDiff) -> KernelDiff:
        rule = _rule_of(row, self.budget.kernels)
        if row.group is not None or (rule is not None and rule.ignore):
            return row
        own = rule is not None and rule.limits is not None
        limits = rule.limits if rule is not None and rule.limits is not None else self.budget.limits
        violates, suspects = self.effect(row.effect, limits, rule.rule if rule is not None and own else None)
        return replace(row, violates=violates, suspects=suspects)

    def measure(self, row: Measure) -> Measure:
        rule = next(
            (rule for rule in self.budget.measures if rule.measure == row.name and rule.limits is not None), None
        )
        if rule is None and not row.judged:
            return row
        limits = rule.limits if rule is not None and rule.limits is not None else self.budget.limits
        violates, suspects = self.effect(row.effect, limits, None if rule is None else rule.rule)
        if rule is None and row.name == "wall":
            suspects = ()  # how noisy the host is says nothing of the device, which a pass is about
        return replace(row, violates=violates, suspects=suspects)

    def effect(self, effect: Effect, limits: Limits, rule: str | None = None) -> _Judged:
        """Return the limits that an effect breaks, and why nothing can be said of it."""
        base, delta, noise = effect.base_ns or 0.0, effect.delta_ns, effect.noise_ns
        allowed = limits.allowed_ns(base, self.op_time_ns)
        if delta > allowed:
            if delta <= noise:
                return (), (WITHIN_NOISE,)
            own = delta - (self.factor - 1.0) * base
            if own <= max(allowed, noise):
                return (), (COMMON_SHIFT,)
            return tuple(name if rule is None else f"{rule}.{name}" for name in limits.names()), ()
        room = max(allowed, self.budget.hidden_frac * base, self.budget.hidden_step_frac * self.op_time_ns)
        # A pass is a promise about each one separately, which needs no allowance for their number.
        hides = delta + effect.hidden_ns > room and not self.same
        return (), (NOISE_TOO_LARGE,) if hides else ()


def _rule_of(row: KernelDiff, rules: Iterable[KernelRule]) -> KernelRule | None:
    """Return the first rule with limits (or that ignores) that finds the kernel's name."""
    return next((rule for rule in rules if (rule.ignore or rule.limits is not None) and _finds(rule, row)), None)


def _finds(rule: KernelRule, row: KernelDiff) -> bool:
    return rule.match.search(row.name) is not None or rule.match.search(row.base_name or row.name) is not None


def _conditions(result: DiffResult, budget: Budget) -> Iterator[Ruling]:
    """Say why no judgement can stand, whatever the numbers."""
    if not result.comparable:
        yield Ruling("unlike_runs", Outcome.INCONCLUSIVE, "the sides are not alike and were not compared")
    if result.same_recordings and budget.source is None:
        return
    for name, side in (("base", result.base), ("head", result.head)):
        if list(Verdict).index(side.verdict) > list(Verdict).index(budget.require):
            message = f"the {name} side's traces are {side.verdict}, {budget.require} or better is asked for"
            yield Ruling("completeness", Outcome.INCONCLUSIVE, message)
        if side.steps < MIN_STEPS and not result.same_recordings:
            message = (
                f"the {name} side has {side.steps} steps in all its runs, {MIN_STEPS} are needed to know its noise"
            )
            yield Ruling("steps", Outcome.INCONCLUSIVE, message)
        if side.runs < budget.min_runs:
            message = f"the {name} side has {side.runs} runs, the budget asks for {budget.min_runs}"
            yield Ruling("min_runs", Outcome.INCONCLUSIVE, message)


def _growth(result: DiffResult, budget: Budget) -> Iterator[Ruling]:
    """Say what grew beyond its limits, or may have."""
    rows: list[tuple[str, KernelDiff | GroupDiff | Measure]] = [(result.called(row), row) for row in result.kernels]
    rows += [(f"{row.kind}: {result.exchange(row, most=NAMES_SHOWN)}", row) for row in result.groups]
    rows += [(row.name, row) for row in (result.step, *result.measures)]
    lines = {kernel.rule: kernel.line for kernel in budget.kernels}
    lines |= {measure.rule: measure.line for measure in budget.measures}
    for name, row in rows:
        if row.violates:
            rule = row.violates[0].rpartition(".")[0] or "limits"
            yield Ruling(rule, Outcome.FAIL, f"{name}: {_grown(row.effect)}", lines.get(rule))
        elif row.suspects:
            reason = row.suspects[0]
            yield Ruling(reason, Outcome.INCONCLUSIVE, f"{name}: {_grown(row.effect)}; {_WHY[reason]}")


_WHY = {
    WITHIN_NOISE: "beyond the limits but within the noise: more runs would tell",
    NOISE_TOO_LARGE: "the noise leaves room for a regression that matters: more runs or steady clocks would tell",
    COMMON_SHIFT: "all kernels changed by this factor: clock or device",
}


def _grown(effect: Effect) -> str:
    ratio = effect.ratio
    share = "" if ratio is None else f" ({100 * (ratio - 1):+.1f} %)"
    return f"{effect.delta_ns / 1000:+.1f} µs{share} a step, noise {effect.noise_ns / 1000:.1f} µs"


def _bounds(result: DiffResult, budget: Budget) -> Iterator[Ruling]:
    """Hold head alone against the bounds of a budget."""
    if not result.comparable:
        return
    for kernel in budget.kernels:
        yield from _kernel_bounds(result, kernel)
    for measure in budget.measures:
        yield from _measure_bounds(result, measure)
    for launches in budget.launches:
        count, growth = result.launches_head, result.launches_head - result.launches_base
        if launches.maximum is not None:
            yield _bound(f"{launches.rule}.max", launches.line, "device ops a step", count, launches.maximum)
        if launches.increase is not None:
            yield _bound(
                f"{launches.rule}.increase", launches.line, "more device ops a step", growth, launches.increase
            )
    for share in budget.unaccounted:
        percent = 100 * result.head.unaccounted_frac
        yield _bound(
            f"{share.rule}.max_frac", share.line, "% of the step unaccounted for", percent, 100 * share.max_frac
        )
    for floor in budget.floors:
        measured = result.measure("wall") or result.step
        found = floor.floor_ns / measured.effect.head_ns if measured.effect.head_ns else 0.0
        outcome = Outcome.PASS if found >= floor.min_frac else Outcome.FAIL
        least, part = 100 * floor.min_frac, 100 * found
        message = f"the floor is {part:.1f} % of the {measured.name}, at least {least:.1f} % is asked for"
        yield Ruling(f"{floor.rule}.min_frac", outcome, message, floor.line)


def _kernel_bounds(result: DiffResult, rule: KernelRule) -> Iterator[Ruling]:
    rows = [row for row in result.kernels if _finds(rule, row)]
    if not rows and not rule.ignore:
        message = f"no kernel is called like {rule.match.pattern!r}"
        yield Ruling(f"{rule.rule}.match", Outcome.INCONCLUSIVE, message, rule.line)
        return
    if rule.max_ns is not None:
        time = sum(row.effect.head_ns or 0.0 for row in rows)
        noise = sum(row.effect.noise_ns**2 for row in rows) ** 0.5
        what = f"µs a step in kernels like {rule.match.pattern!r}"
        yield _bound(f"{rule.rule}.max_us", rule.line, what, time / 1000, rule.max_ns / 1000, noise / 1000)
    if rule.max_launches is not None:
        count = sum(row.launches_head or 0 for row in rows)
        what = f"launches a step of kernels like {rule.match.pattern!r}"
        yield _bound(f"{rule.rule}.max_launches", rule.line, what, count, rule.max_launches)


def _measure_bounds(result: DiffResult, rule: MeasureRule) -> Iterator[Ruling]:
    measure = result.step if rule.measure == result.step.name else result.measure(rule.measure)
    if measure is None:
        message = f"{rule.measure} is not known: the traces carry no unprofiled wall"
        yield Ruling(f"{rule.rule}.{rule.measure}", Outcome.INCONCLUSIVE, message, rule.line)
        return
    head, noise = measure.effect.head_ns or 0.0, measure.effect.noise_ns
    if rule.max_ns is not None:
        yield _bound(
            f"{rule.rule}.max_us", rule.line, f"µs of {rule.measure}", head / 1000, rule.max_ns / 1000, noise / 1000
        )
    if rule.max_frac is not None:
        window = result.step.effect.head_ns or 1.0
        what = f"% of the step in {rule.measure}"
        found, most = 100 * head / window, 100 * rule.max_frac
        yield _bound(f"{rule.rule}.max_frac", rule.line, what, found, most, 100 * noise / window)


def _bound(rule: str, line: int | None, what: str, found: float, most: float, noise: float = 0.0) -> Ruling:
    """Judge a value: above the bound by more than its noise it fails, above it by less nothing can be said."""
    broken = Outcome.FAIL if found - noise > most else Outcome.INCONCLUSIVE
    outcome = Outcome.PASS if found <= most else broken
    return Ruling(rule, outcome, f"{found:.6g} {what}, at most {most:.6g} is allowed", line)
