"""``traceaudit diff``: what changed between two sides, kernel by kernel."""

from typing import TYPE_CHECKING

import typer

from traceaudit.cli import comparison_options as copt
from traceaudit.cli import options as opt

if TYPE_CHECKING:
    from traceaudit.cli.progress import Report
    from traceaudit.model.results.diff import CheckResult

__all__ = ["diff"]


def diff(
    paths: copt.RunPaths,
    *,
    allow: copt.Allow = None,
    step_annotation: opt.StepAnnotation = None,
    steps: opt.Steps = None,
    rank: opt.Rank = None,
    device: opt.Device = None,
    format_: copt.FormatOption = None,
    output: opt.OutputFile = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,  # noqa: ARG001  (the error boundary looks for it)
) -> None:
    """Compare two sides kernel by kernel, with the noise of each difference; check is what fails on it."""
    from traceaudit.audit.comparison import allowed, compare, read_side, sides_of
    from traceaudit.cli.inputs import Inputs
    from traceaudit.config import SelectionFlags, StepFlags, reconcile_options
    from traceaudit.errors import ExitCode, UsageError
    from traceaudit.model.budget import Budget

    base, head = sides_of(paths)
    if not base:
        raise UsageError("diff needs two sides", hint="write traceaudit diff BASE HEAD")
    Inputs(traces=(*base, *head)).refuse(output)
    options = reconcile_options(steps=StepFlags(step_annotation, steps), selection=SelectionFlags(rank, device))
    budget = Budget(allow=allowed(allow or ()))

    def analyse(progress: "Report | None") -> "CheckResult":
        measured = read_side("base", base, options, progress=progress)
        return compare(measured, read_side("head", head, options, progress=progress), budget)

    result = copt.deliver_comparison("diff", analyse, format_, output, quiet=quiet)
    if not result.diff.comparable:
        raise typer.Exit(int(ExitCode.INCONCLUSIVE))
