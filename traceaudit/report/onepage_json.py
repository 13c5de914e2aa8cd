"""The audit on one page as JSON: the document of `reconcile`, and what was asked beside it."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from traceaudit.report.jsondoc import reconcile_object, written
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.roofline_json import roofline_object
from traceaudit.report.serverlog_json import reading_object, server_object

if TYPE_CHECKING:
    from traceaudit.model.results.onepage import FloorSide, KernelLine, OnePage, ServerSide, StepChoice

__all__ = ["onepage"]

Object = dict[str, object]


def onepage(result: "OnePage", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write the page."""
    hidden = {line.row.name for line in result.hidden}
    return written(
        {
            **reconcile_object(result.reconciliation),
            "step_time": _step(result.step),
            "server": None if result.server is None else _server(result.server, result.step),
            "floor": None if result.floor is None else _floor(result.floor),
            "no_floor": None if result.no_floor is None else asdict(result.no_floor),
            "kernels": [_kernel(line, hidden=line.row.name in hidden) for line in result.kernels],
            "gain": None if result.gain is None else asdict(result.gain),
            "decision": [asdict(fix) for fix in result.fixes],
        }
    )


def _step(step: "StepChoice") -> Object:
    return {
        "wall_ns": None if step.wall is None else step.wall.step_ns,
        "wall_source": None if step.wall is None else step.wall.source,
        "reason": step.reason,
        "given_ns": None if step.given is None else step.given.step_ns,
        "given_source": None if step.given is None else step.given.source,
    }


def _server(server: "ServerSide", step: "StepChoice") -> Object:
    return {
        **server_object(server.report),
        "asked": server.asked,
        "engine_batch": server.engine_batch,
        "trace_batch": server.trace_batch,
        "readings": [reading_object(reading) for reading in step.readings],
    }


def _floor(floor: "FloorSide") -> Object:
    asked = floor.asked
    return {
        **roofline_object(floor.roofline),
        "gpu_source": floor.gpu_source,
        "batch_source": floor.batch_source,
        "context_source": floor.context_source,
        "asked": None
        if asked is None
        else {
            "batch": asked.setting.batch,
            "minimum_ns": asked.floor.minimum_ns,
            "expected_ns": asked.floor.expected_ns,
        },
    }


def _kernel(line: "KernelLine", *, hidden: bool) -> Object:
    row, rates = line.row, line.row.rates
    return {
        "name": row.name,
        "short_name": row.shown_name,
        "kind": row.kind,
        "per_step_ns": line.op_time_ns,
        "launches_per_step": line.launches,
        "share_of_op_time_frac": line.share_of_busy_frac,
        "save_ns": line.save_ns,
        "naive_save_ns": line.op_time_ns,
        "hidden": hidden,
        "grid": None if row.grid is None else list(row.grid),
        "blocks_per_sm": row.blocks_per_sm,
        "moved_bytes": rates.moved_bytes,
        "bytes_source": rates.bytes_source,
        "achieved_gbps": rates.achieved_gbps,
        "peak_frac": rates.peak_frac,
        "sol_frac": rates.sol_frac,
        "bound": None if row.bound is None else str(row.bound),
        "flags": list(row.flags),
    }
