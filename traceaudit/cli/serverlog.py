"""``traceaudit serverlog``: the batch that a server really ran, and the step time that follows."""

from typing import TYPE_CHECKING, Annotated

import typer

from traceaudit.cli import options as opt

if TYPE_CHECKING:
    from traceaudit.cli.progress import Report
    from traceaudit.model.results.serverlog import ServerReport

__all__ = ["serverlog"]

LogPaths = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG...",
        show_default=False,
        help="Logs of one run: a file (also .gz, .zst), several (ranks, rotated parts), a folder of them, scraped "
        "Prometheus metrics, or - for standard input.",
    ),
]
ExpectBatch = Annotated[
    int | None,
    typer.Option("--expect-batch", metavar="N", show_default=False, help="Requests that should have run at once."),
]
Load = Annotated[
    int | None,
    typer.Option("--load", metavar="N", show_default=False, help="Which load of the log to look at, counted from 1."),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 3 if the batch is not the expected one, or an engine is absent.")
]


def serverlog(
    log: LogPaths,
    *,
    expect_batch: ExpectBatch = None,
    load: Load = None,
    format_: opt.TextFormatOption = None,
    output: opt.OutputFile = None,
    strict: Strict = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,  # noqa: ARG001  (the error boundary looks for it)
) -> None:
    """Did the server run what you think it ran? Batch, step time, and what holds the batch down."""
    from traceaudit import audit
    from traceaudit.cli.inputs import Inputs
    from traceaudit.cli.output import Output, deliver, write_stderr
    from traceaudit.errors import ExitCode, UsageError
    from traceaudit.model.serverlines import ServerLogOptions

    Inputs(logs=tuple(log)).refuse(output)
    out = Output.of("serverlog", format_, output, strict=False, quiet=quiet)
    for flag, value in (("--expect-batch", expect_batch), ("--load", load)):
        if value is not None and value < 1:
            raise UsageError(f"{flag} must be at least 1, found {value}", hint="give a whole number above 0")
    options = ServerLogOptions(expected=expect_batch, load=load)
    results: list[ServerReport] = []

    def analyse(progress: "Report | None") -> "ServerReport":
        results.append(audit.serverlog(log, options, progress=progress))
        return results[-1]

    deliver(analyse, out)
    if strict and results[-1].findings:
        if not quiet:
            codes = ", ".join(finding.code for finding in results[-1].findings)
            write_stderr([f"traceaudit: {codes}, and --strict asks for more"])
        raise typer.Exit(int(ExitCode.INCONCLUSIVE))
