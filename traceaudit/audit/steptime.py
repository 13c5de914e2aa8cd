"""The step time and the device that an audit is about."""

from traceaudit.analyses.serverlog.choice import choose_step
from traceaudit.audit.reading import recorded_wall
from traceaudit.config.onepage import OnePageRequest
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.results import DeviceAudit, Reconciliation
from traceaudit.model.results.onepage import StepChoice
from traceaudit.model.results.serverlog import ServerReport
from traceaudit.model.trace import Trace

__all__ = ["longest", "step_choice"]


def step_choice(request: OnePageRequest, report: ServerReport | None, traces: tuple[Trace, ...]) -> StepChoice:
    """Choose the step time: measured as such, by the server's log, by a client's rate, or by the recorder."""
    given = request.options.wall
    recorded = next((wall for trace in traces if (wall := recorded_wall(trace)) is not None), None)
    if report is None:
        reason = "as given" if given is not None else "the only one there is" if recorded is not None else "none given"
        return StepChoice(given or recorded, reason)
    return choose_step(
        report,
        stated=given if request.stated else None,
        derived=None if request.stated else given or recorded,
        tokens_per_second=request.tokens_per_second,
        concurrency=request.concurrency,
    )


def longest(result: Reconciliation, views: list[DeviceView]) -> tuple[DeviceAudit, DeviceView]:
    """Return the device with the longest step."""
    device = max(result.devices, key=lambda audit: audit.step.window_ns)
    return device, next(one for one in views if (one.rank, one.device) == (device.rank, device.device))
