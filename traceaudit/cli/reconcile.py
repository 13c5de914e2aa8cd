"""``traceaudit reconcile``: one ledger from the wall clock to the residual, or the audit on one page."""

from dataclasses import replace
from typing import Annotated

import typer

from traceaudit.cli import options as opt
from traceaudit.cli import workload_options as run

__all__ = ["reconcile"]

ServerLogs = Annotated[
    list[str] | None,
    typer.Option(
        "--server-log",
        metavar="LOG",
        show_default=False,
        help="The server's log of the run; may be repeated (ranks, rotated parts). The report becomes one page.",
    ),
]


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
    server_log: ServerLogs = None,
    model: run.Model = None,
    gpu: run.Gpu = None,
    peak_gbps: run.PeakGbps = None,
    peak_tflops: run.PeakTflops = None,
    batch: run.Batch = None,
    context: run.Context = None,
    tp: run.Tp = 1,
    ep: run.Ep = 1,
    dp: run.Dp = 1,
    pp: run.Pp = 1,
    weights_dtype: run.WeightsDtype = None,
    kv_dtype: run.KvDtype = None,
    draft_tokens: run.DraftTokens = 0,
    checkpoint: run.Checkpoint = None,
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

    One ledger that sums exactly, from the wall clock to what the trace does not contain. With the server's log or the
    model, one page: whether to believe the trace, where the step went, the floor, the batch, the kernels, what to fix.
    """
    from traceaudit import audit
    from traceaudit.cli.inputs import Inputs
    from traceaudit.cli.output import Output, deliver
    from traceaudit.config import SelectionFlags, StepFlags, WallFlags, reconcile_options
    from traceaudit.config.workload import RooflineFlags

    wall = WallFlags(
        wall_ms=wall_ms,
        wall_total_ms=wall_total_ms,
        wall_steps=wall_steps,
        tokens_per_second=tokens_per_second,
        concurrency=concurrency,
        accept_length=accept_length,
        bench_result=bench_result,
    )
    found, chosen = StepFlags(step_annotation, steps), SelectionFlags(rank, device, step)
    logs = tuple(server_log or ())
    Inputs(traces=(path,), logs=logs, files=(bench_result,), models=(model, checkpoint)).refuse(output)
    out = Output.of("reconcile", format_, output, strict=strict, quiet=quiet)
    floor = RooflineFlags(
        model=model,
        gpu=gpu,
        peak_gbps=peak_gbps,
        peak_tflops=peak_tflops,
        batch=batch,
        context=context,
        tp=tp,
        ep=ep,
        dp=dp,
        pp=pp,
        weights_dtype=weights_dtype,
        kv_dtype=kv_dtype,
        draft_tokens=draft_tokens,
        checkpoint=checkpoint,
    )
    if logs or floor != RooflineFlags():
        from traceaudit.config.onepage import onepage_request

        request = onepage_request(
            wall=wall,
            steps=found,
            selection=chosen,
            scheduler=scheduler,
            server_logs=logs,
            floor=floor,
        )
        deliver(lambda progress: audit.onepage(path, request, progress=progress), replace(out, command="onepage"))
        return
    options = reconcile_options(wall=wall, steps=found, selection=chosen, scheduler=scheduler)
    deliver(lambda progress: audit.reconcile(path, options, progress=progress), out)
