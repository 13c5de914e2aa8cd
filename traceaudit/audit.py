"""The one composer: from a path and options to a result, through ingest, model and analyses."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from traceaudit.analyses.attribution import attribute
from traceaudit.analyses.inventory import device_inventories, launch_coverage
from traceaudit.analyses.ranks import compare_ranks
from traceaudit.analyses.reconcile import reconcile as reconcile_device
from traceaudit.analyses.trust import doubted, timeline_findings, wall_findings
from traceaudit.errors import TraceFormatError, UsageError
from traceaudit.ingest import locate, read
from traceaudit.model.deviceview import DeviceView, device_views
from traceaudit.model.findings import Finding
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.results import (
    Completeness,
    DeviceAudit,
    DeviceInventory,
    Inspection,
    KernelReport,
    LaunchCoverage,
    Reconciliation,
    Wall,
)
from traceaudit.model.trace import Trace

__all__ = ["Progress", "inspect", "kernels", "reconcile"]

Progress = Callable[[int, int | None], None]
"""Called while reading with the bytes read so far and the size of the file, None where it is not known."""


def reconcile(path: str, options: ReconcileOptions, *, progress: Progress | None = None) -> Reconciliation:
    """Say where the steps went, for every device of the trace or of a folder of ranks.

    Raises
    ------
    TraceError
        If the path holds no usable trace, or one without device ops.
    UsageError
        If the options name a rank, device, step or annotation that the trace lacks.
    """
    traces = _traces(path, progress)
    findings = list(_trace_findings(traces, path))
    audits: list[DeviceAudit] = []
    for view in _views(traces, options, path):
        audit = _audit(view, options)
        findings += timeline_findings(view, audit) + wall_findings(audit)
        audits.append(audit)
    completeness = Completeness.of(tuple(findings))
    devices = tuple(
        replace(audit, doubtful=doubted(completeness.findings, audit.rank, audit.device)) for audit in audits
    )
    return Reconciliation(tuple(trace.source for trace in traces), path, completeness, devices)


def kernels(path: str, options: ReconcileOptions, *, progress: Progress | None = None) -> KernelReport:
    """List the kernels of every device; same errors as `reconcile`."""
    traces = _traces(path, progress)
    findings = list(_trace_findings(traces, path))
    devices = []
    for view in _views(traces, options, path):
        findings += timeline_findings(view, _audit(view, options))
        devices.append(attribute(view, step=options.selection.step))
    return KernelReport(
        tuple(trace.source for trace in traces), path, Completeness.of(tuple(findings)), tuple(devices)
    )


def inspect(path: str, options: ReconcileOptions, *, progress: Progress | None = None) -> Inspection:
    """Say what the files are and whether to believe them; a trace without device ops is no error here."""
    traces = _traces(path, progress)
    findings = list(_trace_findings(traces, path))
    inventories: list[DeviceInventory] = []
    coverage: list[LaunchCoverage] = []
    for trace in traces:
        views = list(device_views(trace, options.steps, options.selection))
        for view in views:
            findings += timeline_findings(view, _audit(view, options))
        marks = {(view.rank, view.device): view.marks for view in views}
        inventories += device_inventories(trace, marks, {(view.rank, view.device): view.name for view in views})
        coverage += launch_coverage(trace)
    return Inspection(
        sources=tuple(trace.source for trace in traces),
        path=path,
        completeness=Completeness.of(tuple(findings)),
        devices=tuple(inventories),
        coverage=tuple(coverage),
        ranks=tuple(sorted({rank for trace in traces for rank in trace.ranks})),
        world_size=max((trace.world_size for trace in traces if trace.world_size is not None), default=None),
    )


def _traces(path: str, progress: Progress | None) -> tuple[Trace, ...]:
    paths = locate(path)
    traces = tuple(read(one, progress=progress, rank=index if len(paths) > 1 else None) for index, one in enumerate(paths))
    taken: dict[int, str] = {}
    for trace in traces:
        for rank in trace.ranks:
            if rank in taken:
                raise TraceFormatError(
                    f"two files of one folder hold rank {rank}: {taken[rank]!r} and {trace.source.path!r}",
                    where=path,
                    hint="give one file, or a folder with one file a rank",
                )
            taken[rank] = trace.source.path
    return traces


def _trace_findings(traces: Sequence[Trace], path: str) -> tuple[Finding, ...]:
    """Collect what reading found, and what the ranks say of each other."""
    several = len(traces) > 1
    own = [
        replace(finding, rank=trace.ranks[0]) if several and finding.rank is None and trace.ranks else finding
        for trace in traces
        for finding in trace.findings
    ]
    return (*own, *compare_ranks(traces, folder=Path(path).is_dir()))


def _views(traces: Sequence[Trace], options: ReconcileOptions, path: str) -> list[DeviceView]:
    views = [view for trace in traces for view in device_views(trace, options.steps, options.selection)]
    if views:
        return sorted(views, key=lambda view: (view.rank, view.device))
    present = sorted({(int(r), int(d)) for t in traces for r, d in zip(t.ops.rank, t.ops.device, strict=True)})
    if present:
        listed = ", ".join(f"rank {rank} device {device}" for rank, device in present[:8])
        raise UsageError("no device matches --rank and --device", where=path, hint=f"the trace holds {listed}")
    raise TraceFormatError(
        "no device op in the trace",
        where=path,
        hint="record with ProfilerActivity.CUDA; `traceaudit inspect` shows what the file holds",
    )


def _audit(view: DeviceView, options: ReconcileOptions) -> DeviceAudit:
    step = options.selection.step
    steps = len(view.marks.start_ns)
    if step is not None and not 0 <= step < steps:
        raise UsageError(
            f"no step {step}", where=view.trace.source.path, hint=f"the trace has {steps} steps, counted from 0"
        )
    return reconcile_device(view, options, options.wall or _recorded_wall(view.trace))


def _recorded_wall(trace: Trace) -> Wall | None:
    if trace.wall is None:
        return None
    repeats = trace.wall.wall_ns_per_step
    return Wall(round(median(repeats)), f"recorder (median of {len(repeats)} unprofiled repeats)")
