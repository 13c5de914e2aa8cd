"""Which renderer writes which report.

A renderer is a plain function ``(result, page) -> text``. The table names them by module, so that JSON output never
imports what only a terminal needs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias, cast

from traceaudit.errors import UsageError

if TYPE_CHECKING:
    from traceaudit.model.results import Inspection, KernelReport, Reconciliation
    from traceaudit.model.results.calibration import Calibration
    from traceaudit.model.results.diff import CheckResult
    from traceaudit.model.results.gaps import GapReport
    from traceaudit.model.results.onepage import OnePage
    from traceaudit.model.results.roofline import Roofline
    from traceaudit.model.results.serverlog import ServerReport
    from traceaudit.model.results.whatif import WhatIf

__all__ = ["PLAIN_PAGE", "RENDERERS", "Page", "Renderer", "Result", "formats_of", "render"]


@dataclass(frozen=True, slots=True)
class Page:
    """What a report is written on: columns, whether colour shows, and whether kernel names stand whole."""

    width: int = 100
    color: bool = False
    full_names: bool = False


PLAIN_PAGE = Page()
"""What a pipe or a file gets: 100 columns without colour."""


Result: TypeAlias = (
    "Reconciliation | OnePage | KernelReport | Inspection | GapReport | WhatIf | Roofline | ServerReport | CheckResult"
    " | Calibration"
)
Renderer = Callable[[Result, Page], str]

RENDERERS: dict[tuple[str, str], str] = {
    ("reconcile", "table"): "traceaudit.report.terminal.reconcile",
    ("reconcile", "json"): "traceaudit.report.jsondoc",
    ("reconcile", "markdown"): "traceaudit.report.markdown",
    ("reconcile", "csv"): "traceaudit.report.csvtable",
    ("onepage", "table"): "traceaudit.report.onepage_table",
    ("onepage", "json"): "traceaudit.report.onepage_json",
    ("onepage", "markdown"): "traceaudit.report.onepage_markdown",
    ("onepage", "csv"): "traceaudit.report.onepage_csv",
    ("kernels", "table"): "traceaudit.report.terminal.kernels",
    ("kernels", "json"): "traceaudit.report.jsondoc",
    ("kernels", "markdown"): "traceaudit.report.markdown",
    ("kernels", "csv"): "traceaudit.report.csvtable",
    ("inspect", "table"): "traceaudit.report.terminal.inspect",
    ("inspect", "json"): "traceaudit.report.jsondoc",
    ("inspect", "markdown"): "traceaudit.report.markdown",
    ("serverlog", "table"): "traceaudit.report.serverlog_table",
    ("serverlog", "json"): "traceaudit.report.serverlog_json",
    ("serverlog", "markdown"): "traceaudit.report.serverlog_markdown",
    ("gaps", "table"): "traceaudit.report.gaps_table",
    ("gaps", "json"): "traceaudit.report.gaps_json",
    ("gaps", "markdown"): "traceaudit.report.gaps_markdown",
    ("gaps", "csv"): "traceaudit.report.gaps_csv",
    ("whatif", "table"): "traceaudit.report.whatif_table",
    ("whatif", "json"): "traceaudit.report.whatif_json",
    ("whatif", "markdown"): "traceaudit.report.whatif_markdown",
    ("roofline", "table"): "traceaudit.report.roofline_table",
    ("roofline", "json"): "traceaudit.report.roofline_json",
    ("roofline", "markdown"): "traceaudit.report.roofline_markdown",
    ("diff", "table"): "traceaudit.report.comparison_table",
    ("diff", "json"): "traceaudit.report.comparison_json",
    ("diff", "markdown"): "traceaudit.report.comparison_markdown",
    ("diff", "junit"): "traceaudit.report.comparison_junit",
    ("diff", "github"): "traceaudit.report.comparison_github",
    ("check", "table"): "traceaudit.report.comparison_table",
    ("check", "json"): "traceaudit.report.comparison_json",
    ("check", "markdown"): "traceaudit.report.comparison_markdown",
    ("check", "junit"): "traceaudit.report.comparison_junit",
    ("check", "github"): "traceaudit.report.comparison_github",
    ("calibrate", "table"): "traceaudit.report.calibration",
    ("calibrate", "json"): "traceaudit.report.calibration_json",
}


def formats_of(command: str) -> tuple[str, ...]:
    """Return the formats that a command can be written in.

    Examples
    --------
    >>> formats_of("inspect")
    ('table', 'json', 'markdown')
    """
    return tuple(format_ for known, format_ in RENDERERS if known == command)


def render(command: str, format_: str, result: Result, page: Page = PLAIN_PAGE) -> str:
    """Write a result as text that ends with a newline.

    Raises
    ------
    UsageError
        If the command has no report of that format.
    """
    module = RENDERERS.get((command, format_))
    if module is None:
        raise UsageError(f"{command} has no {format_} report", hint=f"take one of {', '.join(formats_of(command))}")
    renderer = cast("Renderer", getattr(import_module(module), command))
    return renderer(result, page)
