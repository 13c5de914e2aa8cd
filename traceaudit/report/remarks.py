"""The few sentences of a reconciliation that an engineer would act on, and those about the trace itself."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from traceaudit.model.findings import CODES, Finding, Severity, Verdict
from traceaudit.report.format import DOUBT, count_text, duration, factor, percent, plain
from traceaudit.report.waterfall import DILATED, doubted, label_of

if TYPE_CHECKING:
    from traceaudit.model.results import Completeness, DeviceAudit, StepItem, Totals

__all__ = ["finding_notes", "left_out", "remarks", "steps_text", "totals_text", "verdict_reason", "worth_showing"]

MOST = 4
MOST_INDICES = 12
NOTABLE_FRAC = 0.02
BUSY_FRAC = 0.9


def verdict_reason(completeness: "Completeness") -> str:
    """Say in one line why the verdict is what it is."""
    about = [finding for finding in completeness.findings if CODES[finding.code].about_trace]
    errors = [finding for finding in about if finding.severity is Severity.ERROR]
    warnings = [finding for finding in about if finding.severity is Severity.WARNING]
    if completeness.verdict is Verdict.UNRELIABLE:
        return f"{_codes(errors)}: numbers marked {DOUBT} cannot be trusted"
    if completeness.verdict is Verdict.PARTIAL:
        return f"{_codes(warnings)}: see below what is missing and what that is worth"
    return "no row is missing and none contradicts another, as far as the trace can tell"


def worth_showing(completeness: "Completeness") -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Part the findings into those to print in full and those to name."""
    full = tuple(finding for finding in completeness.findings if finding.severity is not Severity.INFO)
    return full, tuple(finding for finding in completeness.findings if finding.severity is Severity.INFO)


def finding_notes(finding: Finding) -> str:
    """Say where a finding lies and what time is at stake, empty if it does not tell.

    Examples
    --------
    >>> finding_notes(Finding("clock_skew", Severity.INFO, "2 ops start early", impact_ns=1500, rank=1))
    'rank 1, 1.50 µs at stake'
    """
    notes = []
    if finding.rank is not None:
        notes.append(f"rank {finding.rank}")
    if finding.device is not None:
        notes.append(f"device {finding.device}")
    if finding.impact_ns is not None:
        notes.append(f"{duration(finding.impact_ns)} at stake")
    return ", ".join(notes)


def steps_text(device: "DeviceAudit") -> str:
    """Say of which steps the ledger is the mean, and where they come from."""
    steps, used = device.steps, [item for item in device.steps.items if item.used]
    kinds = sorted({str(item.kind) for item in used} - {"unknown"})
    batches = sorted({item.batch for item in used if item.batch is not None})
    text = f"mean of {count_text(device.ledger.steps, 'step')}"
    if len(used) != len(steps.items):
        text += f" of {len(steps.items):,}"
    if kinds:
        text += f", {' and '.join(kinds)}"
    if batches:
        text += f", batch {batches[0]:,}" + (f" to {batches[-1]:,}" if len(batches) > 1 else "")
    return f"{text}; steps from {steps.source}: {plain(steps.reason)}"


def totals_text(totals: "Totals", *, doubtful: bool) -> str:
    """Say what the device did over the whole trace."""
    mark = DOUBT if doubtful else ""
    return (
        f"whole trace: {count_text(totals.device_ops, 'device op')}, op time {duration(totals.op_time_ns)}{mark}, busy "
        f"{duration(totals.busy_ns)}{mark} in a span of {duration(totals.span_ns)}, {count_text(totals.gaps, 'gap')}"
    )


def left_out(items: "Sequence[StepItem]") -> dict[str, str]:
    """Gather the steps that are not in the mean by reason, as ``reason: indices``.

    A long list of indices ends with how many follow.
    """
    reasons: dict[str, list[str]] = {}
    for item in items:
        if item.left_out is not None:
            reasons.setdefault(item.left_out, []).append(f"#{item.index}")
    return {
        reason: ", ".join(indices[:MOST_INDICES])
        + (f" and {len(indices) - MOST_INDICES:,} more" if len(indices) > MOST_INDICES else "")
        for reason, indices in reasons.items()
    }


def remarks(device: "DeviceAudit", completeness: "Completeness") -> tuple[str, ...]:
    """Return at most four sentences, what decides first; names in them are safe to print."""
    if not device.ledger.steps:
        return ()
    codes = {finding.code for finding in completeness.findings if _concerns(finding, device)}
    unreliable = completeness.verdict is Verdict.UNRELIABLE
    same_run = _not_the_same_run(device) if "wall_below_busy" in codes else None
    first = [text for text in (same_run, _dilation(device), _residual(device)) if text]
    rest = sorted(_costs(device, unreliable=unreliable), key=lambda cost: -cost[0])
    profiled = device.step.dilation is not None and device.step.dilation > DILATED
    return (*first, *(f"As profiled, {text[0].lower()}{text[1:]}" if profiled else text for _, text in rest))[:MOST]


def _codes(findings: list[Finding]) -> str:
    return ", ".join(dict.fromkeys(finding.code for finding in findings))


def _concerns(finding: Finding, device: "DeviceAudit") -> bool:
    return finding.rank in (None, device.rank) and finding.device in (None, device.device)


def _not_the_same_run(device: "DeviceAudit") -> str | None:
    step = device.step
    if step.wall_ns is None:
        return None
    return (
        f"The wall, {duration(step.wall_ns)} a step, is shorter than busy, {duration(step.busy_ns)}: the two do not "
        "describe the same run. Nothing is clamped."
    )


def _dilation(device: "DeviceAudit") -> str | None:
    step = device.step
    if step.wall_ns is None or step.dilation is None or step.dilation <= DILATED or step.full_speed_idle_ns is None:
        return None
    text = (
        f"Profiled {duration(step.window_ns)} against a wall of {duration(step.wall_ns)}: dilation "
        f"{factor(step.dilation)}. Busy {duration(step.busy_ns)} as measured; idle at full speed, split as in the "
        f"profile (estimate) {duration(step.full_speed_idle_ns)}"
    )
    if step.window_ns - step.wall_ns > step.idle_ns / 2:
        return f"{text}. The split is mostly the profiler's own doing."
    return f"{text}."


def _residual(device: "DeviceAudit") -> str | None:
    step = device.step
    if step.wall_ns is None or step.residual_ns is None or step.residual_ns < NOTABLE_FRAC * step.wall_ns:
        return None
    return (
        f"{duration(step.residual_ns)} a step ({percent(step.residual_ns, step.wall_ns)} of the wall) is not in the "
        "trace: it passes between the steps, or the wall is of another run."
    )


def _costs(device: "DeviceAudit", *, unreliable: bool) -> list[tuple[int, str]]:
    """Collect what costs a notable part of the window, each with its time."""
    ledger, host, accounts = device.ledger, device.host, device.ledger.accounts
    mark = DOUBT if unreliable or doubted(device, "idle_ns") else ""

    def per_step(total_ns: int) -> str:
        return duration(total_ns / ledger.steps) + mark

    scheduler = (
        f"Scheduler time {per_step(host.scheduler_ns)} a step, {per_step(host.scheduler_exposed_ns)} of it exposed"
    )
    returned_ns = ledger.idle_latency_by.turnaround + ledger.idle_latency_by.delivery
    costs = [
        (ledger.host_cost_ns, _host_cost(device, mark)),
        (host.scheduler_exposed_ns, f"{scheduler} (while the device idles): {_largest(host.scheduler_names)}."),
        (host.idle_host_after_sync_ns, f"{per_step(host.idle_host_after_sync_ns)} {AFTER_SYNC}"),
        (accounts.exposed_comm, f"Exposed comm {per_step(accounts.exposed_comm)} a step: no compute hides it."),
        (accounts.exposed_copy, f"Exposed copy {per_step(accounts.exposed_copy)} a step: no compute hides it."),
        (accounts.idle_graph, f"Idle graph {per_step(accounts.idle_graph)} {IN_GRAPH}"),
        (returned_ns, f"{per_step(returned_ns)} {RETURNED}"),
        (accounts.idle_unknown, f"Idle unknown {per_step(accounts.idle_unknown)} {UNKNOWN}"),
    ]
    notable = [(time_ns, text) for time_ns, text in costs if time_ns and time_ns >= NOTABLE_FRAC * ledger.window_ns]
    if accounts.busy >= BUSY_FRAC * ledger.window_ns and not mark:
        share = percent(accounts.busy, ledger.window_ns)
        notable.append(
            (accounts.busy, f"The device is busy for {share} of the window; traceaudit kernels says with what.")
        )
    return notable


AFTER_SYNC = "a step of idle host follows a blocking call: the queue was drained and had to be filled again."
IN_GRAPH = "a step, between ops of one graph launch: only fewer or longer kernels shorten it."
RETURNED = "a step passes between a launch call's return and its op's start (delivery and turnaround)."
UNKNOWN = "a step: the op that ends the gap has no launch row, or waited longer than its launch explains."


def _host_cost(device: "DeviceAudit", mark: str) -> str:
    ledger = device.ledger

    def per_step(total_ns: int) -> str:
        return duration(total_ns / ledger.steps) + mark

    parts = []
    if ledger.accounts.idle_host:
        parts.append(f"idle host {per_step(ledger.accounts.idle_host)}")
    if ledger.idle_latency_by.launch_call:
        parts.append(f"launch calls {per_step(ledger.idle_latency_by.launch_call)}")
    text = f"Host cost {per_step(ledger.host_cost_ns)} a step ({' + '.join(parts)})"
    if not ledger.accounts.idle_host:
        return f"{text}."
    causes = {**ledger.idle_host_by, "launch calls": ledger.idle_latency_by.launch_call}
    top = sorted(((time_ns, name) for name, time_ns in causes.items() if time_ns), reverse=True)[:2]
    text += ": mostly " + " and ".join(f"{label_of(name)} {per_step(time_ns)}" for time_ns, name in top)
    if top[0][1] == "unrecorded":
        text += "; Python stacks (with_stack=True) would name what the host did"
    return f"{text}."


def _largest(times_ns: Mapping[str, int]) -> str:
    return ", ".join(plain(name) for name, _ in sorted(times_ns.items(), key=lambda item: -item[1])[:2])
