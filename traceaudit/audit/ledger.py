"""`reconcile`: where the steps went."""

from collections.abc import Sequence
from dataclasses import replace

from traceaudit.analyses.trust import doubted, timeline_findings, wall_findings
from traceaudit.audit.reading import Progress, audit_device, read_traces, trace_findings, views_of
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.results import Completeness, DeviceAudit, Reconciliation
from traceaudit.model.trace import Trace

__all__ = ["reconcile", "reconcile_traces"]


def reconcile(path: str, options: ReconcileOptions, *, progress: Progress | None = None) -> Reconciliation:
    """Say where the steps went, for every device of the trace or of a folder of ranks.

    Raises
    ------
    TraceError
        If the path holds no usable trace, or one without device ops.
    UsageError
        If the options name a rank, device, step or annotation that the trace lacks.
    """
    return reconcile_traces(read_traces(path, progress), options, path)[0]


def reconcile_traces(
    traces: Sequence[Trace], options: ReconcileOptions, path: str
) -> tuple[Reconciliation, list[DeviceView]]:
    """Reconcile traces that have been read, and return their devices in the same order; errors as `reconcile`."""
    findings = list(trace_findings(traces, path))
    audits: list[DeviceAudit] = []
    views = views_of(traces, options, path)
    for view in views:
        audit = audit_device(view, options)
        findings += timeline_findings(view, audit) + wall_findings(audit)
        audits.append(audit)
    completeness = Completeness.of(tuple(findings))
    devices = tuple(
        replace(audit, doubtful=doubted(completeness.findings, audit.rank, audit.device)) for audit in audits
    )
    return Reconciliation(tuple(trace.source for trace in traces), path, completeness, devices), views
