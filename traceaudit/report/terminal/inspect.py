"""`inspect` on a terminal: what the file is, what it holds, and all findings with their worst cases."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from traceaudit.model.findings import Verdict
from traceaudit.report.format import bytes_text, count_text, duration
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.remarks import totals_text, verdict_reason
from traceaudit.report.terminal.canvas import Canvas, Column
from traceaudit.report.terminal.verdict import STYLES, add_findings, add_title
from traceaudit.units import NS_PER_S

if TYPE_CHECKING:
    from traceaudit.model.results import DeviceInventory, Inspection, LaunchCoverage
    from traceaudit.model.trace import TraceSource

__all__ = ["inspect"]

MOST_FILES = 4
MOST_CATEGORIES = 24


def inspect(result: "Inspection", page: Page = PLAIN_PAGE) -> str:
    """Write an inspection."""
    canvas = Canvas(page)
    completeness = result.completeness
    add_title(canvas, "inspect", result.path, result.sources)
    canvas.paragraph(
        (f"{completeness.verdict}".upper(), STYLES[completeness.verdict]),
        ("  " + verdict_reason(completeness), ""),
        hang=2,
    )
    for source in result.sources[:MOST_FILES]:
        _file(canvas, source, named=len(result.sources) > 1)
    if len(result.sources) > MOST_FILES:
        text = f"{count_text(len(result.sources) - MOST_FILES, 'more file')}; --format json describes each"
        canvas.paragraph((text, "dim"), indent=2)
    _devices(canvas, result)
    _coverage(canvas, result.coverage, ranks=len(result.ranks) > 1)
    canvas.heading("Findings", "" if completeness.findings else "none")
    add_findings(canvas, completeness.findings, examples=True)
    return canvas.text()


def _file(canvas: Canvas, source: "TraceSource", *, named: bool) -> None:
    canvas.heading("File", source.path if named else "")
    resolution = "1 ns" if source.time_resolution_ns == 1 else duration(source.time_resolution_ns)
    facts = {
        "writer": source.writer or "unknown",
        "size": f"{bytes_text(source.bytes_read)} of JSON, {count_text(source.events, 'event')}",
        "times": f"resolution {resolution}",
        "capture": _capture(source),
        "versions": ", ".join(f"{key} {value}" for key, value in source.versions.items()) or "none named",
        "categories": _categories(source),
    }
    for name, text in facts.items():
        canvas.paragraph((f"{name:<12}", "dim"), (text, ""), indent=2, hang=12)


def _capture(source: "TraceSource") -> str:
    parts = []
    if source.capture_ns is not None:
        start_ns, end_ns = source.capture_ns
        parts.append(f"{duration(end_ns - start_ns)} from {duration(start_ns)}")
    if source.origin_ns is not None:
        parts.append(f"time 0 is {_utc(source.origin_ns)}")
    return ", ".join(parts) or "not stated"


def _utc(origin_ns: int) -> str:
    try:
        return datetime.fromtimestamp(origin_ns // NS_PER_S, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{origin_ns} ns after 1970"


def _categories(source: "TraceSource") -> str:
    counts = sorted(source.categories.items(), key=lambda item: -item[1])
    texts = [
        f"{category or '(none)'}{'' if phase in ('X', '') else f' [{phase}]'} {count:,}"
        for (category, phase), count in counts[:MOST_CATEGORIES]
    ]
    if len(counts) > MOST_CATEGORIES:
        texts.append(f"{len(counts) - MOST_CATEGORIES} rarer ones")
    return ", ".join(texts) or "none"


def _devices(canvas: Canvas, result: "Inspection") -> None:
    ranks = f"{len(result.ranks)} here" + (f" of {result.world_size}" if result.world_size is not None else "")
    canvas.heading("Devices", f"{count_text(len(result.devices), 'device')} with ops; ranks: {ranks}")
    for device in result.devices:
        _device(canvas, device, unreliable=result.completeness.verdict is Verdict.UNRELIABLE)


def _device(canvas: Canvas, device: "DeviceInventory", *, unreliable: bool) -> None:
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in device.ops_by_kind.items())
    canvas.paragraph(
        (f"rank {device.rank}, device {device.device}  ", ""),
        (device.name or "unknown device", "bold"),
        (f"  {count_text(device.streams, 'stream')}; {kinds or 'no ops'}", ""),
        indent=2,
        hang=4,
    )
    canvas.paragraph((totals_text(device.totals, doubtful=unreliable), ""), indent=6, hang=2)
    canvas.paragraph(
        (f"{count_text(device.steps, 'step')} from {device.step_source}: {device.step_reason}", ""), indent=6, hang=2
    )


def _coverage(canvas: Canvas, rows: "tuple[LaunchCoverage, ...]", *, ranks: bool) -> None:
    if not rows:
        return
    canvas.heading("Launch coverage", "calls that enqueue, and the device ops they have")
    columns = [
        Column("call", flexible=True),
        Column("calls", right=True),
        Column("with ops", right=True),
        Column("without", right=True),
        Column("ops", right=True),
        Column("op time", right=True),
    ]
    if ranks:
        columns.insert(0, Column("rank", right=True))
    canvas.table(columns, [_covered(row, rank=ranks) for row in rows])


def _covered(row: "LaunchCoverage", *, rank: bool) -> list[str]:
    calls = (
        ["-", "-", "-"]
        if row.api is None
        else [f"{n:,}" for n in (row.calls, row.calls_with_ops, row.calls - row.calls_with_ops)]
    )
    cells = [row.api or "(ops without launch row)", *calls, f"{row.ops:,}", duration(row.op_time_ns)]
    return [str(row.rank), *cells] if rank else cells
