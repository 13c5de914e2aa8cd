"""`gaps` on a terminal: the verdict, what bounds the steps, and the gaps worth closing first."""

from typing import TYPE_CHECKING

from traceaudit.report.format import count_text, duration, percent, scale_for
from traceaudit.report.gaps_words import ACTIVITIES, CAUSES, mark_of, remarks, verdict_line
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.terminal.canvas import Canvas, Column
from traceaudit.report.terminal.verdict import add_title, add_verdict

if TYPE_CHECKING:
    from traceaudit.model.results.gaps import DeviceGaps, GapReport, GapRow

__all__ = ["MOST_ROWS", "gaps", "neighbours"]

MOST_ROWS = 12


def gaps(result: "GapReport", page: Page = PLAIN_PAGE) -> str:
    """Write a gap report."""
    canvas = Canvas(page)
    add_title(canvas, "gaps", result.path, result.sources)
    add_verdict(canvas, result.completeness)
    for device in result.devices:
        _device(canvas, device, mark_of(result.completeness, device))
    return canvas.text()


def _device(canvas: Canvas, device: "DeviceGaps", mark: str) -> None:
    steps = max(device.steps_used, 1)
    where = f"rank {device.rank}, device {device.device}, {device.name or 'unknown device'}"
    canvas.heading("Bound", verdict_line(device, mark))
    canvas.paragraph(
        (f"{where}; mean of {count_text(steps, 'step')}; window {duration(device.window_ns / steps)}, idle ", ""),
        (f"{duration(device.idle_ns / steps)}{mark} a step", ""),
        indent=2,
    )
    for text in remarks(device, mark):
        canvas.paragraph(("- " + text, ""), indent=2, hang=2)
    _gap_table(canvas, device, mark)
    _host_table(canvas, device, mark)


def _gap_table(canvas: Canvas, device: "DeviceGaps", mark: str) -> None:
    shown, rest = device.gaps[:MOST_ROWS], device.gaps[MOST_ROWS:]
    if not shown:
        canvas.heading("Gaps", "none: the device never waits")
        return
    steps = max(device.steps_used, 1)
    scale = scale_for(shown[0].per_step_ns)
    canvas.heading("Gaps", f"per step, in {scale.unit}; the same gap of every step is one row")
    columns = [
        Column("a step", right=True),
        Column("idle", right=True),
        Column("count", right=True),
        Column("median", right=True),
        Column("max", right=True),
        Column("cause"),
        Column("between", flexible=True),
    ]
    canvas.table(
        columns,
        [
            [
                scale.text(row.per_step_ns) + mark,
                percent(row.total_ns, device.idle_ns) + mark,
                f"{row.count / steps:,.3g}",
                scale.text(row.median_ns),
                scale.text(row.max_ns),
                CAUSES[row.cause],
                neighbours(row),
            ]
            for row in shown
        ],
    )
    for row in shown[:3]:
        if row.where:
            canvas.paragraph(
                (f"{scale.text(row.per_step_ns)} {scale.unit}: ", "dim"), (row.where, "dim"), indent=2, hang=2
            )
    if rest:
        time = duration(sum(row.total_ns for row in rest) / steps)
        canvas.paragraph((f"{len(rest)} more rows with {time} a step; --format csv lists them", "dim"), indent=2)


def neighbours(row: "GapRow") -> str:
    """Name what lies on either side of a gap."""
    if row.position == "leading":
        return f"step start → {row.after or 'no op'}"
    if row.position == "trailing":
        return f"{row.before or 'no op'} → step end"
    return f"{row.before or 'no op'} → {row.after or 'no op'}"


def _host_table(canvas: Canvas, device: "DeviceGaps", mark: str) -> None:
    steps = max(device.steps_used, 1)
    shares = [(name, share) for name, share in device.host.shares.items() if share.total_ns]
    if not shares:
        return
    scale = scale_for(device.host.interval_ns / steps)
    canvas.heading(
        "Host",
        f"thread {device.host.thread}, {duration(device.host.interval_ns / steps)} a step in {scale.unit}; "
        "exposed: while the device waits for it",
    )
    columns = [Column("total", right=True), Column("exposed", right=True), Column("activity")]
    ranked = sorted(shares, key=lambda one: -one[1].total_ns)
    canvas.table(
        columns,
        [
            [scale.text(share.total_ns / steps), scale.text(share.exposed_ns / steps) + mark, ACTIVITIES[name]]
            for name, share in ranked
        ],
    )
