"""`whatif` as JSON, by the contract: all times in ns a step."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from traceaudit.report.jsondoc import SCHEMA_VERSION, completeness_object, trace_object
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.results.whatif import DeviceWhatIf, WhatIf

__all__ = ["prediction_object", "whatif"]

Object = dict[str, object]


def whatif(result: "WhatIf", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a prediction."""
    document: Object = {
        "schema_version": SCHEMA_VERSION,
        "command": "whatif",
        "trace": trace_object(result.path, result.sources),
        "completeness": completeness_object(result.completeness),
        "devices": [prediction_object(device) for device in result.devices],
    }
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def prediction_object(device: "DeviceWhatIf") -> Object:
    """Describe the prediction for one device; kernels keep their full names."""
    document = asdict(device)
    del document["short_names"]
    document["reasons"] = list(device.reasons)
    document["matched"] = dict(device.matched)
    return document
