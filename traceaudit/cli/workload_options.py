"""Options that say which model runs, how it is spread, and on what, as annotated types for Typer."""

from typing import Annotated

import typer

__all__ = [
    "Batch",
    "Checkpoint",
    "Context",
    "Dp",
    "DraftTokens",
    "Ep",
    "Gpu",
    "KvDtype",
    "Model",
    "PeakGbps",
    "PeakTflops",
    "Pp",
    "Tp",
    "WeightsDtype",
]

Model = Annotated[
    str | None,
    typer.Option("--model", metavar="MODEL", show_default=False, help="config.json, its folder, or a packaged model."),
]
Gpu = Annotated[
    str | None, typer.Option("--gpu", metavar="NAME", show_default=False, help="Device, as the runtime names it.")
]
PeakGbps = Annotated[
    str | None,
    typer.Option("--peak-gbps", metavar="N", show_default=False, help="Memory bandwidth in GB/s, before the table's."),
]
PeakTflops = Annotated[
    str | None,
    typer.Option("--peak-tflops", metavar="N", show_default=False, help="Compute peak in TFLOP/s, before the table's."),
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
