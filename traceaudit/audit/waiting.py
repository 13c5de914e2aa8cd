"""`gaps`: why the devices waited."""

from traceaudit.analyses.gaps import find_gaps
from traceaudit.analyses.trust import timeline_findings, wall_findings
from traceaudit.audit.reading import Progress, audit_device, read_traces, trace_findings, views_of
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.results import Completeness
from traceaudit.model.results.gaps import GapReport

__all__ = ["gaps"]


def gaps(path: str, options: ReconcileOptions, *, progress: Progress | None = None) -> GapReport:
    """Say why every device waited, gap by gap; same errors as `reconcile`."""
    traces = read_traces(path, progress)
    findings = list(trace_findings(traces, path))
    devices = []
    for view in views_of(traces, options, path):
        audit = audit_device(view, options)
        findings += timeline_findings(view, audit) + wall_findings(audit)
        devices.append(find_gaps(view, audit, options.steps))
    completeness = Completeness.of(tuple(findings))
    return GapReport(tuple(trace.source for trace in traces), path, completeness, tuple(devices))
