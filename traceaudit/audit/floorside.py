"""The floor of a trace's step: device, batch and context from the flags, the server's log, or the trace itself."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from traceaudit.analyses.bandwidth import peaks_of
from traceaudit.analyses.distance import distance
from traceaudit.analyses.roofline import Measurement
from traceaudit.analyses.serverlog.readings import same_batch
from traceaudit.audit.floor import architecture_of, roofline
from traceaudit.config.floor import RooflineFlags, RooflineRequest, peak_options, roofline_request, workload_of
from traceaudit.errors import UsageError
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.hardware import Peaks
from traceaudit.model.llm.architecture import Architecture
from traceaudit.model.llm.workload import Workload
from traceaudit.model.results import DeviceAudit
from traceaudit.model.results.distance import Distance
from traceaudit.model.results.onepage import FloorSide, NoFloor, ServerSide, StepChoice
from traceaudit.model.results.roofline import Reading, Roofline
from traceaudit.model.results.serverlog import ServerReport
from traceaudit.model.wording import brief

__all__ = ["FloorInput", "engine_batch", "floor_input", "floor_side"]


@dataclass(frozen=True, slots=True)
class FloorInput:
    """The model and what runs of it, the floor's request made whole, and who said what.

    Attributes
    ----------
    request
        None where no peak is known for the device; `missing` then says why.
    asked
        The same at the batch that was asked for, where another one ran.
    """

    model: Architecture
    workload: Workload
    request: RooflineRequest | None
    gpu_source: str
    batch_source: str
    context_source: str
    asked: RooflineRequest | None = None
    missing: NoFloor | None = None


def floor_input(flags: RooflineFlags, view: DeviceView, device: DeviceAudit, server: ServerSide | None) -> FloorInput:
    """Complete what the flags leave open: the device from the trace, batch and context from log or trace.

    Raises
    ------
    UsageError
        If nothing tells the batch or the context.
    """
    batch, batch_source = _batch(flags, device, server)
    context, context_source = _context(flags, server)
    whole = replace(flags, batch=batch, context=context)
    model = architecture_of(flags.model or flags.checkpoint or "", flags.checkpoint, flags.weights_dtype)
    peaks, gpu_source = _peaks(flags, view)
    if isinstance(peaks, NoFloor):
        return FloorInput(model, workload_of(whole), None, gpu_source, batch_source, context_source, missing=peaks)
    made = roofline_request(whole, peaks=peaks)
    asked = _asked_batch(flags, context, batch, server)
    return FloorInput(
        model,
        made.workload,
        made,
        gpu_source,
        batch_source,
        context_source,
        None if asked is None else roofline_request(replace(whole, batch=asked), peaks=peaks),
    )


def floor_side(
    given: FloorInput, view: DeviceView, device: DeviceAudit, step: StepChoice, accept_length: float
) -> FloorSide | None:
    """Return the floor of the step that ran, and the way from it to the step; without a wall, to the window.

    None where no peak is known for the device.
    """
    if given.request is None:
        return None
    walls = [wall for wall in (step.wall, step.given) if wall is not None]
    readings = [Reading(wall.step_ns, wall.source) for wall in walls]
    if not readings and device.ledger.steps:
        readings = [Reading(max(round(device.step.window_ns), 1), "window of the trace, as profiled")]
    measured = Measurement(accept_length, tuple(readings))
    floor = roofline(replace(given.request, measurement=measured))
    way = distance(view, device, floor)
    return FloorSide(
        roofline=replace(floor, distance=way, findings=tuple(_below_floor(floor, way, view))),
        gpu_source=given.gpu_source,
        batch_source=given.batch_source,
        context_source=given.context_source,
        asked=None if given.asked is None else roofline(given.asked),
    )


def _below_floor(floor: Roofline, way: Distance | None, view: DeviceView) -> Iterator[Finding]:
    """Yield a finding where kernels or the step take less time than the hardware allows."""
    steps = 1 if way is None else way.steps
    found = (
        [] if way is None else [(part.name.replace("_", " "), part.took_ns, part.least_ns) for part in way.impossible]
    )
    if floor.gap is not None and floor.gap.factor_of_minimum < 1:
        found.append(("the step", steps * floor.gap.measured.step_ns, steps * floor.floor.minimum_ns))
    if not found:
        return
    faster = ", ".join(f"{what} {brief(took / steps)} of {brief(least / steps)}" for what, took, least in found)
    yield Finding(
        "over_peak",
        Severity.WARNING,
        f"faster than the floor of {floor.setting.model} at batch {floor.setting.batch}: {faster} at least",
        "model, batch, context or device are not this trace's, or kernels' names do not say what they do",
        impact_ns=max(least - took for _, took, least in found),
        rank=view.rank,
        device=view.device,
    )


def engine_batch(report: ServerReport) -> int:
    """Return the requests in the batch of the busiest engine: the batch of one step."""
    return max((engine.steady_batch for engine in report.engines), default=0)


def _peaks(flags: RooflineFlags, view: DeviceView) -> tuple[Peaks | NoFloor | None, str]:
    """Return the peaks of the trace's device, those given by hand before the table's; None leaves them to ``--gpu``."""
    by_hand = "" if flags.peak_gbps is None else ", peak by --peak-gbps"
    if flags.gpu is not None:
        return None, f"--gpu{by_hand}"
    peaks, ceilings = peaks_of(view, peak_options(flags))
    if peaks is None:
        reason, _, hint = ceilings.missing.partition("; ")
        return NoFloor(reason, f"{hint}; --gpu NAME says which device it is"), "the trace"
    return peaks, "--peak-gbps" if peaks.name is None else f"the trace{by_hand}"


def _batch(flags: RooflineFlags, device: DeviceAudit, server: ServerSide | None) -> tuple[int | None, str]:
    """Take the log's batch, else the one given, else the one in the steps' names."""
    if flags.context is not None and "," in flags.context:
        return flags.batch, "--context"
    if server is not None and server.engine_batch:
        if flags.batch is None:
            return server.engine_batch, "the server's log"
        if not same_batch(server.engine_batch, flags.batch):
            return server.engine_batch, f"the server's log, not --batch {flags.batch}"
    if flags.batch is not None:
        return flags.batch, "--batch"
    named = device.steps.batch
    if named is None:
        raise UsageError("nothing tells the batch of the step", hint="--batch B, or --server-log LOG")
    return named, "the names of the steps"


def _context(flags: RooflineFlags, server: ServerSide | None) -> tuple[str, str]:
    if flags.context is not None:
        return flags.context, "--context"
    tokens = None if server is None else server.report.context_tokens
    if tokens is None:
        raise UsageError("no --context", hint="--context C gives the tokens in the cache of a request")
    return str(tokens), "the server's log, tokens over requests"


def _asked_batch(flags: RooflineFlags, context: str, batch: int | None, server: ServerSide | None) -> int | None:
    """Return the batch of an engine that was asked for, where another one ran."""
    if server is None or server.asked is None or batch is None or "," in context:
        return None
    engines = max(flags.dp, len(server.report.engines))
    asked = max(round(server.asked / engines), 1)
    return None if same_batch(batch, asked) else asked
