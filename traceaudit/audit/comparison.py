"""`diff` and `check`: from paths to sides, and from sides to a judgement."""

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from traceaudit.analyses.diff import DiffOptions, diff
from traceaudit.analyses.gate import baseline_regressed, judge
from traceaudit.analyses.reconcile import reconcile as reconcile_device
from traceaudit.analyses.trust import timeline_findings
from traceaudit.audit.reading import Progress
from traceaudit.errors import ConfigError, TraceFormatError, UsageError
from traceaudit.ingest import locate, read
from traceaudit.ingest.baseline import baseline_text, read_baseline
from traceaudit.model.budget import Budget
from traceaudit.model.deviceview import DeviceView, device_views
from traceaudit.model.findings import CODES, Finding, Severity, verdict_of
from traceaudit.model.likeness import FACTS
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.results.completeness import Completeness
from traceaudit.model.results.diff import CheckResult
from traceaudit.model.runs import RunSummary, Side
from traceaudit.model.sampling import summarise
from traceaudit.model.trace import Trace

__all__ = [
    "BASELINE_FOLDER",
    "SEPARATOR",
    "SideTraces",
    "allowed",
    "baseline_path",
    "compare",
    "load_baseline",
    "read_side",
    "save_baseline",
    "sides_of",
]

SEPARATOR = "vs"
"""Stands between the files of base and those of head where there are more than two."""

BASELINE_FOLDER = ".traceaudit/baselines"


@dataclass(frozen=True, slots=True)
class SideTraces:
    """A side with what reading its traces found."""

    side: Side
    findings: tuple[Finding, ...] = ()


def sides_of(paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Part the paths into those of base and those of head; base is empty where there is one side only.

    Raises
    ------
    UsageError
        If it is not clear where base ends.

    Examples
    --------
    >>> sides_of(["a.json", "b.json"]), sides_of(["a1", "a2", "vs", "b1"]), sides_of(["b.json"])
    ((('a.json',), ('b.json',)), (('a1', 'a2'), ('b1',)), ((), ('b.json',)))
    """
    if paths.count(SEPARATOR) == 1:
        at = paths.index(SEPARATOR)
        base, head = tuple(paths[:at]), tuple(paths[at + 1 :])
        if not base or not head:
            raise UsageError(f"nothing stands on one side of {SEPARATOR!r}", hint="write BASE... vs HEAD...")
        return base, head
    if len(paths) == 1:
        return (), (paths[0],)
    if len(paths) == 2:  # noqa: PLR2004  (two paths are two sides)
        return (paths[0],), (paths[1],)
    raise UsageError(
        f"it is not clear which of the {len(paths)} paths are the base",
        hint="put vs between the sides (base/*.json vs head/*.json), or give each as a folder or a quoted glob",
    )


def allowed(values: Sequence[str]) -> frozenset[str]:
    """Return the facts that may differ, from the values of ``--allow``.

    Raises
    ------
    UsageError
        If one is unknown or empty.
    """
    names = [name.strip() for value in values for name in value.split(",")]
    for name in names:
        if name not in (*FACTS, "all"):
            raise UsageError(f"--allow does not know {name!r}", hint=f"take some of {', '.join((*FACTS, 'all'))}")
    return frozenset(names)


def baseline_path(name: str) -> str:
    """Return the file of a baseline: its name's place in the usual folder, or the path that was given."""
    if os.sep in name or name.endswith(".json"):
        return name
    if name in ("", ".", ".."):
        raise UsageError(f"no name for a baseline: {name!r}")
    return str(Path(BASELINE_FOLDER, f"{name}.json"))


def save_baseline(side: Side, name: str) -> tuple[str, str]:
    """Return path and text of a side's baseline, and make its folder."""
    path = baseline_path(name)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigError(f"cannot make the folder of the baseline: {exc.strerror or exc}", where=path) from exc
    return path, baseline_text(side, name)


def load_baseline(name: str) -> SideTraces:
    """Read a baseline by name or path."""
    return SideTraces(read_baseline(baseline_path(name)))


def read_side(
    label: str, paths: Sequence[str], options: ReconcileOptions, *, progress: Progress | None = None
) -> SideTraces:
    """Read the traces of one side, each a run of the same code.

    Raises
    ------
    TraceError
        If there is no trace, or one that cannot be used.
    UsageError
        If none has the rank or device asked for.
    """
    runs: list[RunSummary] = []
    findings: list[Finding] = []
    for path in _files(paths):
        trace = read(path, progress=progress, details=False)
        view = _device(trace, options)
        if view is None:
            continue
        run, found = _run(trace, view, options)
        runs.append(run)
        findings += [_on_side(finding, label, path, several=len(paths) > 1) for finding in found]
    if not runs:
        raise UsageError(
            "no trace of this side has the rank or device asked for",
            where=" ".join(paths),
            hint="traceaudit inspect lists them",
        )
    return SideTraces(Side.of(" ".join(paths), tuple(runs)), tuple(findings))


def compare(base: SideTraces, head: SideTraces, budget: Budget, *, record: SideTraces | None = None) -> CheckResult:
    """Compare and judge two sides, and the base against its own record where there is one."""
    options = DiffOptions(confidence=budget.confidence, allow=budget.allow)
    check = judge(diff(base.side, head.side, options, (*base.findings, *head.findings)), budget)
    if record is None:
        return check
    regressed = baseline_regressed(judge(diff(record.side, base.side, options), budget))
    if regressed is None:
        return check
    findings = (*check.diff.findings, regressed)
    return replace(check, diff=replace(check.diff, findings=findings), completeness=Completeness.of(findings))


def _files(paths: Sequence[str]) -> list[str]:
    """Return the trace files of a side, sorted, each once."""
    found: dict[str, str] = {}
    for path in paths:
        expand = glob.has_magic(path) and not Path(path).exists()
        matches = sorted(glob.glob(path, recursive=True)) if expand else [path]  # noqa: PTH207  (absolute patterns, too)
        for match in matches or [path]:
            for file in locate(match):
                found.setdefault(file if file == "-" else os.path.realpath(file), file)
    return [found[key] for key in sorted(found)]


def _device(trace: Trace, options: ReconcileOptions) -> DeviceView | None:
    """Return the device to compare: the one with most op time among those selected."""
    if not len(trace.ops):
        raise TraceFormatError(
            "no device op in the trace",
            where=trace.source.path,
            hint="record with ProfilerActivity.CUDA; `traceaudit inspect` shows what the file holds",
        )
    views = list(device_views(trace, options.steps, options.selection))
    return max(views, key=lambda view: (view.totals.op_time_ns, -view.rank, -view.device), default=None)


def _run(trace: Trace, view: DeviceView, options: ReconcileOptions) -> tuple[RunSummary, list[Finding]]:
    audit = reconcile_device(view, options, None)
    findings = [*trace.findings, *timeline_findings(view, audit)]
    about = [
        finding for finding in findings if finding.severity is not Severity.INFO and CODES[finding.code].about_trace
    ]
    doubts = tuple(sorted({finding.code for finding in about}))
    return summarise(view, audit, verdict=verdict_of(findings), doubts=doubts), about


def _on_side(finding: Finding, label: str, path: str, *, several: bool) -> Finding:
    where = f"{label}, {Path(path).name}" if several else label
    return replace(finding, message=f"{where}: {finding.message}")
