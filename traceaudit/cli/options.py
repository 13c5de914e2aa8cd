"""Options that commands share, as annotated types for Typer."""

from enum import StrEnum
from typing import Annotated

import typer

__all__ = [
    "AcceptLength",
    "BenchResult",
    "Concurrency",
    "Debug",
    "Device",
    "Format",
    "FormatOption",
    "OutputFile",
    "Quiet",
    "Rank",
    "Scheduler",
    "Step",
    "StepAnnotation",
    "Steps",
    "Strict",
    "TextFormat",
    "TextFormatOption",
    "TokensPerSecond",
    "TracePath",
    "WallMs",
    "WallSteps",
    "WallTotalMs",
]


class Format(StrEnum):
    """How a report is written."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    CSV = "csv"


class TextFormat(StrEnum):
    """How a report is written that has no single table."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


TracePath = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        show_default=False,
        help="Trace (.json, .json.gz, .json.zst), a folder with one file per rank, or - for standard input.",
    ),
]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        show_default=False,
        help="table, json, markdown or csv; by default what the ending of FILE says, table for .txt, .log or none.",
    ),
]
TextFormatOption = Annotated[
    TextFormat | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        show_default=False,
        help="table, json or markdown; by default what the ending of FILE says, table for .txt, .log or none.",
    ),
]
OutputFile = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", show_default=False, help="Write the report to FILE, whole or not at all."
    ),
]
Rank = Annotated[int | None, typer.Option("--rank", metavar="N", show_default=False, help="Only this rank.")]
Device = Annotated[int | None, typer.Option("--device", metavar="N", show_default=False, help="Only this device.")]
Step = Annotated[
    int | None,
    typer.Option("--step", metavar="N", show_default=False, help="Only this step, counted from 0 in time order."),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 3 if the trace is unreliable; the report is printed all the same.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")]

StepAnnotation = Annotated[
    str | None,
    typer.Option(
        "--step-annotation",
        metavar="REGEX",
        show_default=False,
        help="Host annotations whose name REGEX finds are the steps.",
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        "--steps", metavar="N", show_default=False, help="Take the whole trace as N steps instead of looking for them."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="REGEX",
        show_default=False,
        help="Further annotations and Python frames that count as engine scheduling.",
    ),
]

WallMs = Annotated[
    str | None,
    typer.Option(
        "--wall-ms", metavar="MS", show_default=False, help="Wall time of a step without the profiler, in ms."
    ),
]
WallTotalMs = Annotated[
    str | None,
    typer.Option(
        "--wall-total-ms", metavar="MS", show_default=False, help="Wall time of a whole run, in ms; needs --wall-steps."
    ),
]
WallSteps = Annotated[
    int | None,
    typer.Option("--wall-steps", metavar="N", show_default=False, help="How many steps --wall-total-ms covers."),
]
TokensPerSecond = Annotated[
    str | None,
    typer.Option(
        "--tokens-per-second", metavar="R", show_default=False, help="Output tokens per second; needs --concurrency."
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency", metavar="N", show_default=False, help="Requests that the server runs at once at that rate."
    ),
]
AcceptLength = Annotated[
    str | None,
    typer.Option(
        "--accept-length",
        metavar="X",
        show_default=False,
        help="Tokens a request gains a step, with speculative decoding.",
    ),
]
BenchResult = Annotated[
    str | None,
    typer.Option(
        "--bench-result",
        metavar="FILE",
        show_default=False,
        help="Result file of a serving benchmark to take the wall from.",
    ),
]
