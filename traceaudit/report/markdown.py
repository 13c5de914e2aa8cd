"""Reports for a pull request or an issue. Text from a trace is escaped: no markup, mention or HTML gets through."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from traceaudit.model.findings import Finding, Verdict
from traceaudit.report.format import DOUBT, Scale, bytes_text, count_text, duration, percent, plain, scale_for
from traceaudit.report.kernel_words import (
    LIKE,
    bound_text,
    ceiling_text,
    coverage_text,
    grid_text,
    like_text,
    notes_of,
    peak_text,
    rate_text,
    scope_text,
)
from traceaudit.report.registry import PLAIN_PAGE, Page
from traceaudit.report.remarks import finding_notes, left_out, remarks, steps_text, totals_text, verdict_reason
from traceaudit.report.waterfall import Role, Section, doubted, sections

if TYPE_CHECKING:
    from traceaudit.model.results import (
        Completeness,
        DeviceAudit,
        DeviceKernels,
        Inspection,
        KernelReport,
        Reconciliation,
    )
    from traceaudit.model.trace import TraceSource

__all__ = ["code", "escape", "head", "inspect", "kernels", "markdown_table", "reconcile", "verdict_lines"]

MARKS = {Verdict.COMPLETE: "🟢", Verdict.PARTIAL: "🟡", Verdict.UNRELIABLE: "🔴"}
MOST_STEPS = 50
MOST_KERNELS = 25
SPECIAL = re.compile(r"[\\`*\[\]#|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
WORD_JOINER = "&#8288;"


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is: nothing is emphasised, linked, mentioned, or taken as HTML.

    Examples
    --------
    >>> escape("[a](b) <i> @team")
    '\\[a\\](b) &lt;i&gt; @&#8288;team'
    """
    safe = plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    safe = SPECIAL.sub(r"\\\g<0>", safe)
    return safe.replace("@", f"@{WORD_JOINER}").replace("://", f":{WORD_JOINER}//")


def code(text: str, *, cell: bool = True) -> str:
    r"""Return text as a code span; a pipe is escaped when it stands in the cell of a table, and only there.

    Examples
    --------
    >>> code("a|b"), code("a|b", cell=False), code("a`b")
    ('`a\\|b`', '`a|b`', '``a`b``')
    """
    safe = plain(text) or " "
    if cell:
        safe = safe.replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", safe)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if safe.startswith("`") or safe.endswith("`") else ""
    return f"{fence}{pad}{safe}{pad}{fence}"


def reconcile(result: "Reconciliation", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001  (every renderer takes a page)
    """Write a reconciliation."""
    lines = head("reconcile", result.path, result.completeness)
    for device in result.devices:
        lines += _device(device, result.completeness)
    return "\n".join(lines).rstrip() + "\n"


def kernels(result: "KernelReport", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001
    """Write a kernel report."""
    lines = head("kernels", result.path, result.completeness)
    for device in result.devices:
        lines += _kernels(device, mark=_mark(result.completeness))
    return "\n".join(lines).rstrip() + "\n"


def inspect(result: "Inspection", page: Page = PLAIN_PAGE) -> str:  # noqa: ARG001
    """Write an inspection."""
    lines = head("inspect", result.path, result.completeness, examples=True)
    for source in result.sources:
        lines += _file(source)
    lines += markdown_table(
        ("rank", "device", "name", "streams", "ops", "busy", "span", "steps", "steps from"),
        "rrlrrrrrl",
        (
            (
                str(device.rank),
                str(device.device),
                escape(device.name or "unknown"),
                str(device.streams),
                f"{device.totals.device_ops:,}",
                duration(device.totals.busy_ns) + _mark(result.completeness),
                duration(device.totals.span_ns),
                f"{device.steps:,}",
                f"{device.step_source}: {escape(device.step_reason)}",
            )
            for device in result.devices
        ),
    )
    lines += markdown_table(
        ("rank", "call", "calls", "with ops", "ops", "op time"),
        "rlrrrr",
        (
            (
                str(row.rank),
                "ops without launch row" if row.api is None else code(row.api),
                "" if row.api is None else f"{row.calls:,}",
                "" if row.api is None else f"{row.calls_with_ops:,}",
                f"{row.ops:,}",
                duration(row.op_time_ns),
            )
            for row in result.coverage
        ),
    )
    return "\n".join(lines).rstrip() + "\n"


def _mark(completeness: "Completeness") -> str:
    return DOUBT if completeness.verdict is Verdict.UNRELIABLE else ""


def head(command: str, path: str, completeness: "Completeness", *, examples: bool = False) -> list[str]:
    """Write the title, the verdict and the findings of a report."""
    return [
        f"### traceaudit {command}: {code(path, cell=False)}",
        "",
        *verdict_lines(completeness, examples=examples),
    ]


def verdict_lines(completeness: "Completeness", *, examples: bool = False) -> list[str]:
    """Write the verdict and the findings of a report."""
    verdict = completeness.verdict
    lines = [f"{MARKS[verdict]} **{verdict}**: {escape(verdict_reason(completeness))}", ""]
    for finding in completeness.findings:
        lines += _finding(finding, examples=examples)
    return [*lines, ""] if completeness.findings else lines


def _finding(finding: Finding, *, examples: bool) -> list[str]:
    notes = finding_notes(finding)
    text = f"- {finding.severity} `{finding.code}`: {escape(finding.message)}"
    lines = [text + (f" ({escape(notes)})" if notes else "")]
    if examples:
        lines += [f"  - e.g. {escape(example)}" for example in finding.examples]
    if finding.hint:
        lines.append(f"  - hint: {escape(finding.hint)}")
    return lines


def _device(device: "DeviceAudit", completeness: "Completeness") -> list[str]:
    unreliable = completeness.verdict is Verdict.UNRELIABLE
    wall = f"wall from {device.step.wall_source}" if device.step.wall_source else "no wall given"
    totals = totals_text(device.totals, doubtful=unreliable or doubted(device, "busy_ns"))
    lines = [
        f"#### Rank {device.rank}, device {device.device}, {escape(device.name or 'unknown device')}",
        "",
        f"{escape(steps_text(device))}; {escape(wall)}. {escape(totals)}.",
        "",
    ]
    layout = sections(device, unreliable=unreliable)
    for section in layout:
        lines += _section(section, alone=len(layout) == 1)
    if any(line.share_doubtful for section in layout for line in section.lines):
        lines += [f"{DOUBT} the findings above make these numbers doubtful", ""]
    if device.resolution_error_ns:
        lines += [f"Times are coarse: busy and idle of a step hold to ± {duration(device.resolution_error_ns)}.", ""]
    lines += [f"- {escape(text)}" for text in remarks(device, completeness)]
    return [*lines, "", *_steps(device, unreliable=unreliable)]


def _section(section: Section, *, alone: bool) -> list[str]:
    scale = scale_for(max(abs(line.time_ns) for line in section.lines))
    rows = []
    for line in section.lines:
        name = escape(line.label)
        if line.role is Role.WHOLE:
            name = f"**{name}**"
        elif line.role is Role.PART:
            name = f"&nbsp;&nbsp;{name}"
        time = scale.text(line.time_ns) + (DOUBT if line.doubtful else "")
        share = percent(line.time_ns, section.whole_ns) + (DOUBT if line.share_doubtful else "")
        rows.append((name, time, escape(share)))
    heading = "account" if alone else section.title
    lines = markdown_table((heading, scale.unit, f"of {section.whole}"), "lrr", rows)
    return [*lines[:-1], "", f"0: {', '.join(section.zeros)}", ""] if section.zeros else lines


def _steps(device: "DeviceAudit", *, unreliable: bool) -> list[str]:
    items = device.steps.items
    mark = DOUBT if unreliable or doubted(device, "busy_ns") else ""
    if not items:
        return []
    scale = scale_for(max(item.window_ns for item in items))
    rows = [
        (
            str(item.index),
            code(item.name) if item.name else "",
            str(item.kind),
            "" if item.batch is None else f"{item.batch:,}",
            scale.text(item.window_ns),
            scale.text(item.accounts.busy) + mark,
            f"{item.device_ops:,}",
            "yes" if item.used else "no",
        )
        for item in items[:MOST_STEPS]
    ]
    lines = [f"<details><summary>{count_text(len(items), 'step')}, times in {scale.unit}</summary>", ""]
    lines += markdown_table(("#", "name", "kind", "batch", "window", "busy", "ops", "used"), "rllrrrrl", rows)
    if len(items) > MOST_STEPS:
        lines += [f"{count_text(len(items) - MOST_STEPS, 'more step')} in the CSV and JSON reports.", ""]
    lines += [f"left out: {escape(indices)}: {escape(reason)}\n" for reason, indices in left_out(items).items()]
    return [*lines, "</details>", ""]


def _kernels(device: "DeviceKernels", *, mark: str) -> list[str]:
    lines = [
        f"#### Rank {device.rank}, device {device.device}, {escape(device.name or 'unknown device')}",
        "",
        f"op time {duration(device.op_time_ns)}{mark}, busy {duration(device.busy_ns)}{mark}",
        "",
    ]
    if not device.kernels:
        return lines
    notes = (scope_text(device), coverage_text(device), ceiling_text(device), *notes_of(device))
    lines += [*(f"- {escape(note)}" for note in notes), ""]
    scale: Scale = scale_for(max(row.op_time_ns for row in device.kernels))
    shown, rest = device.kernels[:MOST_KERNELS], device.kernels[MOST_KERNELS:]
    like = LIKE.get(device.grouped_by)
    gains = any(row.save_ns is not None for row in shown)
    saved = scale_for(max((row.save_ns or 0.0 for row in shown), default=0.0))
    lines += markdown_table(
        (
            "kernel",
            f"op time {scale.unit}",
            "share",
            "launches",
            "a step",
            "mean",
            "GB/s",
            "peak",
            "bound",
            "grid",
            "role",
            "flags",
            *([like] if like else []),
            *([f"saves {saved.unit}"] if gains else []),
        ),
        "lrrrrrrrlrll" + ("l" if like else "") + ("r" if gains else ""),
        (
            (
                code(row.shown_name),
                scale.text(row.op_time_ns) + mark,
                percent(row.share_of_op_time_frac, 1) + mark,
                f"{row.launches:,}",
                "-" if row.per_step_ns is None else duration(row.per_step_ns) + mark,
                duration(row.mean_ns),
                rate_text(row),
                peak_text(row),
                bound_text(row) if row.kind == "compute" else row.kind,
                grid_text(row),
                escape(row.role or ""),
                ", ".join(code(flag) for flag in row.flags),
                *([code(like_text(row, device.grouped_by))] if like else []),
                *(["-" if row.save_ns is None else saved.text(row.save_ns) + mark] if gains else []),
            )
            for row in shown
        ),
    )
    if rest:
        time = duration(sum(row.op_time_ns for row in rest))
        lines += [f"{count_text(len(rest), 'more kernel')} with {time} of op time in the CSV and JSON reports.", ""]
    return lines


def _file(source: "TraceSource") -> list[str]:
    versions = ", ".join(f"{key} {value}" for key, value in source.versions.items()) or "none named"
    counts = sorted(source.categories.items(), key=lambda item: -item[1])
    categories = ", ".join(f"{category or '(none)'} [{phase}] {count:,}" for (category, phase), count in counts)
    size = f"{count_text(source.events, 'event')}, {bytes_text(source.bytes_read)} of JSON"
    return [
        f"- {code(source.path, cell=False)}: {size}, resolution {duration(source.time_resolution_ns)}",
        f"  - writer: {escape(source.writer or 'unknown')}",
        f"  - versions: {escape(versions)}",
        f"  - categories: {escape(categories or 'none')}",
        "",
    ]


def markdown_table(headings: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """Lay out a table with a side (l or r) for each column, and a blank line after it; nothing if it has no rows."""
    body = [f"| {' | '.join(row)} |" for row in rows]
    if not body:
        return []
    rule = " | ".join("---:" if side == "r" else "---" for side in sides)
    return [f"| {' | '.join(headings)} |", f"| {rule} |", *body, ""]
