"""`roofline` with a trace: the floor of its step, and the way from the floor to the step."""

from dataclasses import replace

from traceaudit.analyses.bandwidth import misfit, unlike_model
from traceaudit.analyses.trust import other_batch
from traceaudit.audit.floorside import floor_input, floor_side
from traceaudit.audit.ledger import reconcile_traces
from traceaudit.audit.reading import Progress, read_traces
from traceaudit.audit.steptime import longest, step_choice
from traceaudit.config.onepage import OnePageRequest
from traceaudit.errors import UnknownHardwareError, UsageError
from traceaudit.model.results.roofline import Roofline
from traceaudit.model.wording import counted

__all__ = ["traced_floor"]


def traced_floor(path: str, request: OnePageRequest, *, progress: Progress | None = None) -> Roofline:
    """Give the floor of a trace's step, and what lies between the two; same errors as `onepage`."""
    if request.floor is None:
        raise UsageError("no model", hint="--model config.json, or a packaged model's name")
    traces = read_traces(path, progress)
    step = step_choice(request, None, traces)
    result, views = reconcile_traces(traces, replace(request.options, wall=step.wall), path)
    device, view = longest(result, views)
    given = floor_input(request.floor, view, device, None)
    side = floor_side(given, view, device, step, request.accept_length or 1.0)
    if side is None:
        assert given.missing is not None  # noqa: S101  (it says why there is no side)
        raise UnknownHardwareError(given.missing.reason, where=path, hint=given.missing.hint)
    made = side.roofline
    wrong = misfit(view, given.model, given.workload)
    unlike = [unlike_model(view, wrong)] if wrong else []
    batch = other_batch(device, given.workload.batch)
    unlike += [] if batch is None else [batch]
    steps = counted(device.ledger.steps, "step")
    sources = (
        f"step: mean of {steps} of {path}, rank {device.rank}, device {device.device}",
        f"device by {given.gpu_source}, batch by {given.batch_source}, context by {given.context_source}",
    )
    return replace(
        made,
        assumptions=(*sources, *made.assumptions),
        findings=(*result.completeness.findings, *made.findings, *unlike),
    )
