"""What `calibrate` measured: as a machine file, a table, and JSON."""

import json
from typing import TYPE_CHECKING

from traceaudit.report.format import percent
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.terminal.canvas import Canvas, Column

if TYPE_CHECKING:
    from traceaudit.model.results.calibration import Calibration

__all__ = ["calibrate", "machine_toml"]


def calibrate(result: "Calibration", page: Page = PLAIN_PAGE) -> str:
    """Write a calibration as tables."""
    canvas = Canvas(page)
    canvas.line(("traceaudit calibrate", "bold"), f"  {result.name}, {result.measured}")
    canvas.heading("Bandwidth", "reads and writes together")
    canvas.table(
        [Column("access"), Column("GB/s", right=True), Column("of the table's peak", right=True)],
        [[access, f"{rate:,.1f}", percent(rate, result.peak_gbps or 0)] for access, rate in result.gbps.items()],
    )
    canvas.heading("Matrix products", "dense")
    canvas.table(
        [Column("type"), Column("TFLOP/s", right=True)],
        [[dtype, f"{rate:,.1f}"] for dtype, rate in result.tflops.items()],
    )
    for dtype, reason in result.skipped.items():
        canvas.paragraph((f"{dtype} left out: {reason}", "dim"), indent=2, hang=2)
    return canvas.text()


def machine_toml(result: "Calibration") -> str:
    """Write a calibration as the file that ``kernels --machine`` reads."""
    lines = [
        "[machine]",
        f"name = {json.dumps(result.name)}",
        f"measured = {json.dumps(result.measured)}",
        "",
        "[memory]  # GB/s, 1 GB = 1e9 bytes, reads and writes together",
        *(f"{access}_gbps = {rate:.1f}" for access, rate in result.gbps.items()),
        "",
        "[tflops]  # dense",
        *(f"{dtype} = {rate:.1f}" for dtype, rate in result.tflops.items()),
    ]
    return "\n".join(lines) + "\n"
