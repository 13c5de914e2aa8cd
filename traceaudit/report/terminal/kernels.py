"""`kernels` on a terminal: the verdict, then one table a device."""

from dataclasses import replace
from typing import TYPE_CHECKING

from traceaudit.model.findings import Verdict
from traceaudit.report.format import DOUBT, count_text, duration, percent, scale_for
from traceaudit.report.kernel_words import (
    bound_text,
    ceiling_text,
    coverage_text,
    grid_text,
    like_text,
    marks_text,
    name_text,
    notes_of,
    peak_text,
    rate_text,
    scope_text,
)
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.terminal.canvas import LEAST_NAME, Canvas, Column
from traceaudit.report.terminal.verdict import add_title, add_verdict

if TYPE_CHECKING:
    from traceaudit.model.results import DeviceKernels, KernelReport

__all__ = ["kernels"]

MOST_ROWS = 25
COLUMNS = (
    Column("share", right=True),
    Column("launches", right=True, drop=3),
    Column("a step", right=True),
    Column("mean", right=True, drop=4),
    Column("GB/s", right=True, drop=2),
    Column("peak", right=True),
    Column("bound", drop=6),
    Column("grid", right=True, drop=5),
)
"""On a narrow page goes first what the columns that stay still tell: the share, the time of a step, the peak."""


def kernels(result: "KernelReport", page: Page = PLAIN_PAGE) -> str:
    """Write a kernel report."""
    canvas = Canvas(page)
    add_title(canvas, "kernels", result.path, result.sources)
    add_verdict(canvas, result.completeness)
    mark = DOUBT if result.completeness.verdict is Verdict.UNRELIABLE else ""
    for device in result.devices:
        _device(canvas, device, page, mark)
    return canvas.text()


def _device(canvas: Canvas, device: "DeviceKernels", page: Page, mark: str) -> None:
    where = f"rank {device.rank}, device {device.device}, {device.name or 'unknown device'}"
    launches = count_text(sum(row.launches for row in device.kernels), "launch", "launches")
    canvas.heading(
        "Kernels",
        f"{where}: op time {duration(device.op_time_ns)}{mark} in {launches}, busy {duration(device.busy_ns)}{mark}",
    )
    if not device.kernels:
        canvas.line(("no device ops", "dim"), indent=2)
        return
    for text in (scope_text(device), coverage_text(device), ceiling_text(device), *notes_of(device)):
        canvas.paragraph((text, ""), indent=2, hang=2)
    shown, rest = device.kernels[:MOST_ROWS], device.kernels[MOST_ROWS:]
    _table(canvas, device, page, mark)
    if rest:
        time = duration(sum(row.op_time_ns for row in rest))
        text = f"{count_text(len(rest), 'more kernel')} with {time} of op time; --format csv lists them"
        canvas.paragraph((text, "dim"), indent=2)
    if page.full_names:
        canvas.blank()
        for number, row in enumerate(shown, 1):
            canvas.paragraph((f"{number:>3}  {row.name}", ""), indent=2, hang=5)


def _table(canvas: Canvas, device: "DeviceKernels", page: Page, mark: str) -> None:
    """Write the rows; gains take the place of the whole trace's op time, which share and heading still tell."""
    shown = device.kernels[:MOST_ROWS]
    total, each = scale_for(max(row.op_time_ns for row in shown)), scale_for(max(row.mean_ns for row in shown))
    step = scale_for(max(row.per_step_ns or 0.0 for row in shown))
    units = {"a step": f"{step.unit}/step", "mean": f"mean {each.unit}"}
    saved = scale_for(max((row.save_ns or 0.0 for row in shown), default=0.0))
    gains = any(row.save_ns is not None for row in shown)
    columns = [
        *([Column("#", right=True)] if page.full_names else []),
        *([] if gains else [Column(f"{total.unit}", right=True, drop=1)]),
        *(replace(column, heading=units.get(column.heading, column.heading)) for column in COLUMNS),
        *([Column(f"saves {saved.unit}", right=True)] if gains else []),
        Column("name", flexible=True, least=LEAST_NAME),
    ]
    rows = [
        [
            *([str(number)] if page.full_names else []),
            *([] if gains else [total.text(row.op_time_ns) + mark]),
            percent(row.share_of_op_time_frac, 1) + mark,
            f"{row.launches:,}",
            "-" if row.per_step_ns is None else step.text(row.per_step_ns) + mark,
            each.text(row.mean_ns),
            rate_text(row),
            peak_text(row),
            bound_text(row) if row.kind == "compute" else row.kind,
            grid_text(row),
            *(["-" if row.save_ns is None else saved.text(row.save_ns) + mark] if gains else []),
            name_text(row),
        ]
        for number, row in enumerate(shown, 1)
    ]
    canvas.table(columns, rows, below=[like_text(row, device.grouped_by) for row in shown])
    marks = marks_text(shown)
    if marks:
        canvas.paragraph((marks, "dim"), indent=2, hang=2)
