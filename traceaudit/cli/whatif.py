"""``traceaudit whatif``: what a change would buy at most."""

from typing import Annotated

import typer

from traceaudit.cli import options as opt

__all__ = ["whatif"]

Speedups = Annotated[
    list[str] | None,
    typer.Option(
        "--speedup",
        metavar="REGEX=FACTOR",
        show_default=False,
        help="Ops, annotations and frames found by REGEX take 1/FACTOR of their time (2x, 1.5, inf); may be repeated.",
    ),
]
RemoveGaps = Annotated[bool, typer.Option("--remove-gaps", help="No idle time between ops at all.")]
GraphReplay = Annotated[
    bool, typer.Option("--graph-replay", help="One graph launch in place of the launches between two waits.")
]


def whatif(
    path: opt.TracePath,
    *,
    speedup: Speedups = None,
    remove_gaps: RemoveGaps = False,
    graph_replay: GraphReplay = False,
    wall_ms: opt.WallMs = None,
    wall_total_ms: opt.WallTotalMs = None,
    wall_steps: opt.WallSteps = None,
    tokens_per_second: opt.TokensPerSecond = None,
    concurrency: opt.Concurrency = None,
    accept_length: opt.AcceptLength = None,
    bench_result: opt.BenchResult = None,
    step_annotation: opt.StepAnnotation = None,
    rank: opt.Rank = None,
    device: opt.Device = None,
    format_: opt.TextFormatOption = None,
    output: opt.OutputFile = None,
    strict: opt.Strict = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,  # noqa: ARG001  (the error boundary looks for it)
) -> None:
    """What would a change buy? The re-timed step with its range, and the naive bound beside it."""
    from traceaudit import audit
    from traceaudit.cli.inputs import Inputs
    from traceaudit.cli.output import Output, deliver
    from traceaudit.config import SelectionFlags, StepFlags, WallFlags, reconcile_options, whatif_options

    Inputs(traces=(path,), files=(bench_result,)).refuse(output)
    out = Output.of("whatif", format_, output, strict=strict, quiet=quiet)
    base = reconcile_options(
        wall=WallFlags(
            wall_ms=wall_ms,
            wall_total_ms=wall_total_ms,
            wall_steps=wall_steps,
            tokens_per_second=tokens_per_second,
            concurrency=concurrency,
            accept_length=accept_length,
            bench_result=bench_result,
        ),
        steps=StepFlags(step_annotation, None),
        selection=SelectionFlags(rank, device, None),
    )
    options = whatif_options(base, speedups=tuple(speedup or ()), remove_gaps=remove_gaps, graph_replay=graph_replay)
    deliver(lambda progress: audit.whatif(path, options, progress=progress), out)
