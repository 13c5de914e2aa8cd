"""`kernels`: what each kernel costs."""

from traceaudit.analyses.attribution import attribute
from traceaudit.analyses.trust import timeline_findings
from traceaudit.audit.reading import Progress, audit_device, read_traces, trace_findings, views_of
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.results import Completeness, KernelReport

__all__ = ["kernels"]


def kernels(path: str, options: ReconcileOptions, *, progress: Progress | None = None) -> KernelReport:
    """List the kernels of every device; same errors as `reconcile`."""
    traces = read_traces(path, progress)
    findings = list(trace_findings(traces, path))
    devices = []
    for view in views_of(traces, options, path):
        findings += timeline_findings(view, audit_device(view, options))
        devices.append(attribute(view, step=options.selection.step))
    return KernelReport(tuple(trace.source for trace in traces), path, Completeness.of(tuple(findings)), tuple(devices))
