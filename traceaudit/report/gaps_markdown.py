"""`gaps` as Markdown, for a comment."""

from typing import TYPE_CHECKING

from traceaudit.report.format import duration, percent, scale_for
from traceaudit.report.gaps_table import MOST_ROWS, neighbours
from traceaudit.report.gaps_words import CAUSES, host_rows, mark_of, remarks, verdict_line
from traceaudit.report.markdown import code, escape, head, markdown_table
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.results.gaps import DeviceGaps, GapReport

__all__ = ["gaps"]


def gaps(result: "GapReport", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a gap report."""
    lines = head("gaps", result.path, result.completeness)
    for device in result.devices:
        lines += _device(device, mark_of(result.completeness, device))
    return "\n".join(lines).rstrip() + "\n"


def _device(device: "DeviceGaps", mark: str) -> list[str]:
    steps = max(device.steps_used, 1)
    where = f"rank {device.rank}, device {device.device}, {device.name or 'unknown device'}"
    idle = duration(device.idle_ns / steps)
    rows = [
        [
            duration(row.per_step_ns) + mark,
            percent(row.total_ns, device.idle_ns) + mark,
            f"{row.count / steps:,.3g}",
            duration(row.median_ns),
            duration(row.p90_ns),
            CAUSES[row.cause],
            code(" ".join(neighbours(device, row))),
        ]
        for row in device.gaps[:MOST_ROWS]
    ]
    return [
        f"**{escape(verdict_line(device, mark))}**",
        "",
        escape(f"{where}; window {duration(device.window_ns / steps)}, idle {idle}{mark} a step"),
        "",
        *(f"- {escape(text)}" for text in remarks(device, mark)),
        "",
        *markdown_table(["a step", "of idle", "count", "median", "p90", "cause", "between"], "rrrrrll", rows),
        *_host(device, mark),
    ]


def _host(device: "DeviceGaps", mark: str) -> list[str]:
    interval_ns = device.host.interval_ns / max(device.steps_used, 1)
    scale = scale_for(interval_ns)
    rows = [[total, exposed, escape(activity)] for total, exposed, activity in host_rows(device, scale, mark)]
    if not rows:
        return []
    heading = f"Host thread {device.host.thread}, {duration(interval_ns)} a step in {scale.unit}"
    lines = [f"{escape(heading)}; exposed: while the device waits for it", ""]
    return [*lines, *markdown_table(["total", "exposed", "activity"], "rrl", rows)]
