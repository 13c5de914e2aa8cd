"""``traceaudit roofline``: the least time that the hardware allows for a decode step."""

from typing import Annotated

import typer

from traceaudit.cli import options as opt

__all__ = ["roofline"]

Model = Annotated[
    str | None,
    typer.Option("--model", metavar="MODEL", show_default=False, help="config.json, its folder, or a packaged model."),
]
Gpu = Annotated[
    str | None, typer.Option("--gpu", metavar="NAME", show_default=False, help="Device, as the runtime names it.")
]
Batch = Annotated[
    int | None,
    typer.Option(
        "--batch", metavar="B", show_default=False, help="Requests that run in the step, by the server's log."
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="C",
        show_default=False,
        help="Tokens in the cache of a request, or one number each: 512,768.",
    ),
]
Tp = Annotated[int, typer.Option("--tp", metavar="N", help="Tensor-parallel ranks.")]
Ep = Annotated[int, typer.Option("--ep", metavar="N", help="Ranks over which experts are spread.")]
Dp = Annotated[int, typer.Option("--dp", metavar="N", help="Engines, each with a batch of its own.")]
Pp = Annotated[int, typer.Option("--pp", metavar="N", help="Pipeline stages.")]
WeightsDtype = Annotated[
    str | None,
    typer.Option(
        "--weights-dtype",
        metavar="FORMAT",
        show_default=False,
        help="How weights are stored: fp8, or experts=mxfp4,head=bf16.",
    ),
]
KvDtype = Annotated[
    str | None,
    typer.Option("--kv-dtype", metavar="TYPE", show_default=False, help="How the cache is stored: bf16, fp8 …"),
]
DraftTokens = Annotated[
    int, typer.Option("--draft-tokens", metavar="N", help="Drafted tokens that a request verifies in the step.")
]
Checkpoint = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        show_default=False,
        help="Folder of safetensors files, for the exact bytes of each part.",
    ),
]
PeakGbps = Annotated[
    str | None,
    typer.Option("--peak-gbps", metavar="N", show_default=False, help="Memory bandwidth in GB/s, before the table's."),
]
PeakTflops = Annotated[
    str | None,
    typer.Option("--peak-tflops", metavar="N", show_default=False, help="Compute peak in TFLOP/s, before the table's."),
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
    model: Model = None,
    gpu: Gpu = None,
    batch: Batch = None,
    context: Context = None,
    tp: Tp = 1,
    ep: Ep = 1,
    dp: Dp = 1,
    pp: Pp = 1,
    weights_dtype: WeightsDtype = None,
    kv_dtype: KvDtype = None,
    draft_tokens: DraftTokens = 0,
    checkpoint: Checkpoint = None,
    params: Params = None,
    bits: Bits = None,
    peak_gbps: PeakGbps = None,
    peak_tflops: PeakTflops = None,
    wall_ms: opt.WallMs = None,
    tokens_per_second: opt.TokensPerSecond = None,
    concurrency: opt.Concurrency = None,
    accept_length: opt.AcceptLength = None,
    format_: opt.FormatOption = None,
    output: opt.OutputFile = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,  # noqa: ARG001  (the error boundary looks for it)
) -> None:
    """Give the least time for a decode step, from the model's configuration, the batch and the GPU."""
    from traceaudit import audit
    from traceaudit.cli.output import Output, deliver
    from traceaudit.config.floor import RooflineFlags, roofline_request

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
    request = roofline_request(flags)
    deliver(lambda _: audit.roofline(request), out)
