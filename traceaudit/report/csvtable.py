"""Tables as CSV: steps of a reconciliation, rows of a kernel report. Times are integer ns, unknown is empty.

The last column of each row is the verdict on the trace, since rows of a table have no other place for a mark.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import fields
from io import StringIO
from typing import TYPE_CHECKING

from traceaudit.report.format import plain
from traceaudit.report.kernel_words import operands_text
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.results import KernelReport, KernelRow, Reconciliation

__all__ = ["Cell", "csv_table", "kernels", "reconcile"]

Cell = str | int | float | bool | None

ACCOUNTS = ("compute", "exposed_comm", "exposed_copy", "idle_graph", "idle_latency", "idle_host", "idle_unknown")
STEP_COLUMNS = (
    "rank",
    "device",
    "index",
    "name",
    "kind",
    "batch",
    "tokens",
    "start_ns",
    "window_ns",
    "device_ops",
    "op_time_ns",
    "own_busy_ns",
    "used",
    "left_out",
    *(f"{name}_ns" for name in ACCOUNTS),
    "verdict",
)
KERNEL_COLUMNS = (
    "rank",
    "device",
    "name",
    "kind",
    "rule",
    "launches",
    "op_time_ns",
    "share_of_op_time_frac",
    "mean_ns",
    "min_ns",
    "p50_ns",
    "max_ns",
    "grid",
    "block",
    "blocks_per_sm",
    "flags",
    "short_name",
    "op",
    "site",
    "role",
    "launches_per_step",
    "per_step_ns",
    "share_of_busy_frac",
    "share_of_wall_frac",
    "p99_ns",
    "waves",
    "idle_slots_frac",
    "registers",
    "shared_mem_bytes",
    "core",
    "moved_bytes",
    "bytes_source",
    "bytes_assumption",
    "covered_launches",
    "achieved_gbps",
    "peak_frac",
    "memory_level",
    "flop",
    "achieved_tflops",
    "compute_peak_frac",
    "flop_per_byte",
    "sol_ns",
    "sol_frac",
    "bound",
    "bound_rule",
    "save_ns",
    "grids",
    "operands",
    "copied_bytes",
    "verdict",
)


def reconcile(result: "Reconciliation", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write the steps of all devices."""
    return csv_table(
        STEP_COLUMNS,
        (
            (
                device.rank,
                device.device,
                item.index,
                item.name,
                str(item.kind),
                item.batch,
                item.tokens,
                item.start_ns,
                item.window_ns,
                item.device_ops,
                item.op_time_ns,
                item.own_busy_ns,
                item.used,
                item.left_out,
                *(getattr(item.accounts, part.name) for part in fields(item.accounts)),
                str(result.completeness.verdict),
            )
            for device in result.devices
            for item in device.steps.items
        ),
    )


def kernels(result: "KernelReport", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001
    """Write the kernels of all devices."""
    return csv_table(
        KERNEL_COLUMNS,
        (
            (
                device.rank,
                device.device,
                row.name,
                row.kind,
                row.rule,
                row.launches,
                row.op_time_ns,
                row.share_of_op_time_frac,
                row.mean_ns,
                row.min_ns,
                row.p50_ns,
                row.max_ns,
                _shape(row.grid),
                _shape(row.block),
                row.blocks_per_sm,
                " ".join(row.flags),
                *_rates(row),
                str(result.completeness.verdict),
            )
            for device in result.devices
            for row in device.kernels
        ),
    )


def _rates(row: "KernelRow") -> tuple[Cell, ...]:
    rates, fill = row.rates, row.fill
    return (
        row.shown_name,
        row.op,
        row.site,
        row.role,
        row.launches_per_step,
        row.per_step_ns,
        row.share_of_busy_frac,
        row.share_of_wall_frac,
        row.p99_ns,
        fill.waves,
        fill.idle_slots_frac,
        fill.registers,
        fill.shared_mem_bytes,
        fill.core,
        rates.moved_bytes,
        rates.bytes_source,
        rates.assumption or None,
        rates.covered_launches,
        rates.achieved_gbps,
        rates.peak_frac,
        None if rates.memory_level is None else str(rates.memory_level),
        rates.flop,
        rates.achieved_tflops,
        rates.compute_peak_frac,
        rates.flop_per_byte,
        rates.sol_ns,
        rates.sol_frac,
        None if row.bound is None else str(row.bound),
        row.bound_rule or None,
        row.save_ns,
        row.grids,
        None if row.operands is None else operands_text(row.operands, strides=True),
        row.copied_bytes,
    )


def csv_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Write a table with a heading; text is made safe for terminals and spreadsheets."""
    target = StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return target.getvalue()


def _cell(cell: Cell) -> Cell:
    """Keep numbers; make text safe for spreadsheets, which take a leading =, +, -, @ as a formula."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str):
        return cell
    text = plain(cell)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _shape(sizes: Sequence[int] | None) -> str | None:
    return None if sizes is None else "x".join(str(size) for size in sizes)
