"""What reading damaged input may come to, and how a wrong ledger without a finding is recognised.

A run ends in a report or in a `TraceAuditError` that is not our own bug. A report either holds the ledger of the trace
before the damage, or a finding that the undamaged trace does not have, with one of the codes that the kind of damage is
known by; where the device's busy time is off by a tenth or more, that finding is no mere note.
"""

import atexit
import json
import os
import shutil
import time
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from traceaudit.audit import gaps, inspect, reconcile
from traceaudit.errors import InvariantError, TraceAuditError
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.results import Reconciliation
from traceaudit.report import formats_of, render

__all__ = ["BYTE_CODES", "FILE_CODES", "Failure", "Outcome", "is_strict_json", "judge", "ledger_of", "run"]

FILE_CODES = frozenset({"file_truncated", "file_repaired", "rows_dropped", "second_document"})
"""What damage to the text itself comes out as."""

BYTE_CODES = FILE_CODES | {
    *("launch_without_op", "op_without_launch", "graph_replay_uneven", "capture_edge_loss", "device_without_ops"),
    *("clock_skew", "impossible_overlap", "idle_while_pending", "steps_uneven", "duplicate_rows"),
    *("zero_duration", "negative_duration", "absurd_duration"),
}
"""A damaged byte can leave a row whole and its key, its category or a time another one."""

GROSS_FRAC = 0.10
"""From this share of the busy time on, a note is not enough; the threshold of the findings themselves."""

SLOW_S = 20.0
"""Inputs of a few kB take milliseconds; one that takes this long has found a loop."""

_FOLDER = Path(mkdtemp(prefix="traceaudit-fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)


class Failure(AssertionError):  # noqa: N818  (an outcome of an input)
    """An input that was not dealt with as it must be."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out: a report, or the refusal's text."""

    report: Reconciliation | None
    refusal: str | None


def run(data: bytes, *, name: str = "trace.json", rendered: bool = False) -> Outcome:
    """Read and reconcile bytes as a file; every warning, foreign exception and endless loop is a failure.

    Parameters
    ----------
    rendered
        Go on to what other commands make of it, and write every report in every format.
    """
    path = _FOLDER / f"{os.getpid()}-{name}"
    path.write_bytes(data)
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            report = reconcile(str(path), ReconcileOptions())
            if rendered:
                _render_all(str(path))
    except InvariantError as exc:
        raise Failure(f"a conservation law broke: {exc}") from exc
    except TraceAuditError as exc:
        return Outcome(None, str(exc))
    except Exception as exc:
        raise Failure(f"{type(exc).__name__}: {exc}") from exc
    finally:
        took = time.perf_counter() - begin
    if took > SLOW_S:
        raise Failure(f"took {took:.1f} s")
    return Outcome(report, None)


def _render_all(path: str) -> None:
    for command, analyse in (("reconcile", reconcile), ("inspect", inspect), ("gaps", gaps)):
        result = analyse(path, ReconcileOptions())
        for form in formats_of(command):
            render(command, form, result).encode()


def ledger_of(report: Reconciliation) -> object:
    """Return all numbers of the ledger; texts are left out, since damage to a name is no damage to a ledger."""
    return [
        (
            device.rank,
            device.device,
            device.totals,
            device.steps.source,
            [
                (i.start_ns, i.window_ns, i.device_ops, i.op_time_ns, i.own_busy_ns, i.accounts, i.used)
                for i in device.steps.items
            ],
            device.ledger.steps,
            device.ledger.accounts,
            device.ledger.idle_latency_by,
            device.ledger.idle_by_position,
            sorted(value for value in device.ledger.idle_host_by.values() if value),
        )
        for device in report.devices
    ]


def judge(
    outcome: Outcome, base: Reconciliation, codes: Collection[str], *, always: bool = False, excused: bool = False
) -> str:
    """Say what became of a damaged input: refused, unchanged, covered or undetectable.

    Parameters
    ----------
    codes
        Codes of findings that cover the damage.
    always
        A finding is due even where the ledger did not change.
    excused
        Nothing in such a file can show that it was damaged.

    Raises
    ------
    Failure
        If the ledger is another one, and no finding says why.
    """
    if outcome.report is None:
        return "refused"
    report = outcome.report
    known = {_key(finding) for finding in base.completeness.findings}
    new = [finding for finding in report.completeness.findings if _key(finding) not in known]
    covering = [finding for finding in new if finding.code in codes]
    if ledger_of(report) == ledger_of(base):
        if always and not covering:
            raise Failure(f"no finding among {sorted(codes)}; found {_short(new)}")
        return "unchanged"
    if excused:
        return "undetectable"
    if not covering:
        raise Failure(f"the ledger changed and no finding among {sorted(codes)} says why; found {_short(new)}")
    off = _share_off(report, base)
    if off >= GROSS_FRAC and all(finding.severity is Severity.INFO for finding in covering):
        raise Failure(f"busy time is off by {100 * off:.0f} %, and the findings are notes: {_short(covering)}")
    return "covered"


def is_strict_json(data: bytes) -> bool:
    """Return whether the bytes are one JSON document to the letter: damage that left them so cannot be seen in them."""
    try:
        json.loads(data.decode("utf-8"), parse_constant=_refuse, parse_int=float)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(word: str) -> object:
    raise ValueError(word)


def _share_off(report: Reconciliation, base: Reconciliation) -> float:
    before = {(d.rank, d.device): d.totals.busy_ns for d in base.devices}
    after = {(d.rank, d.device): d.totals.busy_ns for d in report.devices}
    whole = max(1, sum(before.values()))
    return sum(abs(after.get(key, 0) - before.get(key, 0)) for key in before.keys() | after.keys()) / whole


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.code, finding.severity, finding.count, finding.impact_ns


def _short(findings: Collection[Finding]) -> str:
    return ", ".join(f"{finding.code} ({finding.severity})" for finding in findings) or "nothing"
