"""`whatif` on a terminal: what the step becomes, the naive bound, and what removing each kernel would save."""

from typing import TYPE_CHECKING

from traceaudit.report.format import percent, scale_for
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.terminal.canvas import LEAST_NAME, Canvas, Column
from traceaudit.report.terminal.verdict import add_title, add_verdict
from traceaudit.report.whatif_words import GAINS, headline, mark_of, remarks

if TYPE_CHECKING:
    from traceaudit.model.results.whatif import DeviceWhatIf, WhatIf

__all__ = ["whatif"]


def whatif(result: "WhatIf", page: Page = PLAIN_PAGE) -> str:
    """Write a prediction."""
    canvas = Canvas(page)
    add_title(canvas, "whatif", result.path, result.sources)
    add_verdict(canvas, result.completeness)
    for device in result.devices:
        _device(canvas, device, mark_of(result.completeness, device))
    return canvas.text()


def _device(canvas: Canvas, device: "DeviceWhatIf", mark: str) -> None:
    canvas.heading("Step", headline(device, mark))
    canvas.paragraph((f"rank {device.rank}, device {device.device}, {device.name or 'unknown device'}", ""), indent=2)
    for text in remarks(device, mark):
        canvas.paragraph(("- " + text, ""), indent=2, hang=2)
    if not device.kernels:
        return
    scale = scale_for(max(row.op_time_ns for row in device.kernels))
    canvas.heading("Best possible gain per kernel", f"{scale.unit} a step; {GAINS}; naive: its op time")
    columns = [
        Column("save", right=True),
        Column("of step", right=True),
        Column("with launch", right=True),
        Column("of step", right=True),
        Column("naive", right=True),
        Column("name", flexible=True, least=LEAST_NAME),
    ]
    canvas.table(
        columns,
        [
            [
                scale.text(row.save_ns) + mark,
                percent(row.save_ns, device.baseline_ns) + mark,
                scale.text(row.save_with_launch_ns) + mark,
                percent(row.save_with_launch_ns, device.baseline_ns) + mark,
                scale.text(row.naive_save_ns),
                device.shown(row.name),
            ]
            for row in device.kernels
        ],
    )
