"""``traceaudit roofline``: the least time that the hardware allows for a decode step."""

from typing import Annotated

import typer

from traceaudit.cli import options as opt
from traceaudit.cli import workload_options as run

__all__ = ["roofline"]

Trace = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="PATH",
        show_default=False,
        help="Trace of the step: the way from the floor to it, term by term. It may also name device and batch.",
    ),
]
Rate = Annotated[
    str | None,
    typer.Option(
        "--tokens-per-second",
        metavar="R",
        show_default=False,
        help="Output tokens per second of all engines; --concurrency only if the client offered another number.",
    ),
]
Params = Annotated[
    str | None,
    typer.Option(
        "--params", metavar="N", show_default=False, help="Napkin form: weights that a token passes, 13e9 or 13B."
    ),
]
Bits = Annotated[
    str | None, typer.Option("--bits", metavar="N", show_default=False, help="Napkin form: bits of each weight.")
]


def roofline(
    *,
    model: run.Model = None,
    gpu: run.Gpu = None,
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
    params: Params = None,
    bits: Bits = None,
    peak_gbps: run.PeakGbps = None,
    peak_tflops: run.PeakTflops = None,
    wall_ms: opt.WallMs = None,
    tokens_per_second: Rate = None,
    concurrency: opt.Concurrency = None,
    accept_length: opt.AcceptLength = None,
    trace: Trace = None,
    rank: opt.Rank = None,
    device: opt.Device = None,
    format_: opt.TextFormatOption = None,
    output: opt.OutputFile = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,  # noqa: ARG001  (the error boundary looks for it)
) -> None:
    """Give the least time for a decode step, from the model's configuration, the batch and the GPU."""
    from traceaudit import audit
    from traceaudit.cli.inputs import Inputs
    from traceaudit.cli.output import Output, deliver
    from traceaudit.config.floor import roofline_request
    from traceaudit.config.workload import RooflineFlags
    from traceaudit.errors import UsageError

    Inputs(traces=(trace,), models=(model, checkpoint)).refuse(output)
    out = Output.of("roofline", format_, output, strict=False, quiet=quiet)
    flags = RooflineFlags(
        model=model,
        gpu=gpu,
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
        params=params,
        bits=bits,
        peak_gbps=peak_gbps,
        peak_tflops=peak_tflops,
        wall_ms=wall_ms,
        tokens_per_second=tokens_per_second,
        concurrency=concurrency,
        accept_length=accept_length,
    )
    if trace is not None:
        from traceaudit.config import SelectionFlags
        from traceaudit.config.onepage import traced_floor_request

        traced = traced_floor_request(flags, SelectionFlags(rank, device, None))
        deliver(lambda progress: audit.traced_floor(trace, traced, progress=progress), out)
        return
    if rank is not None or device is not None:
        raise UsageError("--rank and --device choose from a trace", hint="add --trace PATH")
    request = roofline_request(flags)
    deliver(lambda _: audit.roofline(request), out)
