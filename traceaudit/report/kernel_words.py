"""Sentences and cells of a kernel report that several renderers share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traceaudit.report.format import count_text, percent

if TYPE_CHECKING:
    from traceaudit.model.results.kernels import DeviceKernels, KernelRow

__all__ = [
    "bound_text",
    "ceiling_text",
    "coverage_text",
    "grid_text",
    "marks_text",
    "name_text",
    "notes_of",
    "peak_text",
    "rate_text",
    "scope_text",
]

WHOLE = 100
CACHE = "L2"
MARK = "!"
_MARKS = {
    "underfilled_grid": "fewer blocks than multiprocessors",
    "re_reads": "the same keys and values read once for each query head",
    "over_peak": "above the device's peak, which no cache explains: the bytes are wrong",
    "cache_resident": "above memory bandwidth, out of cache",
}

_GRID_MARKS = {"underfilled_grid", "re_reads"}


def scope_text(device: "DeviceKernels") -> str:
    """Say what is of the whole trace, and what is a mean of the used steps."""
    if device.steps is None:
        return "time, share and launches are of the whole trace; no step is used, so nothing is known of a step"
    steps = count_text(device.steps, "used step")
    return f"time, share and launches are of the whole trace; a step is the mean of {steps}, ops outside left out"


def coverage_text(device: "DeviceKernels") -> str:
    """Say for how much of the busy time bytes are known, and who says so."""
    total = sum(time for _, time in device.sources)
    parts = [f"{source} {percent(time, total)}" for source, time in device.sources if source != "none"]
    if device.covered_busy_frac is None or not parts:
        return "bytes are known for no kernel: --shapes-from TRACE, --model or --spec say what kernels move"
    covered = percent(device.covered_busy_frac, 1)
    return f"bytes are known for {covered} of busy time ({', '.join(parts)} of op time)"


def ceiling_text(device: "DeviceKernels") -> str:
    """Say what rates are held against."""
    ceilings = device.ceilings
    if ceilings.gbps is None:
        return f"no peak: {ceilings.missing}" if ceilings.missing else "no peak given"
    source = (ceilings.gbps_source or "").partition(": ")[0]  # behind it stands where the table has it from
    return f"peak {ceilings.gbps:,.0f} GB/s ({source}{', uncertain' if ceilings.uncertain else ''})"


def notes_of(device: "DeviceKernels") -> tuple[str, ...]:
    """Return what else a reader must know: how bytes came to kernels without shapes, and what lives in cache."""
    notes = list(device.notes)
    cached = [row for row in device.kernels if str(row.rates.memory_level) == "l2"]
    share = sum(row.share_of_op_time_frac for row in cached)
    if cached:
        notes.append(
            f"{percent(share, 1)} of the op time is in kernels whose bytes live in {CACHE}: their rates say nothing of "
            "memory bandwidth, and they are slow for other reasons"
        )
    return tuple(notes)


def rate_text(row: "KernelRow") -> str:
    """Write a rate in GB/s."""
    rate = row.rates.achieved_gbps
    if rate is None:
        return "-"
    return f"{rate:,.0f}" if rate >= WHOLE else f"{rate:.1f}"


def peak_text(row: "KernelRow") -> str:
    """Write a rate as a share of the peak, with a mark where a finding doubts it."""
    share = row.rates.peak_frac
    if share is None:
        return "-"
    return f"{share * 100:.1f}%" + (MARK if {"over_peak", "cache_resident"} & set(row.flags) else "")


def bound_text(row: "KernelRow") -> str:
    """Write what limits a kernel, and whether its bytes live in cache."""
    parts = [str(row.bound)] if row.bound is not None else []
    if str(row.rates.memory_level) == "l2":
        parts.append(CACHE)
    return " ".join(parts) or "-"


def grid_text(row: "KernelRow") -> str:
    """Write a grid."""
    if row.grid is None:
        return "-"
    return "x".join(str(size) for size in row.grid) + (MARK if _GRID_MARKS & set(row.flags) else "")


def marks_text(rows: "Sequence[KernelRow]") -> str:
    """Say what the marks in a table mean, empty where there are none."""
    flags = {flag for row in rows for flag in row.flags}
    meant = [f"{code}, {text}" for code, text in _MARKS.items() if code in flags]
    return f"{MARK} {'; '.join(meant)}" if meant else ""


def name_text(row: "KernelRow") -> str:
    """Write a kernel's role and short name, with the flags that no other cell shows."""
    flags = [flag for flag in row.flags if flag not in _MARKS]
    role = f"{row.role}: " if row.role else ""
    return role + row.shown_name + (f" [{', '.join(flags)}]" if flags else "")
