"""Options that `diff` and `check` share, and how their report is delivered."""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from traceaudit.cli.options import Format
    from traceaudit.cli.progress import Report
    from traceaudit.model.results.diff import CheckResult

__all__ = ["AbsoluteUs", "Allow", "ComparisonFormat", "FormatOption", "Relative", "RunPaths", "deliver_comparison"]


class ComparisonFormat(StrEnum):
    """How a comparison is written."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    GITHUB = "github"


ENDINGS = {
    ".json": ComparisonFormat.JSON,
    ".md": ComparisonFormat.MARKDOWN,
    ".markdown": ComparisonFormat.MARKDOWN,
    ".xml": ComparisonFormat.JUNIT,
}

RunPaths = Annotated[
    list[str],
    typer.Argument(
        metavar="BASE HEAD",
        show_default=False,
        help="The two sides, each a trace, a folder of repeated runs or a quoted glob; or BASE... vs HEAD... with the "
        "word vs between the files of each.",
    ),
]
FormatOption = Annotated[
    ComparisonFormat | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        show_default=False,
        help="table, json, markdown, junit or github (annotations); by default by the ending of FILE, else table.",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="FACT",
        show_default=False,
        help="Compare although this differs: device, dtype, batch, context, graph, step_kind or all; may be repeated.",
    ),
]
Relative = Annotated[
    float | None,
    typer.Option("--relative", metavar="FRAC", show_default=False, help="Growth allowed as a share of base, as 0.02."),
]
AbsoluteUs = Annotated[
    float | None,
    typer.Option("--absolute-us", metavar="US", show_default=False, help="Growth allowed in µs a step."),
]


def deliver_comparison(
    command: str,
    analyse: "Callable[[Report | None], CheckResult]",
    format_: ComparisonFormat | None,
    path: str | None,
    *,
    quiet: bool,
) -> "CheckResult":
    """Run the analysis, write its report and return the result."""
    from traceaudit.cli.output import STDOUT, Output, deliver, format_by_ending

    if format_ is None:
        format_ = ComparisonFormat(format_by_ending(path, ENDINGS))
    results: list[CheckResult] = []

    def remember(progress: "Report | None") -> "CheckResult":
        results.append(analyse(progress))
        return results[-1]

    target = None if path == STDOUT else path
    deliver(remember, Output(command, cast("Format", format_), target, strict=False, quiet=quiet))
    return results[-1]
