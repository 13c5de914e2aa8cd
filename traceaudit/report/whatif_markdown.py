"""`whatif` as Markdown, for a comment."""

from typing import TYPE_CHECKING

from traceaudit.report.format import duration, percent
from traceaudit.report.markdown import code, escape, head, markdown_table
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.whatif_words import GAINS, headline, mark_of, remarks

if TYPE_CHECKING:
    from traceaudit.model.results.whatif import DeviceWhatIf, WhatIf

__all__ = ["whatif"]


def whatif(result: "WhatIf", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a prediction."""
    lines = head("whatif", result.path, result.completeness)
    for device in result.devices:
        lines += _device(device, mark_of(result.completeness, device))
    return "\n".join(lines).rstrip() + "\n"


def _device(device: "DeviceWhatIf", mark: str) -> list[str]:
    rows = [
        [
            duration(row.save_ns) + mark,
            percent(row.save_ns, device.baseline_ns) + mark,
            duration(row.save_with_launch_ns) + mark,
            percent(row.save_with_launch_ns, device.baseline_ns) + mark,
            duration(row.naive_save_ns),
            code(device.shown(row.name)),
        ]
        for row in device.kernels
    ]
    return [
        f"**{escape(headline(device, mark))}**",
        "",
        *(f"- {escape(text)}" for text in remarks(device, mark)),
        "",
        f"Best possible gain per kernel; {GAINS}; naive: its op time.",
        "",
        *markdown_table(["save", "of step", "with launch", "of step", "naive", "kernel"], "rrrrrl", rows),
    ]
