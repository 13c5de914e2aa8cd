"""`reconcile` with a server's log or a model: the audit on one page."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from traceaudit.analyses.onepage.bound import gain_bound, hidden_kernels, kernel_lines
from traceaudit.analyses.onepage.decision import decide
from traceaudit.analyses.onepage.fixes import Situation
from traceaudit.analyses.onepage.samerun import eager_trace, other_run
from traceaudit.analyses.serverlog.analysis import serverlog
from traceaudit.analyses.serverlog.readings import wall_of_log
from traceaudit.analyses.whatif import KERNELS_RANKED, predict
from traceaudit.audit.floorside import FloorInput, engine_batch, floor_input, floor_side
from traceaudit.audit.kerneltimes import device_kernels
from traceaudit.audit.ledger import reconcile_traces
from traceaudit.audit.reading import Progress, read_traces, recorded_wall
from traceaudit.audit.steptime import longest, step_choice
from traceaudit.config.floor import peak_options
from traceaudit.config.onepage import OnePageRequest
from traceaudit.errors import MissingDataError, UsageError
from traceaudit.ingest.serverlog.reader import read_server_log
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.kerneloptions import KernelOptions
from traceaudit.model.options import ReconcileOptions, Speedup, WhatIfOptions
from traceaudit.model.results import Completeness, DeviceAudit, Reconciliation
from traceaudit.model.results.onepage import OnePage, ServerSide, StepChoice
from traceaudit.model.results.serverlog import ServerReport
from traceaudit.model.results.whatif import DeviceWhatIf
from traceaudit.model.serverlines import ServerLogOptions
from traceaudit.model.trace import Trace
from traceaudit.units import NS_PER_S

__all__ = ["onepage"]

NOT_THE_SAME = "log and trace are not the same run"
SAME_HINT = "record the trace while the server writes this log"


def onepage(path: str, request: OnePageRequest, *, progress: Progress | None = None) -> OnePage:
    """Audit a trace together with what the server logged and what the hardware allows.

    Raises
    ------
    TraceError, UsageError
        As `reconcile`, `serverlog` and `roofline`; also if nothing tells the batch or the device.
    """
    report = _report(request)
    traces = read_traces(path, progress, details=True)
    step = step_choice(request, report, traces)
    options = replace(request.options, wall=step.wall)
    result, views = reconcile_traces(traces, options, path)
    device, view = longest(result, views)
    server = None if report is None else _server_side(report, request, device)
    given = None if request.floor is None else floor_input(request.floor, view, device, server)
    accept = (report.accept_length if report else None) or request.accept_length or 1.0
    floor = None if given is None else floor_side(given, view, device, step, accept)
    rated, found = device_kernels(view, device, _kernel_options(given, request, options))
    unlike = _other_run(report, step, traces, view, device)
    result = _with_findings(
        result,
        (
            *(report.findings if report else ()),
            *(floor.roofline.findings if floor else ()),
            *(Finding("unlike_runs", Severity.WARNING, f"{NOT_THE_SAME}: {reason}", SAME_HINT) for reason in unlike),
            *_eager(report, view, device),
            *found,
        ),
    )
    rate = _rate(request, report, device, step, accept)
    asked = WhatIfOptions(options)
    prediction = _prediction(view, device, asked)
    lines = kernel_lines(rated, prediction, device)
    retime = _retime(view, device, asked, prediction)
    situation = Situation(result.completeness, device, lines, prediction, retime, server, floor, rate, unlike)
    return replace(_page(result, situation, step), no_floor=None if given is None else given.missing)


def _other_run(
    report: ServerReport | None, step: StepChoice, traces: tuple[Trace, ...], view: DeviceView, device: DeviceAudit
) -> tuple[str, ...]:
    """Say what shows that the log is not of the run of the trace."""
    if report is None:
        return ()
    recorded = next((wall for trace in traces if (wall := recorded_wall(trace)) is not None), None)
    return tuple(other_run(report, wall_of_log(step.readings), recorded, view, device))


def _eager(report: ServerReport | None, view: DeviceView, device: DeviceAudit) -> Iterator[Finding]:
    text = "" if report is None else eager_trace(report, view, device)
    if text:
        yield Finding("unlike_runs", Severity.WARNING, f"log and trace differ in graph mode: {text}", SAME_HINT)


def _report(request: OnePageRequest) -> ServerReport | None:
    if not request.server_logs:
        return None
    asked = request.concurrency
    if asked is None and request.floor is not None and request.floor.batch is not None:
        asked = request.floor.batch * request.floor.dp
    report = serverlog(read_server_log(request.server_logs), ServerLogOptions(expected=asked))
    if report.accept_length is None and request.accept_length is not None:
        return replace(report, accept_length=request.accept_length)
    return report


def _server_side(report: ServerReport, request: OnePageRequest, device: DeviceAudit) -> ServerSide:
    asked = report.expected if request.concurrency is None else request.concurrency
    return ServerSide(report, asked, engine_batch(report), device.steps.batch)


def _kernel_options(given: FloorInput | None, request: OnePageRequest, options: ReconcileOptions) -> KernelOptions:
    """With a model, kernels without shapes get their bytes from their roles in it."""
    if given is None or request.floor is None:
        return KernelOptions(base=options)
    return KernelOptions(base=options, peaks=peak_options(request.floor), model=given.model, workload=given.workload)


def _with_findings(result: Reconciliation, found: tuple[Finding, ...]) -> Reconciliation:
    if not found:
        return result
    return replace(result, completeness=Completeness.of((*result.completeness.findings, *found)))


def _rate(
    request: OnePageRequest, report: ServerReport | None, device: DeviceAudit, step: StepChoice, accept: float
) -> float | None:
    """Return the tokens a second now: a client's, the log's, or the batch of the steps over the wall."""
    known = request.tokens_per_second or (report.tokens_per_second if report else None)
    batch = device.steps.batch if report is None else engine_batch(report)
    if known is not None or not batch or step.wall is None:
        return known
    return batch * accept * NS_PER_S / step.wall.step_ns


def _page(result: Reconciliation, situation: Situation, step: StepChoice) -> OnePage:
    gain = None
    if situation.prediction is not None:
        gain = gain_bound(situation.kernels, situation.prediction, situation.retime, situation.tokens_per_second)
    return OnePage(
        reconciliation=result,
        device=situation.audit,
        step=step,
        server=situation.server,
        floor=situation.floor,
        kernels=situation.kernels,
        hidden=hidden_kernels(situation.kernels),
        gain=gain,
        fixes=decide(situation),
    )


def _prediction(view: DeviceView, device: DeviceAudit, options: WhatIfOptions) -> DeviceWhatIf | None:
    """Re-time the step as it is; None where no step has launches and ops."""
    try:
        return predict(view, device, options, ranked=KERNELS_RANKED)
    except MissingDataError:
        return None


def _retime(
    view: DeviceView, device: DeviceAudit, options: WhatIfOptions, prediction: DeviceWhatIf | None
) -> Callable[[tuple[Speedup, ...], bool], float]:
    """Return the re-timing of this device, which remembers its answers; a change without a match changes nothing."""
    known: dict[tuple[object, ...], float] = {}

    def retime(speedups: tuple[Speedup, ...], graph_replay: bool) -> float:  # noqa: FBT001  (called through Callable)
        if prediction is None:
            return 0.0
        key = (*((one.text, one.factor, one.ops) for one in speedups), graph_replay)
        if key not in known:
            changed = replace(options, speedups=speedups, graph_replay=graph_replay)
            try:
                known[key] = predict(view, device, changed, ranked=0).predicted_ns
            except UsageError:
                known[key] = prediction.baseline_ns
        return known[key]

    return retime
