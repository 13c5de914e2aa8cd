"""The JSON contract: stable names, integer nanoseconds, null for what is not known.

The schemas beside this module (``schemas/*.schema.json``) state it in full; fields may be added, none renamed.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.bytes.operands import Operand
    from traceaudit.model.findings import Finding
    from traceaudit.model.results import (
        Accounts,
        Completeness,
        DeviceAudit,
        DeviceInventory,
        DeviceKernels,
        IdleLatency,
        IdlePosition,
        Inspection,
        KernelReport,
        KernelRow,
        LaunchCoverage,
        Ledger,
        Reconciliation,
        StepItem,
        Totals,
    )
    from traceaudit.model.trace import TraceSource

__all__ = [
    "SCHEMA_VERSION",
    "completeness_object",
    "inspect",
    "kernels",
    "reconcile",
    "reconcile_object",
    "trace_object",
    "written",
]

SCHEMA_VERSION = 1

Object = dict[str, object]


def reconcile(result: "Reconciliation", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a reconciliation."""
    absent = dict.fromkeys(("step_time", "server", "floor", "no_floor", "kernels", "gain", "decision"))
    return written({**reconcile_object(result), **absent})


def reconcile_object(result: "Reconciliation") -> Object:
    """Describe a reconciliation."""
    return _document("reconcile", result, [_device_audit(device) for device in result.devices])


def kernels(result: "KernelReport", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001
    """Write a kernel report."""
    return written(_document("kernels", result, [_device_kernels(device) for device in result.devices]))


def inspect(result: "Inspection", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001
    """Write an inspection."""
    document = _document(
        "inspect",
        result,
        [_device_inventory(device) for device in result.devices],
        ranks=list(result.ranks),
        world_size=result.world_size,
        coverage=[_coverage(row) for row in result.coverage],
    )
    return written(document)


def _document(
    command: str, result: "Reconciliation | KernelReport | Inspection", devices: list[Object], **more: object
) -> Object:
    return {
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "trace": trace_object(result.path, result.sources),
        "completeness": completeness_object(result.completeness),
        **more,
        "devices": devices,
    }


def written(document: Object) -> str:
    """Write a document as text."""
    # ASCII only: names may hold lone surrogates, and control characters that a terminal would obey.
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def trace_object(path: str, sources: "tuple[TraceSource, ...]") -> Object:
    """Describe the files of a trace."""
    writers = {source.writer for source in sources}
    return {
        "path": path,
        "events": sum(source.events for source in sources),
        "writer": writers.pop() if len(writers) == 1 else None,
        "time_resolution_ns": max((source.time_resolution_ns for source in sources), default=1),
        "files": [_file(source) for source in sources],
    }


def _file(source: "TraceSource") -> Object:
    return {
        "path": source.path,
        "events": source.events,
        "bytes_read": source.bytes_read,
        "writer": source.writer,
        "time_resolution_ns": source.time_resolution_ns,
        "origin_ns": source.origin_ns,
        "capture_ns": None if source.capture_ns is None else list(source.capture_ns),
        "versions": dict(source.versions),
        "categories": [
            {"category": category, "phase": phase, "count": count}
            for (category, phase), count in source.categories.items()
        ],
    }


def completeness_object(completeness: "Completeness") -> Object:
    """Describe the verdict and the findings."""
    return {
        "verdict": str(completeness.verdict),
        "findings": [_finding(finding) for finding in completeness.findings],
    }


def _finding(finding: "Finding") -> Object:
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        "hint": finding.hint,
        "count": finding.count,
        "impact_ns": finding.impact_ns,
        "rank": finding.rank,
        "device": finding.device,
        "examples": list(finding.examples),
    }


def _device_audit(device: "DeviceAudit") -> Object:
    steps, step, host = device.steps, device.step, device.host
    return {
        "rank": device.rank,
        "device": device.device,
        "name": device.name,
        "totals": _totals(device.totals),
        "steps": {
            "source": str(steps.source),
            "reason": steps.reason,
            "count": len(steps.items),
            "used": steps.used,
            "items": [_step_item(item) for item in steps.items],
        },
        "ledger": _ledger(device.ledger),
        "host": {
            "scheduler_ns": host.scheduler_ns,
            "scheduler_exposed_ns": host.scheduler_exposed_ns,
            "launch_api_ns": host.launch_api_ns,
            "sync_ns": host.sync_ns,
            "idle_host_after_sync_ns": host.idle_host_after_sync_ns,
            "scheduler_names": dict(host.scheduler_names),
        },
        "step": {
            "wall_ns": step.wall_ns,
            "wall_source": step.wall_source,
            "wall_low_ns": step.wall_low_ns,
            "wall_high_ns": step.wall_high_ns,
            "window_ns": step.window_ns,
            "busy_ns": step.busy_ns,
            "idle_ns": step.idle_ns,
            "residual_ns": step.residual_ns,
            "dilation": step.dilation,
            "full_speed_idle_ns": step.full_speed_idle_ns,
            "resolution_error_ns": device.resolution_error_ns,
        },
        "doubtful": sorted(device.doubtful),
    }


def _totals(totals: "Totals") -> Object:
    return {
        "device_ops": totals.device_ops,
        "op_time_ns": totals.op_time_ns,
        "busy_ns": totals.busy_ns,
        "span_ns": totals.span_ns,
        "idle_ns": totals.idle_ns,
        "gaps": totals.gaps,
    }


def _step_item(item: "StepItem") -> Object:
    return {
        "index": item.index,
        "name": item.name,
        "kind": str(item.kind),
        "batch": item.batch,
        "tokens": item.tokens,
        "start_ns": item.start_ns,
        "window_ns": item.window_ns,
        "device_ops": item.device_ops,
        "op_time_ns": item.op_time_ns,
        "own_busy_ns": item.own_busy_ns,
        "used": item.used,
        "left_out": item.left_out,
        "accounts": _parts(item.accounts),
    }


IDLE_HOST_CAUSES = ("sync", "launch_api", "other_api", "framework", "profiler", "unrecorded")


def _ledger(ledger: "Ledger") -> Object:
    return {
        "steps": ledger.steps,
        "window_ns": ledger.window_ns,
        "wall_ns": ledger.wall_ns,
        "residual_ns": ledger.residual_ns,
        "host_cost_ns": ledger.host_cost_ns,
        "accounts": _parts(ledger.accounts),
        "idle_latency_by": _parts(ledger.idle_latency_by),
        "idle_host_by": _causes(ledger.idle_host_by),
        "idle_by_position": _parts(ledger.idle_by_position),
    }


def _causes(by: Mapping[str, int]) -> Object:
    """Keep the causes with a fixed name always present, the others in their order."""
    fixed = {name: by.get(name, 0) for name in IDLE_HOST_CAUSES}
    return {**fixed, **{name: value for name, value in by.items() if name not in fixed}}


def _parts(sums: "Accounts | IdleLatency | IdlePosition") -> Object:
    return {item.name: getattr(sums, item.name) for item in fields(sums)}


def _device_kernels(device: "DeviceKernels") -> Object:
    return {
        "rank": device.rank,
        "device": device.device,
        "name": device.name,
        "peak_gbps": device.ceilings.gbps,
        "peak_source": device.ceilings.gbps_source,
        "peak_uncertain": device.ceilings.uncertain,
        "compute_peak_source": device.ceilings.tflops_source,
        "peak_missing": device.ceilings.missing or None,
        "l2_bytes": device.ceilings.l2_bytes,
        "op_time_ns": device.op_time_ns,
        "busy_ns": device.busy_ns,
        "steps": device.steps,
        "covered_busy_frac": device.covered_busy_frac,
        "op_time_by_source": dict(device.sources),
        "notes": list(device.notes),
        "group_by": device.grouped_by,
        "kernels": [_kernel(row) for row in device.kernels],
    }


def _kernel(row: "KernelRow") -> Object:
    rates, fill = row.rates, row.fill
    return {
        "name": row.name,
        "short_name": row.shown_name,
        "kind": row.kind,
        "rule": row.rule,
        "op": row.op,
        "site": row.site,
        "operands": None if row.operands is None else [_operand(operand) for operand in row.operands],
        "copied_bytes": row.copied_bytes,
        "role": row.role,
        "launches": row.launches,
        "launches_per_step": row.launches_per_step,
        "op_time_ns": row.op_time_ns,
        "per_step_ns": row.per_step_ns,
        "share_of_op_time_frac": row.share_of_op_time_frac,
        "share_of_busy_frac": row.share_of_busy_frac,
        "share_of_wall_frac": row.share_of_wall_frac,
        "mean_ns": row.mean_ns,
        "min_ns": row.min_ns,
        "p50_ns": row.p50_ns,
        "p99_ns": row.p99_ns,
        "max_ns": row.max_ns,
        "grid": _shape(row.grid),
        "grids": row.grids,
        "block": _shape(row.block),
        "blocks_per_sm": row.blocks_per_sm,
        "waves": fill.waves,
        "idle_slots_frac": fill.idle_slots_frac,
        "registers": fill.registers,
        "shared_mem_bytes": fill.shared_mem_bytes,
        "core": fill.core,
        "moved_bytes": rates.moved_bytes,
        "bytes_source": rates.bytes_source,
        "bytes_assumption": rates.assumption or None,
        "covered_launches": rates.covered_launches,
        "achieved_gbps": rates.achieved_gbps,
        "peak_frac": rates.peak_frac,
        "memory_level": None if rates.memory_level is None else str(rates.memory_level),
        "flop": rates.flop,
        "achieved_tflops": rates.achieved_tflops,
        "compute_peak_frac": rates.compute_peak_frac,
        "flop_per_byte": rates.flop_per_byte,
        "sol_ns": rates.sol_ns,
        "sol_frac": rates.sol_frac,
        "bound": None if row.bound is None else str(row.bound),
        "bound_rule": row.bound_rule or None,
        "save_ns": row.save_ns,
        "flags": list(row.flags),
    }


def _operand(operand: "Operand") -> Object:
    """Describe an operand as the profiler recorded it; dims are null where it cut them off, members those of a list."""
    return {
        "dtype": operand.dtype or None,
        "dims": None if operand.cut or operand.members else list(operand.dims),
        "strides": None if operand.strides is None else list(operand.strides),
        "members": [
            {**_operand(member), "dtype": member.dtype if member.is_tensor else None} for member in operand.members
        ],
    }


def _shape(sizes: Iterable[int] | None) -> list[int] | None:
    return None if sizes is None else list(sizes)


def _device_inventory(device: "DeviceInventory") -> Object:
    return {
        "rank": device.rank,
        "device": device.device,
        "name": device.name,
        "streams": device.streams,
        "totals": _totals(device.totals),
        "ops_by_kind": dict(device.ops_by_kind),
        "steps": {"source": str(device.step_source), "reason": device.step_reason, "count": device.steps},
    }


def _coverage(row: "LaunchCoverage") -> Object:
    return {
        "rank": row.rank,
        "api": row.api,
        "calls": row.calls,
        "calls_with_ops": row.calls_with_ops,
        "ops": row.ops,
        "op_time_ns": row.op_time_ns,
    }
