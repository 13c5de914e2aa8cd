"""What `calibrate` measured, as JSON."""

import json
from typing import TYPE_CHECKING

from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.results.calibration import Calibration

__all__ = ["calibrate"]


def calibrate(result: "Calibration", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a calibration."""
    document = {
        "schema_version": 1,
        "command": "calibrate",
        "name": result.name,
        "measured": result.measured,
        "gbps": dict(result.gbps),
        "tflops": dict(result.tflops),
        "skipped": dict(result.skipped),
        "peak_gbps": result.peak_gbps,
    }
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
