"""`inspect`: what the files are."""

from traceaudit.analyses.inventory import device_inventories, launch_coverage
from traceaudit.analyses.trust import timeline_findings
from traceaudit.audit.reading import Progress, audit_device, read_traces, refuse_unmatched, trace_findings
from traceaudit.model.deviceview import device_views
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.results import Completeness, DeviceInventory, Inspection, LaunchCoverage

__all__ = ["inspect"]


def inspect(path: str, options: ReconcileOptions, *, progress: Progress | None = None) -> Inspection:
    """Say what the files are and whether to believe them; a trace without device ops is no error here.

    Raises
    ------
    UsageError
        If a rank or device is asked for that no trace has.
    """
    traces = read_traces(path, progress)
    refuse_unmatched(traces, options, path)
    findings = list(trace_findings(traces, path))
    inventories: list[DeviceInventory] = []
    coverage: list[LaunchCoverage] = []
    for trace in traces:
        views = list(device_views(trace, options.steps, options.selection))
        for view in views:
            findings += timeline_findings(view, audit_device(view, options))
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
