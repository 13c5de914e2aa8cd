"""Code as users write it; it has to type-check, and never runs."""

from typing import assert_type

from traceaudit import audit
from traceaudit.capture import Recording, record
from traceaudit.config import WallFlags, reconcile_options
from traceaudit.errors import ExitCode, TraceAuditError
from traceaudit.model.findings import Finding, Severity, Verdict, verdict_of
from traceaudit.model.options import ReconcileOptions, Selection
from traceaudit.model.results import Inspection, KernelReport, Reconciliation


def report_progress(done: int, total: int | None) -> None:
    print(done, total)


def questions(path: str) -> None:
    options = ReconcileOptions(selection=Selection(rank=0))
    assert_type(audit.reconcile(path, options, progress=report_progress), Reconciliation)
    assert_type(audit.kernels(path, options), KernelReport)
    assert_type(audit.inspect(path, options), Inspection)


def idle_of_the_wall(path: str) -> list[float | None]:
    result = audit.reconcile(path, reconcile_options(wall=WallFlags(wall_ms="3.3")))
    return [device.step.full_speed_idle_ns for device in result.devices]


def residuals(result: Reconciliation) -> dict[tuple[int, int], int | None]:
    return {(device.rank, device.device): device.ledger.residual_ns for device in result.devices}


def verdict(findings: list[Finding]) -> Verdict:
    return verdict_of(findings)


def is_error(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR


def describe(error: TraceAuditError) -> tuple[str, str | None, ExitCode]:
    return error.message, error.hint, error.exit_code


def make_recording() -> Recording:
    return record(lambda: None, path="decode.json.gz", profile_steps=5, batch=16)
