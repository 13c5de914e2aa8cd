"""`kernels`: what each kernel costs, how fast it moves its bytes, and whether that can be true."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from traceaudit.analyses.attribution import attribute, chosen_ops
from traceaudit.analyses.bandwidth import (
    cache_copies,
    other_run,
    peaks_of,
    rate_kernels,
    sources_of,
    unlike_model,
    with_parts,
)
from traceaudit.analyses.trust import other_batch, timeline_findings
from traceaudit.analyses.whatif import gains_of
from traceaudit.audit.reading import Progress, audit_device, read_traces, trace_findings, views_of
from traceaudit.errors import MissingDataError
from traceaudit.model.bytes.borrowed import OtherRun
from traceaudit.model.bytes.work import Source
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.enclosing import enclosing_rows
from traceaudit.model.findings import Finding
from traceaudit.model.kernelgroups import GroupBy, KernelGroup, kernel_groups
from traceaudit.model.kerneloptions import KernelOptions
from traceaudit.model.options import ReconcileOptions, Selection
from traceaudit.model.results import Completeness, DeviceAudit
from traceaudit.model.results.kernels import DeviceKernels, KernelReport
from traceaudit.model.schema import HostCategory

__all__ = ["device_kernels", "kernels"]


def kernels(path: str, options: KernelOptions | ReconcileOptions, *, progress: Progress | None = None) -> KernelReport:
    """List the kernels of every device; same errors as `reconcile`.

    Raises
    ------
    MissingDataError
        If the trace to take shapes from has none.
    """
    settings = options if isinstance(options, KernelOptions) else KernelOptions(base=options)
    traces = read_traces(path, progress, details=True)
    findings = list(trace_findings(traces, path))
    others = () if settings.shapes_from is None else _others(settings.shapes_from, settings, progress)
    devices = []
    for view in views_of(traces, settings.base, path):
        audit = audit_device(view, settings.base)
        findings += timeline_findings(view, audit)
        device, found = device_kernels(view, audit, settings, _like(view, others))
        devices.append(device)
        findings += found
    return KernelReport(tuple(trace.source for trace in traces), path, Completeness.of(tuple(findings)), tuple(devices))


def device_kernels(
    view: DeviceView, audit: DeviceAudit, options: KernelOptions, other: OtherRun | None = None
) -> tuple[DeviceKernels, tuple[Finding, ...]]:
    """List the kernels of one device with their rates, and what was found of them.

    Parameters
    ----------
    view, audit
        The device, and its reconciliation.
    options
        What to take bytes and peaks from.
    other
        The run to take shapes from.
    """
    step = options.base.selection.step
    sourced = sources_of(view, options, other)
    frames = enclosing_rows(view.trace, view.ops, HostCategory.PYTHON)
    groups = kernel_groups(view, chosen_ops(view, step), options.group_by, sourced.around, frames)
    used = [item.used for item in audit.steps.items]
    rows = attribute(view, groups, step=step, used=used, wall_ns=audit.step.wall_ns)
    peaks, ceilings = peaks_of(view, options.peaks)
    rated, findings = rate_kernels(view, rows, groups, sourced.work, peaks, ceilings)
    counted = np.flatnonzero(np.append(used, False)[view.windows.step])
    parted = with_parts(view, rated, groups, sourced.work, peaks, ceilings, counted)
    notes = (*sourced.notes, *_grouping_notes(rows, options.group_by))
    finished = replace(parted, notes=notes, grouped_by=str(options.group_by))
    copied = cache_copies(view, sourced.work, counted)
    given = options.run.batch if options.workload is None else options.workload.batch
    findings += tuple(found for found in (other_batch(audit, given), copied) if found is not None)
    if sourced.misfit:
        findings += (unlike_model(view, sourced.misfit),)
    return (_with_gains(finished, groups, view, audit) if options.gains else finished), findings


def _grouping_notes(device: DeviceKernels, by: GroupBy) -> tuple[str, ...]:
    """Say so where the trace does not hold what rows were to be told apart by."""
    if by is GroupBy.SHAPE and not any(row.operands for row in device.kernels):
        return ("no op has recorded shapes, so rows are told apart by op and grid: record with record_shapes=True",)
    if by is GroupBy.SITE and not any(row.site for row in device.kernels):
        return ("no line of Python is recorded, so rows are told apart by op: record with with_stack=True",)
    return ()


def _with_gains(
    device: DeviceKernels, groups: Sequence[KernelGroup], view: DeviceView, audit: DeviceAudit
) -> DeviceKernels:
    """Add what removing the launches of each row would save a step, by re-timing."""
    saved = gains_of(view, audit, [group.ops for group in groups])
    rows = tuple(replace(row, save_ns=save) for row, save in zip(device.kernels, saved, strict=True))
    return replace(device, kernels=rows)


def _others(path: str, options: KernelOptions, progress: Progress | None) -> Sequence[tuple[DeviceView, OtherRun]]:
    """Read the trace to take shapes from."""
    base = replace(options.base, selection=Selection())
    traces = read_traces(path, progress, details=True)
    runs = [(view, other_run(view, options)) for view in views_of(traces, base, path)]
    if not any(work.source is not Source.REPORTED for _, run in runs for work in run.work.works):
        raise MissingDataError(
            "no op of this trace has shapes", where=path, hint="record it with record_shapes=True, without CUDA graphs"
        )
    return runs


def _like(view: DeviceView, others: Sequence[tuple[DeviceView, OtherRun]]) -> OtherRun | None:
    """Return the run of the same rank and device, else the first."""
    same = [run for other, run in others if (other.rank, other.device) == (view.rank, view.device)]
    return same[0] if same else others[0][1] if others else None
