"""``traceaudit gaps``: why the device waited."""

from traceaudit.cli import options as opt

__all__ = ["gaps"]


def gaps(
    path: opt.TracePath,
    *,
    wall_ms: opt.WallMs = None,
    step_annotation: opt.StepAnnotation = None,
    steps: opt.Steps = None,
    scheduler: opt.Scheduler = None,
    rank: opt.Rank = None,
    device: opt.Device = None,
    step: opt.Step = None,
    format_: opt.FormatOption = None,
    output: opt.OutputFile = None,
    strict: opt.Strict = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,  # noqa: ARG001  (the error boundary looks for it)
) -> None:
    """Why did the device wait? Gaps by cause, what bounds the steps, and the critical path."""
    from traceaudit import audit
    from traceaudit.cli.inputs import Inputs
    from traceaudit.cli.output import Output, deliver
    from traceaudit.config import SelectionFlags, StepFlags, WallFlags, reconcile_options

    Inputs(traces=(path,)).refuse(output)
    out = Output.of("gaps", format_, output, strict=strict, quiet=quiet)
    options = reconcile_options(
        wall=WallFlags(wall_ms=wall_ms),
        steps=StepFlags(step_annotation, steps),
        selection=SelectionFlags(rank, device, step),
        scheduler=scheduler,
    )
    deliver(lambda progress: audit.gaps(path, options, progress=progress), out)
