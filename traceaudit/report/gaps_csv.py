"""`gaps` as CSV: one row for each gap. Times are ns, unknown is empty."""

from typing import TYPE_CHECKING

from traceaudit.report.csvtable import Cell, csv_table
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.results.gaps import DeviceGaps, GapReport

__all__ = ["gaps"]

COLUMNS = (
    "rank",
    "device",
    "position",
    "before",
    "after",
    "count",
    "total_ns",
    "per_step_ns",
    "median_ns",
    "p90_ns",
    "max_ns",
    "host_ns",
    "latency_ns",
    "graph_ns",
    "unknown_ns",
    "cause",
    "where",
    "verdict",
)


def gaps(result: "GapReport", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write the gaps of all devices."""
    return csv_table(
        COLUMNS, (row for device in result.devices for row in _rows(device, str(result.completeness.verdict)))
    )


def _rows(device: "DeviceGaps", verdict: str) -> list[list[Cell]]:
    return [
        [device.rank, device.device, *(getattr(row, name) for name in COLUMNS[2:-1]), verdict] for row in device.gaps
    ]
