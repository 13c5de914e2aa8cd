"""`kernels` on a terminal: the verdict, then one table a device."""

from typing import TYPE_CHECKING

from traceaudit.model.findings import Verdict
from traceaudit.report.format import DOUBT, count_text, duration, percent, scale_for
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.terminal.canvas import Canvas, Column
from traceaudit.report.terminal.verdict import add_title, add_verdict

if TYPE_CHECKING:
    from traceaudit.model.results import DeviceKernels, KernelReport, KernelRow

__all__ = ["kernels"]

MOST_ROWS = 25


def kernels(result: "KernelReport", page: Page = PLAIN_PAGE) -> str:
    """Write a kernel report."""
    canvas = Canvas(page)
    add_title(canvas, "kernels", result.path, result.sources)
    add_verdict(canvas, result.completeness)
    for device in result.devices:
        _device(canvas, device, mark=DOUBT if result.completeness.verdict is Verdict.UNRELIABLE else "")
    return canvas.text()


def _device(canvas: Canvas, device: "DeviceKernels", *, mark: str) -> None:
    where = f"rank {device.rank}, device {device.device}, {device.name or 'unknown device'}"
    launches = count_text(sum(row.launches for row in device.kernels), "launch", "launches")
    canvas.heading(
        "Kernels",
        f"{where}: op time {duration(device.op_time_ns)}{mark} in {launches}, busy {duration(device.busy_ns)}{mark}",
    )
    shown, rest = device.kernels[:MOST_ROWS], device.kernels[MOST_ROWS:]
    if not shown:
        canvas.line(("no device ops", "dim"), indent=2)
        return
    total, each = scale_for(max(row.op_time_ns for row in shown)), scale_for(max(row.mean_ns for row in shown))
    canvas.table(
        [
            Column(f"{total.unit}", right=True),
            Column("share", right=True),
            Column("launches", right=True),
            Column(f"mean {each.unit}", right=True),
            Column("max", right=True),
            Column("kind"),
            Column("grid", right=True),
            Column("name", flexible=True),
        ],
        [
            [
                total.text(row.op_time_ns),
                percent(row.share_of_op_time_frac, 1) + mark,
                f"{row.launches:,}",
                each.text(row.mean_ns),
                each.text(row.max_ns),
                row.kind,
                _grid(row),
                row.name + (f" [{', '.join(row.flags)}]" if row.flags else ""),
            ]
            for row in shown
        ],
    )
    if rest:
        time = duration(sum(row.op_time_ns for row in rest))
        text = f"{count_text(len(rest), 'more kernel')} with {time} of op time; --format csv lists them"
        canvas.paragraph((text, "dim"), indent=2)


def _grid(row: "KernelRow") -> str:
    return "-" if row.grid is None else "x".join(str(size) for size in row.grid)
