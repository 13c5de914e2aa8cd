"""`reconcile` on a terminal: the verdict, the waterfall, what to act on, the steps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traceaudit.model.findings import Verdict
from traceaudit.report.format import DOUBT, Scale, count_text, duration, scale_for
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.remarks import left_out, remarks, steps_text, totals_text
from traceaudit.report.terminal.bars import add_section
from traceaudit.report.terminal.canvas import Canvas, Column
from traceaudit.report.terminal.verdict import add_title, add_verdict
from traceaudit.report.waterfall import Section, doubted, sections

if TYPE_CHECKING:
    from traceaudit.model.results import Completeness, DeviceAudit, Reconciliation, StepItem

__all__ = ["reconcile"]

STEPS_MOST = 14
FULL_DEVICES = 2


def reconcile(result: "Reconciliation", page: Page = PLAIN_PAGE) -> str:
    """Write a reconciliation."""
    canvas = Canvas(page)
    unreliable = result.completeness.verdict is Verdict.UNRELIABLE
    add_title(canvas, "reconcile", result.path, result.sources)
    add_verdict(canvas, result.completeness)
    if len(result.devices) > 1:
        _comparison(canvas, result.devices, unreliable=unreliable)
    for device in _worth_a_block(result.devices):
        _device(canvas, device, result.completeness)
    if len(result.devices) > FULL_DEVICES:
        canvas.blank()
        canvas.paragraph(
            ("Shown in full: the device with the longest step; --rank and --device show any other.", "dim")
        )
    return canvas.text()


def _worth_a_block(devices: "Sequence[DeviceAudit]") -> "Sequence[DeviceAudit]":
    if len(devices) <= FULL_DEVICES:
        return devices
    return [max(devices, key=lambda device: device.step.window_ns)]


def _comparison(canvas: Canvas, devices: "Sequence[DeviceAudit]", *, unreliable: bool) -> None:
    scale = scale_for(max(device.step.window_ns for device in devices))
    canvas.heading("Devices", f"mean step, {scale.unit}")
    canvas.table(
        [
            Column("rank", right=True),
            Column("device", right=True),
            Column("name", flexible=True),
            Column("steps", right=True),
            *(Column(name, right=True) for name in ("window", "compute", "comm", "copy", "idle", "host cost")),
        ],
        [_compared(device, scale, _marks(device, unreliable=unreliable)) for device in devices],
    )


def _compared(device: "DeviceAudit", scale: Scale, marks: tuple[str, str]) -> list[str]:
    ledger = device.ledger
    times = (
        ledger.accounts.compute,
        ledger.accounts.exposed_comm,
        ledger.accounts.exposed_copy,
        ledger.accounts.idle,
        ledger.host_cost_ns,
    )
    cells = [scale.text(time_ns / ledger.steps) if ledger.steps else "-" for time_ns in times]
    cells = [cell + mark for cell, mark in zip(cells, (marks[0],) * 3 + (marks[1],) * 2, strict=True)]
    name = device.name or "unknown"
    return [f"{device.rank}", f"{device.device}", name, f"{ledger.steps:,}", scale.text(device.step.window_ns), *cells]


def _device(canvas: Canvas, device: "DeviceAudit", completeness: "Completeness") -> None:
    unreliable = completeness.verdict is Verdict.UNRELIABLE
    where = f"rank {device.rank}, device {device.device}, {device.name or 'unknown device'}"
    canvas.heading("Step", steps_text(device))
    wall = f"wall from {device.step.wall_source}" if device.step.wall_source else "no wall given (--wall-ms)"
    canvas.paragraph((f"{where}; {wall}", "dim"), indent=2)
    canvas.paragraph((totals_text(device.totals, doubtful=unreliable or doubted(device, "busy_ns")), "dim"), indent=2)
    layout = sections(device, unreliable=unreliable)
    for section in layout:
        canvas.blank()
        add_section(canvas, section, alone=len(layout) == 1)
    _footnotes(canvas, device, layout)
    texts = remarks(device, completeness)
    if texts:
        canvas.heading("What decides")
        for text in texts:
            canvas.paragraph(("- ", "bold"), (text, ""), indent=2, hang=2)
    _steps(canvas, device, _marks(device, unreliable=unreliable))


def _footnotes(canvas: Canvas, device: "DeviceAudit", layout: Sequence[Section]) -> None:
    if device.resolution_error_ns:
        error = duration(device.resolution_error_ns)
        step = device.step
        text = (
            f"times are coarse: busy {duration(step.busy_ns)} ± {error}, idle {duration(step.idle_ns)} ± {error} a step"
        )
        canvas.line((text, "dim"), indent=2)
    if any(line.share_doubtful for section in layout for line in section.lines):
        text = f"{DOUBT} the findings above make these numbers doubtful"
        canvas.line((text, "dim"), indent=2)


def _marks(device: "DeviceAudit", *, unreliable: bool) -> tuple[str, str]:
    """Return what follows the device's busy and idle times."""
    return (
        DOUBT if unreliable or doubted(device, "busy_ns") else "",
        DOUBT if unreliable or doubted(device, "idle_ns") else "",
    )


def _steps(canvas: Canvas, device: "DeviceAudit", marks: tuple[str, str]) -> None:
    items = device.steps.items
    if not items:
        return
    scale = scale_for(max(item.window_ns for item in items))
    shown, hidden = _selected(items)
    canvas.heading("Steps", f"in {scale.unit}")
    canvas.table(
        [
            Column("#", right=True),
            Column("name", flexible=True),
            Column("kind"),
            Column("batch", right=True),
            Column("window", right=True),
            Column("busy", right=True),
            Column("idle", right=True),
            Column("ops", right=True),
            Column("used"),
        ],
        [_step_row(item, scale, marks) for item in shown],
    )
    if hidden:
        text = f"{count_text(len(hidden), 'more step')}, all used, none longer; --format csv lists them"
        canvas.paragraph((text, "dim"), indent=2)
    for reason, indices in left_out(items).items():
        canvas.paragraph((f"left out: {indices}: {reason}", "dim"), indent=2, hang=2)


def _selected(items: "Sequence[StepItem]") -> "tuple[list[StepItem], list[StepItem]]":
    """Choose the steps to print: all, or those left out, the longest used one and the first ones."""
    if len(items) <= STEPS_MOST:
        return list(items), []
    used = [item for item in items if item.used]
    keep = {item.index for item in items if not item.used} | {item.index for item in used[: STEPS_MOST // 2]}
    keep |= {max(used, key=lambda item: item.window_ns).index} if used else set()
    return [item for item in items if item.index in keep], [item for item in items if item.index not in keep]


def _step_row(item: "StepItem", scale: Scale, marks: tuple[str, str]) -> list[str]:
    return [
        f"{item.index}",
        item.name or "-",
        str(item.kind),
        "-" if item.batch is None else f"{item.batch:,}",
        scale.text(item.window_ns),
        scale.text(item.accounts.busy) + marks[0],
        scale.text(item.accounts.idle) + marks[1],
        f"{item.device_ops:,}",
        "yes" if item.used else "no",
    ]
