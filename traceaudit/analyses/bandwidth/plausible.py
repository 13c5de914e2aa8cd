"""Rates that cannot be true, rates that a cache explains, and kernels that leave the device unfilled."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceaudit.analyses.bandwidth.context import Context, indices
from traceaudit.analyses.bandwidth.judge import NEAR, doubt_of, fits_in_cache
from traceaudit.model.bytes.kernelclass import KernelClass, kernel_class
from traceaudit.model.bytes.work import Work
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.results.kernels import KernelRates, KernelRow
from traceaudit.model.schema import I64

__all__ = ["Underfilled", "impossible", "starved"]

_SPLIT = re.compile(r"(?i)split_?kv?|stream_?k")
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


@dataclass(frozen=True, slots=True)
class Underfilled:
    """Launches of a row with fewer blocks than multiprocessors.

    Attributes
    ----------
    blocks
        Blocks of each of their grids, most op time first.
    launches
        How many they are.
    share
        Their share of the device's op time.
    gain_ns
        The most that filling the device could win.
    rates
        How fast they are.
    """

    blocks: tuple[int, ...]
    launches: int
    share: float
    gain_ns: int
    rates: KernelRates


def starved(row: KernelRow, few: Underfilled, device: Context) -> Finding:
    """Return the finding on launches with fewer blocks than multiprocessors."""
    sms = device.sms or 0
    half = 2 * few.blocks[0] <= sms
    slow = few.rates.sol_frac is None or few.rates.sol_frac < NEAR
    rate = "" if few.rates.achieved_gbps is None else f", {few.rates.achieved_gbps:,.1f} GB/s"
    least, most = min(few.blocks), max(few.blocks)
    blocks = f"{least}" if least == most else f"{least} to {most}"
    part = "" if few.launches == row.launches else f" in {few.launches:,} of {row.launches:,} launches"
    empty = 1 - few.blocks[0] / sms if sms else 0.0
    return Finding(
        "underfilled_grid",
        Severity.WARNING if half and slow else Severity.INFO,
        f"{row.shown_name} launches {blocks} blocks on {sms} multiprocessors{part}{rate}, with "
        f"{few.share:.0%} of the op time",
        f"{_remedy(row.name)}: {empty:.0%} of the multiprocessors have nothing to do while it runs, and filling them "
        "alone wins at most that share of its time",
        count=few.launches,
        impact_ns=few.gain_ns,
        rank=device.view.rank,
        device=device.view.device,
    )


def _remedy(name: str) -> str:
    """Say how a kernel of this kind gets more blocks."""
    split = _SPLIT.search(name) is not None
    kind = kernel_class(name)
    if kind is KernelClass.ATTENTION:
        return "more splits of the cache, or smaller tiles" if split else "split the cache over more blocks (split-KV)"
    if kind in {KernelClass.GEMM, KernelClass.EXPERTS}:
        return "more splits along K, or smaller tiles" if split else "split-K or stream-K, or smaller tiles"
    return "spread its work over more blocks"
