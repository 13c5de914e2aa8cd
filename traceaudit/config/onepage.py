"""From the flags of `reconcile` with a server's log or a model to a checked request."""

from dataclasses import dataclass, fields, replace

from traceaudit.config.common import SelectionFlags, StepFlags, WallFlags, reconcile_options, wall_of
from traceaudit.config.files import existing
from traceaudit.config.floor import RooflineFlags, roofline_request
from traceaudit.errors import UsageError
from traceaudit.model.options import ReconcileOptions

__all__ = ["OnePageRequest", "onepage_request", "traced_floor_request"]

NO_MODEL = RooflineFlags()
ANY_PEAK = "1"


@dataclass(frozen=True, slots=True)
class OnePageRequest:
    """What an audit on one page is made from.

    Attributes
    ----------
    options
        How to find steps and what to look at; its wall is what the user stated or what follows from a rate.
    stated
        Whether that wall was measured as such; else the server's log may know better.
    tokens_per_second, concurrency, accept_length
        What a client saw; None where not given.
    server_logs
        Paths of the logs of one run.
    floor
        The model and its workload as typed; gpu, batch and context may be missing. None without a model.
    """

    options: ReconcileOptions
    stated: bool
    tokens_per_second: float | None
    concurrency: int | None
    accept_length: float | None
    server_logs: tuple[str, ...]
    floor: RooflineFlags | None


def onepage_request(
    *,
    wall: WallFlags,
    steps: StepFlags,
    selection: SelectionFlags,
    scheduler: str | None,
    server_logs: tuple[str, ...],
    floor: RooflineFlags,
) -> OnePageRequest:
    """Check the flags against each other.

    With a server's log, a rate needs no concurrency.

    Raises
    ------
    UsageError
        If a value means nothing, or flags contradict each other or lack a partner.
    UnknownHardwareError
        If the device that was named has no known peaks.
    """
    has_model = floor.model is not None or floor.checkpoint is not None
    if not has_model:
        _refuse_without_model(floor)
    else:
        _check(floor)
    rate_alone = bool(server_logs) and wall.tokens_per_second is not None and wall.concurrency is None
    kept = replace(wall, tokens_per_second=None, accept_length=None) if rate_alone else wall
    options = reconcile_options(wall=kept, steps=steps, selection=selection, scheduler=scheduler)
    if rate_alone:
        wall_of(replace(wall, concurrency=1))  # only to check the values
    rate, concurrency, accept = _client(wall)
    return OnePageRequest(
        options=options,
        stated=wall.wall_ms is not None or wall.wall_total_ms is not None,
        tokens_per_second=rate,
        concurrency=concurrency,
        accept_length=accept,
        server_logs=server_logs,
        floor=floor if has_model else None,
    )


def _refuse_without_model(floor: RooflineFlags) -> None:
    for item in fields(floor):
        if item.name != "model" and getattr(floor, item.name) != getattr(NO_MODEL, item.name):
            flag = "--" + item.name.replace("_", "-")
            raise UsageError(f"{flag} needs --model", hint="--model config.json, or a packaged model's name")


def _check(floor: RooflineFlags) -> None:
    """Refuse what is wrong in any case; device, batch and context may still come from trace and log."""
    roofline_request(
        replace(
            floor,
            batch=1 if floor.batch is None and "," not in (floor.context or "") else floor.batch,
            context="1" if floor.context is None else floor.context,
            peak_gbps=ANY_PEAK if floor.peak_gbps is None and floor.gpu is None else floor.peak_gbps,
        )
    )


def _client(wall: WallFlags) -> tuple[float | None, int | None, float | None]:
    """Return rate, requests at once and accept length as a client saw them, from flags or a benchmark's result."""
    accept = None if wall.accept_length is None else float(wall.accept_length)
    if wall.bench_result is None:
        rate = None if wall.tokens_per_second is None else float(wall.tokens_per_second)
        return rate, wall.concurrency, accept
    from traceaudit.ingest.benchmark import read_benchmark

    result = read_benchmark(existing("--bench-result", wall.bench_result))
    offered = result.max_concurrency or result.batch
    requests = wall.concurrency or (None if offered is None else round(offered))
    return result.output_throughput, requests, result.accept_length


def traced_floor_request(floor: RooflineFlags, selection: SelectionFlags) -> OnePageRequest:
    """Check the flags of `roofline` with a trace, which may name the device and the batch.

    Raises
    ------
    UsageError
        If there is no model, or the flags make no sense in any case.
    """
    if floor.params is not None or floor.bits is not None:
        raise UsageError(
            "--trace needs --model: the napkin form has no parts",
            hint="--model config.json, or a packaged model's name",
        )
    rated = floor.tokens_per_second is not None
    wall = WallFlags(
        wall_ms=floor.wall_ms,
        tokens_per_second=floor.tokens_per_second,
        concurrency=floor.batch if rated and floor.concurrency is None else floor.concurrency,
        accept_length=floor.accept_length if rated else None,
    )
    kept = replace(floor, wall_ms=None, tokens_per_second=None, concurrency=None, accept_length=None)
    if kept.model is None and kept.checkpoint is None:
        raise UsageError("no model", hint="--model config.json, or a packaged model's name")
    return onepage_request(
        wall=wall, steps=StepFlags(), selection=selection, scheduler=None, server_logs=(), floor=kept
    )
