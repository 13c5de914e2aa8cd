"""Sentences and cells of a kernel report that several renderers share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traceaudit.report.format import bytes_text, count_text, percent

if TYPE_CHECKING:
    from traceaudit.model.bytes.operands import Operand
    from traceaudit.model.results.kernels import DeviceKernels, KernelRow

__all__ = [
    "LIKE",
    "bound_text",
    "ceiling_text",
    "coverage_text",
    "grid_text",
    "like_text",
    "marks_text",
    "name_text",
    "notes_of",
    "operands_text",
    "peak_text",
    "rate_text",
    "scope_text",
]

WHOLE = 100
CACHE = "L2"
MARK = "!"
_TYPES = {
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "long int": "int64",
    "int": "int32",
    "signed char": "int8",
    "unsigned char": "uint8",
    "TensorList": "",
}
_MARKS = {
    "underfilled_grid": "launches with fewer blocks than multiprocessors",
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
    """Write the grid with most time, with the number of others, and a mark where launches leave the device unfilled."""
    if row.grid is None:
        return "-"
    others = f" +{row.grids - 1}" if row.grids is not None and row.grids > 1 else ""
    return "x".join(str(size) for size in row.grid) + others + (MARK if _GRID_MARKS & set(row.flags) else "")


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


LIKE = {"shape": "op and operands", "site": "op and line of Python"}
"""Headings of `like_text`."""


def like_text(row: "KernelRow", grouped_by: str) -> str:
    """Write what the launches of a row have in common beside their name, empty where that is all."""
    if grouped_by not in LIKE:
        return ""
    if grouped_by == "site":
        return " at ".join(text for text in (row.op or "no op", row.site) if text is not None)
    parts = [row.op or "no op"]
    if row.operands is not None:
        parts.append(operands_text(row.operands, strides=row.strides_tell))
    if row.copied_bytes is not None:
        parts.append(f"of {bytes_text(row.copied_bytes)}")
    return " ".join(part for part in parts if part)


def operands_text(operands: "Sequence[Operand]", *, strides: bool = False) -> str:
    """Write tensors as type and sizes, lists in parentheses; strides stand behind a colon, scalars are left out."""
    texts = (_operand_text(operand, strides=strides) for operand in operands)
    return " ".join(text for text in texts if text)


def _operand_text(operand: "Operand", *, strides: bool) -> str:
    if operand.members:
        return f"({operands_text(operand.members, strides=strides)})"
    if operand.cut:
        return f"{_TYPES.get(operand.dtype, operand.dtype)}[…]"
    if not operand.dims:
        return ""
    text = f"{_TYPES.get(operand.dtype, operand.dtype)}[{_sizes(operand.dims)}]"
    return f"{text}:[{_sizes(operand.strides)}]" if strides and operand.strides is not None else text


def _sizes(sizes: "Sequence[int]") -> str:
    return ",".join(str(size) for size in sizes)
