"""`gaps` as JSON, by the contract."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from traceaudit.report.jsondoc import SCHEMA_VERSION, completeness_object, trace_object
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.results.gaps import DeviceGaps, GapReport, GapRow

__all__ = ["gaps"]

Object = dict[str, object]


def gaps(result: "GapReport", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a gap report."""
    document: Object = {
        "schema_version": SCHEMA_VERSION,
        "command": "gaps",
        "trace": trace_object(result.path, result.sources),
        "completeness": completeness_object(result.completeness),
        "devices": [_device(device) for device in result.devices],
    }
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _device(device: "DeviceGaps") -> Object:
    return {
        "rank": device.rank,
        "device": device.device,
        "name": device.name,
        "steps_used": device.steps_used,
        "window_ns": device.window_ns,
        "idle_ns": device.idle_ns,
        "verdict": str(device.verdict),
        "shares_frac": dict(device.shares),
        "queue_depth": device.queue_depth,
        "gaps": [_row(row) for row in device.gaps],
        "host": {
            "thread": device.host.thread,
            "interval_ns": device.host.interval_ns,
            "host_cost_ns": device.host.host_cost_ns,
            "by": {
                name: {"total_ns": share.total_ns, "exposed_ns": share.exposed_ns}
                for name, share in device.host.shares.items()
            },
            "other_threads": [asdict(one) for one in device.host.others],
        },
        "short_gaps": asdict(device.short),
        "critical_path": {
            "step": device.path.step,
            "window_ns": device.path.window_ns,
            "by_kind": device.path.by_kind(),
            "parts": [asdict(part) for part in device.path.parts],
        },
    }


def _row(row: "GapRow") -> Object:
    return {
        "position": row.position,
        "before": row.before,
        "after": row.after,
        "count": row.count,
        "total_ns": row.total_ns,
        "per_step_ns": row.per_step_ns,
        "median_ns": row.median_ns,
        "p90_ns": row.p90_ns,
        "max_ns": row.max_ns,
        "host_ns": row.host_ns,
        "latency_ns": row.latency_ns,
        "graph_ns": row.graph_ns,
        "unknown_ns": row.unknown_ns,
        "cause": row.cause,
        "causes": dict(row.causes),
        "where": row.where,
    }
