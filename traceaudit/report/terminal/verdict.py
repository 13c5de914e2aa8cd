"""What every report begins with: the file, the verdict, and the findings behind it."""

from typing import TYPE_CHECKING

from traceaudit.model.findings import Finding, Severity, Verdict
from traceaudit.report.format import count_text
from traceaudit.report.remarks import finding_notes, verdict_reason, worth_showing
from traceaudit.report.terminal.canvas import Canvas

if TYPE_CHECKING:
    from traceaudit.model.results import Completeness
    from traceaudit.model.trace import TraceSource

__all__ = ["add_findings", "add_title", "add_verdict"]

MOST_FINDINGS = 6
STYLES = {
    Verdict.COMPLETE: "bold green",
    Verdict.PARTIAL: "bold yellow",
    Verdict.UNRELIABLE: "bold red",
    Severity.ERROR: "red",
    Severity.WARNING: "yellow",
    Severity.INFO: "dim",
}


def add_title(canvas: Canvas, command: str, path: str, sources: "tuple[TraceSource, ...]") -> None:
    """Name the command and the files."""
    events = sum(source.events for source in sources)
    files = f"{count_text(len(sources), 'file')}, " if len(sources) != 1 else ""
    canvas.line((f"traceaudit {command}", "bold"), f"  {path}", (f"  {files}{count_text(events, 'event')}", "dim"))


def add_verdict(canvas: Canvas, completeness: "Completeness") -> None:
    """Say whether the trace can be believed, why, and what to do about the worst findings."""
    verdict = completeness.verdict
    canvas.paragraph((f"{verdict}".upper(), STYLES[verdict]), ("  " + verdict_reason(completeness), ""), hang=2)
    full, named = worth_showing(completeness)
    add_findings(canvas, full[:MOST_FINDINGS])
    rest = full[MOST_FINDINGS:]
    if rest:
        codes = ", ".join(dict.fromkeys(finding.code for finding in rest))
        canvas.paragraph((f"{len(rest)} more: {codes}; traceaudit inspect shows all", "dim"), indent=2, hang=2)
    if named:
        codes = ", ".join(dict.fromkeys(finding.code for finding in named))
        canvas.paragraph((f"noted: {codes}", "dim"), indent=2, hang=2)


def add_findings(canvas: Canvas, findings: tuple[Finding, ...], *, examples: bool = False) -> None:
    """Print findings with hints, and with their worst cases if asked."""
    for finding in findings:
        notes = finding_notes(finding)
        canvas.paragraph(
            (f"{finding.severity:<8}", STYLES[finding.severity]),
            (f"{finding.code}  ", "bold"),
            (finding.message, ""),
            (f"  [{notes}]" if notes else "", "dim"),
            indent=2,
            hang=8,
        )
        if examples:
            for example in finding.examples:
                canvas.paragraph((f"e.g. {example}", "dim"), indent=10, hang=5)
        if finding.hint:
            canvas.paragraph(("hint: ", "dim"), (finding.hint, ""), indent=10, hang=6)
