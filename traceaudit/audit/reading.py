"""What every command begins with: the traces of a path, their findings, and the devices to look at."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from traceaudit.analyses.ranks import compare_ranks
from traceaudit.analyses.reconcile import reconcile, scheduler_rows
from traceaudit.errors import TraceFormatError, UsageError
from traceaudit.ingest import locate, rank_in_name, read
from traceaudit.model.deviceview import DeviceView, device_views
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.options import ReconcileOptions
from traceaudit.model.results import DeviceAudit, Wall
from traceaudit.model.schema import HostCategory, Kind
from traceaudit.model.trace import Trace
from traceaudit.model.wording import brief_range

__all__ = ["Progress", "audit_device", "read_traces", "recorded_wall", "refuse_unmatched", "trace_findings", "views_of"]

Progress = Callable[[int, int | None], None]
"""Called while reading with the bytes read so far and the size of the file, None where it is not known."""


def read_traces(path: str, progress: Progress | None, *, details: bool = False) -> tuple[Trace, ...]:
    """Read a trace, or a folder with one file a rank; with what framework ops say of their inputs only on demand.

    Raises
    ------
    TraceError
        If the path holds no usable trace, or two files of one rank.
    """
    paths = locate(path)
    unsaid = [len(paths) > 1 and rank_in_name(one) is None for one in paths]
    traces = tuple(
        read(one, progress=progress, rank=index if unsaid[index] else None, details=details)
        for index, one in enumerate(paths)
    )
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


def trace_findings(traces: Sequence[Trace], path: str) -> tuple[Finding, ...]:
    """Collect what reading found, and what the ranks say of each other."""
    several = len(traces) > 1
    own = [
        replace(finding, rank=trace.ranks[0]) if several and finding.rank is None and trace.ranks else finding
        for trace in traces
        for finding in trace.findings
    ]
    return (*own, *_assumed(traces), *compare_ranks(traces, folder=Path(path).is_dir()))


def _assumed(traces: Sequence[Trace]) -> tuple[Finding, ...]:
    """Return the finding on files that are taken as ranks of one run though nothing in them or their names says so."""
    said = any(trace.world_size is not None or rank_in_name(trace.source.path) is not None for trace in traces)
    if len(traces) < 2 or said or any((trace.ops.kind == Kind.COMM).any() for trace in traces):  # noqa: PLR2004
        return ()
    return (
        Finding(
            "ranks_assumed",
            Severity.WARNING,
            f"{len(traces)} files are taken as ranks of one run, in the order of their names, but none says its rank "
            "and none has a collective: they may be separate runs",
            "read separate runs one by one, or compare them with `traceaudit diff`",
            count=len(traces),
            impact_ns=sum(int((trace.ops.end_ns - trace.ops.start_ns).sum()) for trace in traces),
        ),
    )


def views_of(traces: Sequence[Trace], options: ReconcileOptions, path: str) -> list[DeviceView]:
    """Return the selected devices of all traces, by rank and ordinal.

    Raises
    ------
    TraceFormatError
        If no trace has a device op.
    UsageError
        If the selection leaves none, or the pattern of scheduler rows finds none.
    """
    if not any(len(trace.ops) for trace in traces):
        raise TraceFormatError(
            "no device op in the trace",
            where=path,
            hint="record with ProfilerActivity.CUDA; `traceaudit inspect` shows what the file holds",
        )
    refuse_unmatched(traces, options, path)
    views = [view for trace in traces for view in device_views(trace, options.steps, options.selection)]
    return sorted(views, key=lambda view: (view.rank, view.device))


def refuse_unmatched(traces: Sequence[Trace], options: ReconcileOptions, path: str) -> None:
    """Refuse a rank, a device, or a pattern of scheduler rows that no trace has: a slip would read as an answer.

    Raises
    ------
    UsageError
        If the selection leaves no device, or the pattern finds no host row.
    """
    selection = options.selection
    asked = [flag for flag, value in (("--rank", selection.rank), ("--device", selection.device)) if value is not None]
    if asked:
        present = sorted({(int(r), int(d)) for t in traces for r, d in zip(t.ops.rank, t.ops.device, strict=True)})
        if all(selection.rank not in (None, rank) or selection.device not in (None, one) for rank, one in present):
            listed = ", ".join(f"rank {rank} device {one}" for rank, one in present[:8]) or "no device op"
            hint = f"the trace holds {listed}"
            raise UsageError(f"no device matches {' and '.join(asked)}", where=path, hint=hint)
    pattern = options.scheduler
    if pattern is not None and not any(scheduler_rows(trace, pattern).any() for trace in traces):
        codes = [(trace, trace.host.name[trace.host.category == HostCategory.ANNOTATION]) for trace in traces]
        names = sorted({trace.names[code] for trace, rows in codes for code in rows})
        raise UsageError(
            f"no annotation or Python frame matches --scheduler {pattern.pattern!r}",
            where=path,
            hint=f"annotations in the trace: {', '.join(map(repr, names[:8])) or 'none'}",
        )


def audit_device(view: DeviceView, options: ReconcileOptions) -> DeviceAudit:
    """Reconcile one device with the wall that the user gave, or else with the one that the recorder stored.

    Raises
    ------
    UsageError
        If the step asked for does not exist.
    """
    step = options.selection.step
    steps = len(view.marks.start_ns)
    if step is not None and not 0 <= step < steps:
        raise UsageError(
            f"no step {step}", where=view.trace.source.path, hint=f"the trace has {steps} steps, counted from 0"
        )
    return reconcile(view, options, options.wall or recorded_wall(view.trace))


def recorded_wall(trace: Trace) -> Wall | None:
    """Return the step time that the recorder measured without the profiler, None if the trace has none."""
    if trace.wall is None:
        return None
    repeats = trace.wall.wall_ns_per_step
    low, high = round(min(repeats)), round(max(repeats))
    if len(repeats) == 1:
        return Wall(low, "recorder (one unprofiled repeat)")
    text = f"median of {len(repeats)} unprofiled repeats, {brief_range(low, high)}"
    return Wall(round(median(repeats)), f"recorder ({text})", low, high)
