"""Two sides compared: each kernel, what replaced what, the accounts, and whether the sides are alike at all."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceaudit.model.findings import Finding, Severity, Verdict
from traceaudit.model.identity import sizes_of
from traceaudit.model.launchshape import waves
from traceaudit.model.likeness import facts_of, unlike, unlike_findings
from traceaudit.model.noise import PRIORS, Band, Effect, RunSamples, compare, side_statistic
from traceaudit.model.pairing import Group, Pair, Pairing, pair_kernels
from traceaudit.model.results.diff import (
    Change,
    CommonShift,
    DiffResult,
    GroupDiff,
    KernelDiff,
    LaunchSize,
    Measure,
    SideSummary,
    Status,
)
from traceaudit.model.runs import KernelSamples, RunSummary, Side, same_recordings
from traceaudit.model.shortnames import shortened
from traceaudit.model.sidesamples import (
    account_times,
    busy_frac,
    busy_times,
    kernel_names,
    kernel_samples,
    launches,
    op_times,
    ops_of_step,
    unaccounted_frac,
    usual_kernel,
    walls_of,
    windows,
)
from traceaudit.model.variants import placed_like

__all__ = ["DEVICE_BOUND_FRAC", "DiffOptions", "diff"]

DEVICE_BOUND_FRAC = 0.9
"""Below this share of busy time a window is the profiler's and the host's, and says nothing of the step in service."""

COMMON_FRAC = 0.01
"""A factor nearer to 1 is not worth a word about clocks."""

COMMON_KERNELS = 5
"""Kernels that must share a factor before the device is suspected; fewer may well have changed together."""

COMMON_AGREE = 0.9
"""Share of the kernels that must agree with the factor, and be measured well enough to tell it from 1."""

COMMON_SHARE = 0.005
"""Kernels with less of the op time are left out when looking for a common factor."""

WALL_RUNS = 3
"""Runs a side from which on the unprofiled wall is judged: the host's part may differ by half between processes."""

_JUDGED_BUSY = ("compute", "exposed_comm", "exposed_copy")


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """Settings of a comparison.

    Attributes
    ----------
    confidence
        Chance that no difference at all leaves its band when the code is the same.
    allow
        Facts that may differ (`traceaudit.model.likeness.FACTS`, or ``all``).
    """

    confidence: float = 0.99
    allow: frozenset[str] = frozenset()


_DEFAULT = DiffOptions()


def diff(base: Side, head: Side, options: DiffOptions = _DEFAULT, findings: Sequence[Finding] = ()) -> DiffResult:
    """Compare head with base.

    Parameters
    ----------
    findings
        What reading the traces found; kept with the result.
    """
    remarks = unlike_findings(unlike(base, head), options.allow)
    comparable = all(remark.severity is not Severity.ERROR for remark in remarks)
    same = same_recordings(base, head)
    head = placed_like(base, head) if comparable else head
    pairing = pair_kernels(base, head) if comparable else Pairing((), ())
    tests = len(pairing.pairs) + len(pairing.groups) + 2
    band = Band(options.confidence, tests)
    kernels = [_kernel(base, head, pair, band) for pair in pairing.pairs]
    common = _common_shift(kernels)
    kernels.sort(
        key=lambda row: (-max(row.effect.base_ns or 0, row.effect.head_ns or 0), row.identity, row.kind, row.name)
    )
    groups = [_group(base, head, pairing, number, group, band) for number, group in enumerate(pairing.groups)]
    names = [name for row in kernels for name in (row.name, row.base_name) if name is not None]
    names += [name for group in groups for name in (*group.base, *group.head)]
    found = (*findings, *remarks, *(() if common is None else (_clock(common),)))
    return DiffResult(
        base=_summary(base),
        head=_summary(head),
        comparable=comparable,
        step=_step(base, head, band),
        measures=_measures(base, head, band) if comparable else (),
        kernels=tuple(kernels),
        groups=tuple(groups),
        launches_base=ops_of_step(base),
        launches_head=ops_of_step(head),
        findings=found,
        common=common,
        confidence=options.confidence,
        tests=tests,
        same_recordings=same,
        short_names=shortened(names),
        split_names=frozenset(name for name, rows in Counter(row.name for row in kernels).items() if rows > 1),
    )


def _kernel(base: Side, head: Side, pair: Pair, band: Band) -> KernelDiff:
    old, new = usual_kernel(base, pair.base), usual_kernel(head, pair.head)
    known = new or old
    assert known is not None  # noqa: S101  (a pair has at least one side)
    effect = _effect(kernel_samples(base, pair.base), kernel_samples(head, pair.head), known.kind, band)
    effect = replace(effect, launch_sd_ns=known.launch_sd_ns)
    return KernelDiff(
        name=known.name,
        base_name=old.name if old is not None and old.name != known.name else None,
        identity=known.key[0],
        kind=known.kind,
        status=_status(pair, effect),
        effect=effect,
        launches_base=launches(base, pair.base),
        launches_head=launches(head, pair.head),
        changes=_changes(base, head, old, new),
        group=pair.group,
        launch_size=_launch_size(pair, known),
    )


def _launch_size(pair: Pair, known: KernelSamples) -> LaunchSize | None:
    sizes = sizes_of({shape for _, shape in pair.head or pair.base})
    # Copies and fills have no grid; what is no kernel of theirs is classed by its bytes.
    return None if sizes is None else LaunchSize("bytes" if known.shape.grid is None else "blocks", *sizes)


def _status(pair: Pair, effect: Effect) -> Status:
    if not pair.base:
        return Status.NEW
    if not pair.head:
        return Status.GONE
    if pair.renamed:
        return Status.RENAMED
    if not effect.shown:
        return Status.SAME
    return Status.SLOWER if effect.delta_ns > 0 else Status.FASTER


def _group(base: Side, head: Side, pairing: Pairing, number: int, group: Group, band: Band) -> GroupDiff:
    members = [pair for pair in pairing.pairs if pair.group == number]
    in_base = frozenset(key for pair in members for key in pair.base)
    in_head = frozenset(key for pair in members for key in pair.head)
    return GroupDiff(
        kind=group.kind,
        base=kernel_names(base, in_base),
        head=kernel_names(head, in_head),
        effect=_effect(kernel_samples(base, in_base), kernel_samples(head, in_head), "compute", band),
    )


def _effect(base: Sequence[RunSamples] | None, head: Sequence[RunSamples] | None, kind: str, band: Band) -> Effect:
    before, after = (None if side is None else side_statistic(side) for side in (base, head))
    return compare(before, after, PRIORS[kind], band)


def _changes(base: Side, head: Side, old: KernelSamples | None, new: KernelSamples | None) -> tuple[Change, ...]:
    """Say what else changed between two launches of a kernel."""
    if old is None or new is None:
        return ()
    facts = [(_described(side.runs[0], kernel)) for side, kernel in ((base, old), (head, new))]
    return tuple(Change(what, facts[0][what], facts[1][what]) for what in facts[0] if facts[0][what] != facts[1][what])


def _described(run: RunSummary, kernel: KernelSamples) -> dict[str, str | None]:
    shape = kernel.shape
    filled = waves(shape, run.facts.capability, run.facts.sms)
    blocks = None if shape.grid is None else math.prod(shape.grid)
    return {
        "kind": kernel.kind,
        "grid": None if shape.grid is None else "x".join(map(str, shape.grid)),
        "block": None if shape.block is None else "x".join(map(str, shape.block)),
        "registers": None if shape.registers is None else str(shape.registers),
        "shared_memory": None if shape.shared_mem is None else f"{shape.shared_mem} B",
        "blocks_per_sm": None if blocks is None or not run.facts.sms else f"{blocks / run.facts.sms:.2f}",
        "waves": None if filled is None else f"{filled:.2f}",
    }


def _step(base: Side, head: Side, band: Band) -> Measure:
    """Compare the profiled windows; they are judged where the device, not the host, sets their length."""
    effect = _effect(windows(base), windows(head), "device", band)
    bound = min(busy_frac(side) for side in (base, head))
    if bound >= DEVICE_BOUND_FRAC:
        return Measure("window", effect, judged=True)
    wide = _effect(windows(base), windows(head), "host", band)
    share = f"the device is busy for {100 * bound:.0f} % of the profiled step"
    return Measure("window", wide, judged=False, reason=f"{share}, so its length is the host's and the profiler's")


def _measures(base: Side, head: Side, band: Band) -> tuple[Measure, ...]:
    measures = [
        Measure("op_time", _effect(op_times(base), op_times(head), "device", band), judged=True),
        Measure("busy", _effect(busy_times(base), busy_times(head), "device", band), judged=True),
    ]
    walls = [walls_of(side) for side in (base, head)]
    if walls[0] and walls[1]:
        enough = min(len(walls[0]), len(walls[1])) >= WALL_RUNS
        reason = None if enough else f"the host's noise is known from {WALL_RUNS} runs a side on"
        measures.append(Measure("wall", _effect(walls[0], walls[1], "host", band), enough, reason))
    for name in base.runs[0].accounts:
        kind = "device" if name in _JUDGED_BUSY else "host"
        effect = _effect(account_times(base, name), account_times(head, name), kind, band)
        measures.append(Measure(name, effect, judged=False, reason="accounts are judged where a budget names them"))
    return tuple(measures)


def _summary(side: Side) -> SideSummary:
    verdicts = [run.verdict for run in side.runs]
    return SideSummary(
        label=side.label,
        sources=tuple(run.source for run in side.runs),
        runs=len(side.runs),
        steps=sum(run.steps for run in side.runs),
        facts=facts_of(side.runs),
        verdict=max(verdicts, key=list(Verdict).index),
        unaccounted_frac=unaccounted_frac(side),
    )


def _common_shift(kernels: Iterable[KernelDiff]) -> CommonShift | None:
    """Look for one factor by which nearly all kernels changed."""
    matched = [
        row for row in kernels if row.effect.ratio and row.group is None and row.launches_base == row.launches_head
    ]
    total = sum(row.effect.base_ns or 0.0 for row in matched)
    rows = [row for row in matched if (row.effect.base_ns or 0.0) >= COMMON_SHARE * total]
    if len(rows) < COMMON_KERNELS:
        return None
    logs = np.array([math.log(row.effect.ratio or 1.0) for row in rows])
    bands = np.array(
        [row.effect.noise_ns / (((row.effect.base_ns or 0.0) + (row.effect.head_ns or 0.0)) / 2) for row in rows]
    )
    centre = float(np.median(logs))
    agree = (np.abs(logs - centre) <= bands) & (bands < abs(centre))
    if abs(centre) < math.log1p(COMMON_FRAC) or agree.mean() < COMMON_AGREE:
        return None
    return CommonShift(math.exp(centre), int(agree.sum()))


def _clock(common: CommonShift) -> Finding:
    return Finding(
        "unlike_runs",
        Severity.WARNING,
        f"{common.kernels} kernels all take {common.factor:.3f} times as long: clock or device, not code",
        "lock the clocks, let the device warm up before recording, and record both sides on one device in turn",
        count=common.kernels,
    )
