"""``traceaudit reconcile``: one ledger from the wall clock to the residual."""

from traceaudit.cli import options as opt

__all__ = ["reconcile"]


def reconcile(
    path: opt.TracePath,
    *,
    wall_ms: opt.WallMs = None,
    wall_total_ms: opt.WallTotalMs = None,
    wall_steps: opt.WallSteps = None,
    tokens_per_second: opt.TokensPerSecond = None,
    concurrency: opt.Concurrency = None,
    accept_length: opt.AcceptLength = None,
    bench_result: opt.BenchResult = None,
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
    """Say where the step went.

    One ledger that sums exactly, from the wall clock to what the trace does not contain.
    """
    from traceaudit import audit
    from traceaudit.cli.output import Output, deliver
    from traceaudit.config import SelectionFlags, StepFlags, WallFlags, reconcile_options

    out = Output.of("reconcile", format_, output, strict=strict, quiet=quiet)
    options = reconcile_options(
        wall=WallFlags(
            wall_ms=wall_ms,
            wall_total_ms=wall_total_ms,
            wall_steps=wall_steps,
            tokens_per_second=tokens_per_second,
            concurrency=concurrency,
            accept_length=accept_length,
            bench_result=bench_result,
        ),
        steps=StepFlags(step_annotation, steps),
        selection=SelectionFlags(rank, device, step),
        scheduler=scheduler,
    )
    deliver(lambda progress: audit.reconcile(path, options, progress=progress), out)
