"""`whatif`: what a change would buy."""

from traceaudit.analyses.trust import timeline_findings, wall_findings
from traceaudit.analyses.whatif import predict
from traceaudit.audit.reading import Progress, audit_device, read_traces, trace_findings, views_of
from traceaudit.model.options import WhatIfOptions
from traceaudit.model.results import Completeness
from traceaudit.model.results.whatif import WhatIf

__all__ = ["whatif"]


def whatif(path: str, options: WhatIfOptions, *, progress: Progress | None = None) -> WhatIf:
    """Predict the step after a change, on every device.

    Raises
    ------
    MissingDataError
        If no step has launches and ops.
    TraceError, UsageError
        As `reconcile`; also if a change matches nothing.
    """
    traces = read_traces(path, progress)
    findings = list(trace_findings(traces, path))
    devices = []
    for view in views_of(traces, options.base, path):
        audit = audit_device(view, options.base)
        findings += timeline_findings(view, audit) + wall_findings(audit)
        devices.append(predict(view, audit, options))
    completeness = Completeness.of(tuple(findings))
    return WhatIf(tuple(trace.source for trace in traces), path, completeness, tuple(devices))
