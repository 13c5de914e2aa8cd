"""From a logical trace to the findings that a user gets."""

from collections import defaultdict

import pytest
from renderers import render

from traceaudit import audit
from traceaudit.model.options import ReconcileOptions


@pytest.fixture
def audited(tmp_path):
    """Audit a trace, the bytes of a file, or several files as a folder."""

    def run(what, *, writer="kineto-2.6", options=None):
        target = tmp_path / "trace.json"
        if isinstance(what, dict):
            target = tmp_path / "ranks"
            target.mkdir(exist_ok=True)
            for name, trace in what.items():
                (target / name).write_bytes(render(trace, writer))
        else:
            target.write_bytes(what if isinstance(what, bytes) else render(what, writer))
        return audit.reconcile(str(target), options or ReconcileOptions())

    return run


@pytest.fixture
def found(audited):
    """Return the verdict and the findings by code."""

    def run(what, **options):
        report = audited(what, **options)
        by_code = defaultdict(list)
        for finding in report.completeness.findings:
            by_code[finding.code].append(finding)
        return report.completeness.verdict.value, by_code

    return run


@pytest.fixture
def only(found):
    """Return the verdict and, of the one finding of a code, severity, count and impact."""

    def run(code, what, **options):
        verdict, findings = found(what, **options)
        assert len(findings[code]) == 1, dict(findings)
        (finding,) = findings[code]
        return verdict, (finding.severity.value, finding.count, finding.impact_ns)

    return run
