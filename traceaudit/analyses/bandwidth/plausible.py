"""Rates that cannot be true, rates that a cache explains, and kernels that leave the device unfilled."""

from collections.abc import Iterator

import numpy as np

from traceaudit.analyses.bandwidth.context import Context, indices
from traceaudit.analyses.bandwidth.judge import NEAR, Facts, doubt_of, fits_in_cache
from traceaudit.model.bytes.work import Work
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.results.kernels import KernelRates, KernelRow
from traceaudit.model.schema import I64

__all__ = ["impossible", "starved"]

COMPUTE_SLACK = 1.10
"""Matrix peaks are stated at a clock that short kernels can exceed."""


def impossible(row: KernelRow, ops: I64, duration: I64, device: Context) -> Iterator[Finding]:
    """Yield findings on rates above peak; launches of one shape are judged together."""
    gbps = device.ceilings.gbps
    if gbps is None:
        return
    worst: dict[str, tuple[float, Finding]] = {}
    for index in indices(ops, device):
        own = device.work.work[ops] == index
        work = device.work.works[index]
        moved, count = int(device.work.moved_bytes[ops[own]].sum()), int(own.sum())
        time = int(duration[own].sum()) + count * device.resolution_ns
        share = moved / time / gbps if time else 0.0
        tflops = device.tflops(work)
        flop = int(np.maximum(device.work.flop[ops[own]], 0).sum())
        compute = flop / time / 1e3 / tflops if time and tflops else 0.0
        if share <= 1 and compute <= COMPUTE_SLACK:
            continue
        cached = (
            share > 1
            and compute <= COMPUTE_SLACK
            and fits_in_cache(work, moved // count, count, count / device.steps, device.ceilings.l2_bytes)
        )
        found = _cached(row, moved // count, share, device) if cached else _over(row, work, share, compute, device)
        ratio = max(share, compute)
        if found.code not in worst or ratio > worst[found.code][0]:
            worst[found.code] = (ratio, found)
    yield from (found for _, found in worst.values())


def _cached(row: KernelRow, moved: int, share: float, device: Context) -> Finding:
    l2 = device.ceilings.l2_bytes or 0
    return Finding(
        "cache_resident",
        Severity.INFO,
        f"{row.shown_name} runs at {share:.0%} of memory bandwidth: its {moved / 1e6:.1f} MB fit in {l2 / 1e6:.0f} MB "
        "of cache and are used again",
        "its bytes do not come from memory: the rate says nothing of memory bandwidth",
        count=row.launches,
        impact_ns=row.op_time_ns,
        rank=device.view.rank,
        device=device.view.device,
    )


def _over(row: KernelRow, work: Work, share: float, compute: float, device: Context) -> Finding:
    if share > 1:
        what = f"{share:.0%} of memory bandwidth ({device.ceilings.gbps:,.0f} GB/s), which no cache explains"
        why = f"most likely false: {doubt_of(work)}"
    else:
        what = f"{compute:.0%} of the compute peak for {work.dtype}"
        why = "most likely false: the FLOP count, or the data type that the units work in"
    return Finding(
        "over_peak",
        Severity.WARNING,
        f"{row.shown_name} would run at {what}: the bytes (source {work.source}) or the duration are wrong",
        why,
        count=row.launches,
        impact_ns=row.op_time_ns,
        rank=device.view.rank,
        device=device.view.device,
    )


def starved(row: KernelRow, facts: Facts, rates: KernelRates, device: Context) -> Finding:
    """Return the finding on a kernel with fewer blocks than multiprocessors."""
    half = 2 * (facts.blocks or 0) <= (facts.sms or 0)
    slow = rates.sol_frac is None or rates.sol_frac < NEAR
    rate = "" if rates.achieved_gbps is None else f", {rates.achieved_gbps:,.1f} GB/s"
    return Finding(
        "underfilled_grid",
        Severity.WARNING if half and slow else Severity.INFO,
        f"{row.shown_name} launches {facts.blocks} blocks on {facts.sms} multiprocessors{rate}, with "
        f"{row.share_of_op_time_frac:.0%} of the op time",
        "split its work over more blocks (split-K, split-KV): the others have nothing to do for the whole kernel",
        count=row.launches,
        impact_ns=row.op_time_ns,
        rank=device.view.rank,
        device=device.view.device,
    )
