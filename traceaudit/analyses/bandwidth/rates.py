"""Rates of each row of a kernel report, and the findings that they lead to."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traceaudit.analyses.bandwidth.context import Context, indices
from traceaudit.analyses.bandwidth.judge import MATTERS_FRAC, Facts, bound_of, level_of, underfilled
from traceaudit.analyses.bandwidth.plausible import Underfilled, impossible, starved
from traceaudit.analyses.bandwidth.rereads import re_reads
from traceaudit.model import intervals
from traceaudit.model.bytes.shares import UNKNOWN, OpWork
from traceaudit.model.bytes.work import Work
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.findings import Finding
from traceaudit.model.grids import ByGrid
from traceaudit.model.hardware import Peaks
from traceaudit.model.kernelgroups import KernelGroup
from traceaudit.model.results.kernels import Ceilings, DeviceKernels, KernelRates, KernelRow, MemoryLevel
from traceaudit.model.schema import I64, Kind

__all__ = ["rate_kernels", "rates_of"]

MOST_FINDINGS = 5
"""Rows of one code that get a finding of their own; flags stand on every row."""


def rate_kernels(
    view: DeviceView,
    kernels: DeviceKernels,
    groups: Sequence[KernelGroup],
    work: OpWork,
    peaks: Peaks | None,
    ceilings: Ceilings,
) -> tuple[DeviceKernels, tuple[Finding, ...]]:
    """Add to each row what its launches moved and how fast, what limits it, and what cannot be true.

    Parameters
    ----------
    view
        The device.
    kernels, groups
        Its rows, and the ops of each.
    work
        What each op moves.
    peaks, ceilings
        What rates are held against.
    """
    resolution = view.trace.source.time_resolution_ns
    chosen = np.sort(np.concatenate([group.ops for group in groups])) if groups else np.empty(0, np.int64)
    steps = len(np.unique(view.windows.step[chosen][view.windows.step[chosen] >= 0])) or 1
    device = Context(view, work, peaks, ceilings, steps, resolution if resolution > 1 else 0)
    rows: list[KernelRow] = []
    findings: list[Finding] = []
    for row, group in zip(kernels.kernels, groups, strict=True):
        rated, found = _rated(row, group.ops, device)
        rows.append(rated)
        findings += found
    result = replace(
        kernels,
        kernels=tuple(rows),
        ceilings=ceilings,
        covered_busy_frac=_coverage(view, work, chosen, kernels.busy_ns),
        sources=_sources(view, work, chosen),
    )
    return result, tuple(_limited(findings))


def _rated(row: KernelRow, ops: I64, device: Context) -> tuple[KernelRow, list[Finding]]:
    duration = device.view.ops.end_ns[ops] - device.view.ops.start_ns[ops]
    rates, memory_ns, compute_ns = rates_of(ops, duration, device)
    grids = ByGrid.of(device.view.ops, ops)
    blocks = max((math.prod(grid) for grid in grids.grid if grid is not None), default=None)
    no_peak = _no_peak(rates, memory_ns, compute_ns)
    facts = Facts(row.mean_ns, blocks, device.sms, memory_ns, compute_ns, len(grids.grid) > 1, no_peak)
    if row.kind == Kind.COMPUTE.name.lower():
        bound, rule = bound_of(facts)
    else:
        bound, rule = None, "" if not rates.assumption else rates.assumption
    findings = [*impossible(row, ops, duration, device)]
    flags = [*row.flags, *dict.fromkeys(finding.code for finding in findings)]
    few = _underfilled(row, ops, duration, grids, device) if row.kind == Kind.COMPUTE.name.lower() else None
    if few is not None:
        flags.append("underfilled_grid")
        findings.append(starved(row, few, device))
    again = re_reads(row, ops, rates, grids, device)
    if again is not None:
        flags.append(again.code)
        findings.append(again)
    role = _role(ops, device)
    rated = replace(row, rates=rates, bound=bound, bound_rule=rule, flags=tuple(flags), role=role)
    return rated, findings


def _underfilled(row: KernelRow, ops: I64, duration: I64, grids: ByGrid, device: Context) -> Underfilled | None:
    """Return the launches of a row that leave multiprocessors empty, judged grid by grid, if they matter together."""
    chosen = np.zeros(len(ops), np.bool_)
    blocks: list[int] = []
    gain_ns = 0.0
    for number, grid in enumerate(grids.grid):
        if grid is None:
            continue
        own = grids.members(number)
        _, memory_ns, compute_ns = rates_of(ops[own], duration[own], device)
        facts = Facts(float(duration[own].mean()), math.prod(grid), device.sms, memory_ns, compute_ns)
        if underfilled(facts):
            chosen |= own
            blocks.append(math.prod(grid))
            gain_ns += facts.gain_frac * float(duration[own].sum())
    share = row.share_of_op_time_frac * float(duration[chosen].sum() / max(duration.sum(), 1))
    if not blocks or share < MATTERS_FRAC:
        return None
    rates, _, _ = rates_of(ops[chosen], duration[chosen], device)
    return Underfilled(tuple(blocks), int(chosen.sum()), share, round(gain_ns), rates)


def rates_of(ops: I64, duration: I64, device: Context) -> tuple[KernelRates, float | None, float | None]:
    """Return the rates of some ops, and the mean times of a launch that bytes and FLOP alone would take."""
    work = device.work
    known = work.known[ops]
    counted = work.flop[ops] != UNKNOWN
    if not known.any():
        return KernelRates(), None, None
    moved, flop = work.moved_bytes[ops], np.where(counted, work.flop[ops], 0)
    time, total, products = int(duration[known].sum()), int(moved[known].sum()), int(flop.sum())
    gbps = device.ceilings.gbps
    memory = moved[known] / gbps if gbps else None
    compute = _compute_times(ops, flop, device)[known]
    # No FLOP take no time at any peak; that alone is no speed of light.
    has_compute = counted.any() and np.isfinite(compute).all() and (memory is not None or products > 0)
    sol = _speed_of_light(memory, compute if has_compute else None)
    product_time = int(duration[counted].sum())
    tflops = products / product_time / 1e3 if counted.any() and product_time else None
    largest = _largest(ops, device)
    count = int(known.sum())
    rates = KernelRates(
        moved_bytes=total,
        bytes_source="+".join(dict.fromkeys(work.works[index].source for index in indices(ops[known], device))),
        assumption=largest.assumption,
        covered_launches=count,
        achieved_gbps=total / time if time else None,
        peak_frac=total / time / gbps if gbps and time else None,
        flop=products if counted.any() else None,
        achieved_tflops=tflops,
        compute_peak_frac=float(compute.sum() / time) if has_compute and time and products else None,
        flop_per_byte=products / total if counted.any() and total else None,
        sol_ns=None if sol is None else float(sol.mean()),
        sol_frac=None if sol is None or not time else float(sol.sum() / time),
        memory_level=_level(ops, duration, device),
    )
    memory_ns = None if memory is None else float(memory.mean())
    return rates, memory_ns, float(compute.mean()) if has_compute else None


def _no_peak(rates: KernelRates, memory_ns: float | None, compute_ns: float | None) -> tuple[str, ...]:
    """Return what is counted of a launch but has no known peak."""
    counted = (("bytes", rates.moved_bytes, memory_ns), ("FLOP", rates.flop, compute_ns))
    return tuple(what for what, count, time_ns in counted if count and time_ns is None)


def _compute_times(ops: I64, flop: I64, device: Context) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the ns that the FLOP of each op take at the peak of its data type; infinite where that is not known."""
    peak = np.array([device.tflops(work) or 0.0 for work in device.work.works] or [0.0])
    rate = peak[np.maximum(device.work.work[ops], 0)] * 1e3
    with np.errstate(divide="ignore", invalid="ignore"):
        time = np.where(flop == 0, 0.0, flop / rate)
    return np.asarray(time, np.float64)


def _speed_of_light(
    memory: np.ndarray[tuple[int], np.dtype[np.float64]] | None,
    compute: np.ndarray[tuple[int], np.dtype[np.float64]] | None,
) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    if memory is None or compute is None:
        return compute if memory is None else memory
    return np.maximum(memory, compute)


def _largest(ops: I64, device: Context) -> Work:
    """Return the piece of work with most of a row's bytes."""
    index = device.work.work[ops]
    known = index != UNKNOWN
    moved = np.bincount(index[known], weights=device.work.moved_bytes[ops][known])
    return device.work.works[int(moved.argmax()) if moved.any() else int(index[known][0])]


def _role(ops: I64, device: Context) -> str | None:
    numbers = dict.fromkeys(device.work.role[ops].tolist())
    named = [device.work.roles[number] for number in numbers if number != UNKNOWN]
    return " ".join(named) if named else None


def _level(ops: I64, duration: I64, device: Context) -> MemoryLevel | None:
    """Return where the bytes of most of a row's time come from."""
    work, time = device.work, dict[MemoryLevel | None, int]()
    columns = (work.work[ops], work.read_bytes[ops], work.write_bytes[ops], duration)
    for index, read, write, spent in zip(*(column.tolist() for column in columns), strict=True):
        if index != UNKNOWN and read + write:
            level = level_of(work.works[index], read, read + write, device.ceilings.l2_bytes)
            time[level] = time.get(level, 0) + spent
    return max(time, key=lambda level: time[level]) if time else None


def _limited(findings: Sequence[Finding]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for finding in findings:
        seen[finding.code] = seen.get(finding.code, 0) + 1
        if seen[finding.code] <= MOST_FINDINGS:
            yield finding


def _coverage(view: DeviceView, work: OpWork, chosen: I64, busy_ns: int) -> float | None:
    """Return the share of busy time in which an op with known bytes runs."""
    known = chosen[work.known[chosen]]
    covered = intervals.measure(intervals.union(view.ops.start_ns[known], view.ops.end_ns[known]))
    return covered / busy_ns if busy_ns else None


def _sources(view: DeviceView, work: OpWork, chosen: I64) -> tuple[tuple[str, int], ...]:
    """Return the op time by source of bytes, most first."""
    duration = view.ops.end_ns[chosen] - view.ops.start_ns[chosen]
    time: dict[str, int] = {}
    index = np.where(work.known[chosen], work.work[chosen], UNKNOWN)
    for piece, spent in zip(index.tolist(), duration.tolist(), strict=True):
        source = "none" if piece == UNKNOWN else str(work.works[piece].source)
        time[source] = time.get(source, 0) + spent
    return tuple(sorted(time.items(), key=lambda item: -item[1]))
