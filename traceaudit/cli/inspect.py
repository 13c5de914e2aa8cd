"""``traceaudit inspect``: what a trace is, and whether to believe it."""

from traceaudit.cli import options as opt

__all__ = ["inspect"]


def inspect(
    path: opt.TracePath,
    *,
    step_annotation: opt.StepAnnotation = None,
    steps: opt.Steps = None,
    rank: opt.Rank = None,
    device: opt.Device = None,
    step: opt.Step = None,
    format_: opt.TextFormatOption = None,
    output: opt.OutputFile = None,
    strict: opt.Strict = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,  # noqa: ARG001  (the error boundary looks for it)
) -> None:
    """Say what a trace is and whether to believe it.

    The first thing to run on an unknown file.
    """
    from traceaudit import audit
    from traceaudit.cli.inputs import Inputs
    from traceaudit.cli.output import Output, deliver
    from traceaudit.config import SelectionFlags, StepFlags, reconcile_options

    Inputs(traces=(path,)).refuse(output)
    out = Output.of("inspect", format_, output, strict=strict, quiet=quiet)
    options = reconcile_options(
        steps=StepFlags(step_annotation, steps),
        selection=SelectionFlags(rank, device, step),
    )
    deliver(lambda progress: audit.inspect(path, options, progress=progress), out)
