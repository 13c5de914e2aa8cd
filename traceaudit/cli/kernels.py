"""``traceaudit kernels``: what each kernel costs, and how fast it moves its bytes."""

from enum import StrEnum
from typing import Annotated

import typer

from traceaudit.cli import options as opt
from traceaudit.cli import workload_options as run

__all__ = ["kernels"]


class _Grouping(StrEnum):
    """What the launches of a row have in common beside their name."""

    NAME = "name"
    SHAPE = "shape"
    SITE = "site"


Spec = Annotated[
    str | None,
    typer.Option("--spec", metavar="FILE", show_default=False, help="TOML that says what launches of kernels move."),
]
MachineFile = Annotated[
    str | None,
    typer.Option("--machine", metavar="FILE", show_default=False, help="Measured ceilings, as calibrate writes them."),
]
ShapesFrom = Annotated[
    str | None,
    typer.Option(
        "--shapes-from",
        metavar="TRACE",
        show_default=False,
        help="Eager trace of the same model with op shapes, for kernels that have none (graph replay).",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        show_default=False,
        help="config.json, its folder, or a packaged model, for kernels without shapes; needs --batch and --context.",
    ),
]
Batch = Annotated[
    int | None, typer.Option("--batch", metavar="B", show_default=False, help="Requests that run in the step.")
]
ContextLength = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="C", show_default=False, help="Tokens in the cache of a request, or one number each."
    ),
]
Tp = Annotated[int, typer.Option("--tp", metavar="N", help="Tensor-parallel ranks.")]
Ep = Annotated[int, typer.Option("--ep", metavar="N", help="Ranks over which experts are spread.")]
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
GroupBy = Annotated[_Grouping, typer.Option("--group-by", metavar="WHAT", help="A row for each name, shape or site.")]
FullNames = Annotated[bool, typer.Option("--full-names", help="Print kernel names whole.")]
Gains = Annotated[bool, typer.Option("--gains", help="Work out what removing each kernel would save a step.")]


def kernels(
    path: opt.TracePath,
    *,
    spec: Spec = None,
    shapes_from: ShapesFrom = None,
    model: Model = None,
    batch: Batch = None,
    context: ContextLength = None,
    tp: Tp = 1,
    ep: Ep = 1,
    weights_dtype: WeightsDtype = None,
    kv_dtype: KvDtype = None,
    peak_gbps: run.PeakGbps = None,
    peak_tflops: run.PeakTflops = None,
    machine: MachineFile = None,
    group_by: GroupBy = _Grouping.NAME,
    full_names: FullNames = False,
    gains: Gains = False,
    wall_ms: opt.WallMs = None,
    step_annotation: opt.StepAnnotation = None,
    steps: opt.Steps = None,
    rank: opt.Rank = None,
    device: opt.Device = None,
    step: opt.Step = None,
    format_: opt.FormatOption = None,
    output: opt.OutputFile = None,
    strict: opt.Strict = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,  # noqa: ARG001  (the error boundary looks for it)
) -> None:
    """List the kernels and copies, most op time first, with achieved bandwidth."""
    from traceaudit import audit
    from traceaudit.cli.inputs import Inputs
    from traceaudit.cli.output import Output, deliver
    from traceaudit.config import SelectionFlags, StepFlags, WallFlags, reconcile_options
    from traceaudit.config.kernels import KernelFlags, kernel_options

    Inputs(traces=(path, shapes_from), files=(spec, machine), models=(model,)).refuse(output)
    out = Output.of("kernels", format_, output, strict=strict, quiet=quiet, full_names=full_names)
    base = reconcile_options(
        wall=WallFlags(wall_ms=wall_ms),
        steps=StepFlags(step_annotation, steps),
        selection=SelectionFlags(rank, device, step),
    )
    flags = KernelFlags(
        spec=spec,
        peak_gbps=peak_gbps,
        peak_tflops=peak_tflops,
        machine=machine,
        shapes_from=shapes_from,
        model=model,
        batch=batch,
        context=context,
        tp=tp,
        ep=ep,
        weights_dtype=weights_dtype,
        kv_dtype=kv_dtype,
        group_by=group_by,
        gains=gains,
    )
    options = kernel_options(flags, base)
    deliver(lambda progress: audit.kernels(path, options, progress=progress), out)
