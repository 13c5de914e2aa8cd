"""The questions of the one-page audit on trace, step and server, each with its answer and the evidence.

Shared by table and Markdown; what the step could be stands in `onepage_bounds`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceaudit.model.findings import CODES, Severity, Verdict
from traceaudit.report.format import DOUBT, count_text, duration, factor, percent, shorten
from traceaudit.report.remarks import range_text, verdict_reason
from traceaudit.report.roofline_words import ranks_text
from traceaudit.report.waterfall import DILATED, doubted, label_of

if TYPE_CHECKING:
    from traceaudit.model.results.onepage import OnePage, ServerSide
    from traceaudit.model.results.serverlog import StepReading
    from traceaudit.model.serverlines import LineRef

__all__ = ["Block", "batch_block", "believe_block", "step_block", "subject", "where_block"]

LINE_WIDTH = 150
MOST_CAUSES = 4
SAME_FRAC = 0.05
MOST_READINGS = 4
NOTABLE_FRAC = 0.005


@dataclass(frozen=True, slots=True)
class Block:
    """A question, its answer, and what shows it."""

    question: str
    answer: str
    evidence: tuple[str, ...] = ()


def subject(page: "OnePage") -> str:
    """Say what was audited: device, steps, and the model if there is one."""
    device = page.device
    used = [item for item in device.steps.items if item.used]
    kinds = " and ".join(sorted({str(item.kind) for item in used} - {"unknown"}))
    batches = sorted({item.batch for item in used if item.batch is not None})
    batch = f" of batch {batches[0]}" if len(batches) == 1 else ""
    steps = count_text(device.ledger.steps, f"{kinds} step".strip())
    text = f"{device.name or 'unknown device'}, rank {device.rank}, device {device.device}; mean of {steps}{batch}"
    others = len(page.reconciliation.devices) - 1
    if others:
        text += f"; the longest step of {others + 1} devices"
    if page.floor is not None:
        text += f"; {page.floor.roofline.setting.model}, {ranks_text(page.floor.roofline.setting)}"
    return text


def believe_block(page: "OnePage") -> Block:
    """Say whether the trace can be believed, with the findings about it and about the wall."""
    evidence = [
        f"{finding.code}: {finding.message}" + (f"; {finding.hint}" if finding.hint else "")
        for finding in page.completeness.findings
        if finding.severity is not Severity.INFO and (CODES[finding.code].about_trace or finding.code in OF_THE_WALL)
    ]
    verdict = page.completeness.verdict
    reason = "no row is missing, none contradicts another" if verdict is Verdict.COMPLETE else None
    return Block("Believe it?", f"{verdict.upper()}: {reason or verdict_reason(page.completeness)}", tuple(evidence))


OF_THE_WALL = {"wall_below_busy", "rank_skew", "spinning_collective", "unlike_runs"}


def step_block(page: "OnePage") -> Block:
    """Say which step time holds, and which do not."""
    step, profiled = page.step, page.device.step
    if step.wall is None:
        answer = f"{duration(profiled.window_ns)} a step as profiled; no wall from outside (--wall-ms, --server-log)"
        return Block("How long?", answer)
    taken = next((one for one in step.readings if one.step_ns == step.wall.step_ns and one.holds), None)
    source = step.wall.source if taken is None else f"{taken.arithmetic}, by {_decider(taken)}"
    evidence = [_reading(one) for one in _worth_telling(step.readings, step.wall.step_ns)]
    if step.given is not None and all(one.step_ns != step.given.step_ns for one in step.readings):
        evidence.append(_against(step.wall.step_ns, step.given.step_ns, step.given.source))
    if profiled.dilation is not None and profiled.dilation > DILATED:
        longer = factor(profiled.dilation)
        evidence.append(f"profiled it took {duration(profiled.window_ns)}, {longer} that: the profiler's own doing")
    spread = range_text(page.device)
    evidence += [f"{spread[0].lower()}{spread[1:-1]}"] if spread else []
    return Block("How long?", f"{duration(step.wall.step_ns)} a step = {source}", tuple(evidence))


def _decider(reading: "StepReading") -> str:
    return "the server's log" if reading.line is None else f"{reading.line.path}:{reading.line.number}"


def _worth_telling(readings: "tuple[StepReading, ...]", wall_ns: int) -> "list[StepReading]":
    """Choose what the log speaks against, then what it leaves open, then what bears the step out by another way."""
    against = [one for one in readings if one.holds is False]
    still_open = [one for one in readings if one.holds is None]
    others = [one for one in readings if one.holds and one.step_ns != wall_ns and one.kind in INDEPENDENT]
    return [*against, *still_open, *others][:MOST_READINGS]


INDEPENDENT = {"line_spacing", "device_step", "host_step", "inter_token"}
"""Kinds of readings that do not come from batch over rate."""


def _against(wall_ns: int, given_ns: int, source: str) -> str:
    ratio = given_ns / wall_ns
    if abs(ratio - 1) <= SAME_FRAC:
        return f"agrees with {duration(given_ns)} = {source}"
    return f"not {duration(given_ns)} = {source}, which is {factor(ratio)} that"


def _reading(reading: "StepReading") -> str:
    text = f"{duration(reading.step_ns)} = {reading.arithmetic}"
    if reading.holds:
        return f"also {text}"
    return f"{'open:' if reading.holds is None else 'not'} {text}: {reading.reason}"


def where_block(page: "OnePage") -> Block:
    """Say what the device did in the step, and what it waited for; an unreliable trace shows no share of idle time."""
    device, step = page.device, page.device.step
    unreliable = page.completeness.verdict is Verdict.UNRELIABLE
    whole = step.window_ns if step.wall_ns is None else step.wall_ns
    name = "window" if step.wall_ns is None else "wall"
    full_speed = step.dilation is not None and step.full_speed_idle_ns is not None
    idle = (step.full_speed_idle_ns or 0.0) if full_speed else step.idle_ns
    busy_mark = DOUBT if unreliable or doubted(device, "busy_ns") else ""
    idle_mark = DOUBT if unreliable or busy_mark or (doubted(device, "idle_ns") and not full_speed) else ""
    answer = f"busy {duration(step.busy_ns)}{busy_mark}"
    answer += "" if unreliable else f" ({percent(step.busy_ns, whole)}{busy_mark} of the {name})"
    answer += f", idle {duration(idle)}{idle_mark}"
    answer += "" if unreliable else f" ({percent(idle, whole)}{idle_mark})"
    if full_speed and step.dilation is not None and step.dilation <= DILATED:  # the table shows the profile's
        as_profiled = DOUBT if unreliable or doubted(device, "idle_ns") else ""
        answer += f", {duration(step.idle_ns)}{as_profiled} as profiled"
    if step.residual_ns is not None and step.residual_ns >= NOTABLE_FRAC * whole:
        answer += f", outside the trace {duration(step.residual_ns)} ({percent(step.residual_ns, whole)})"
    evidence = []
    causes = "" if unreliable else _causes(page)
    if causes:
        split = "idle split as in the profile (estimate)" if full_speed else "idle"
        evidence.append(f"{split}: {causes}")
    host = device.host
    if host.scheduler_exposed_ns and device.ledger.steps:
        exposed = duration(host.scheduler_exposed_ns / device.ledger.steps)
        evidence.append(f"engine scheduling: {exposed}{idle_mark} a step while the device idles, as profiled")
    return Block("Where?", answer, tuple(evidence))


def _causes(page: "OnePage") -> str:
    """Name the largest causes of idle time as shares of it."""
    ledger = page.device.ledger
    latency = ledger.idle_latency_by
    causes = {
        **ledger.idle_host_by,
        "launch_call": latency.launch_call,
        "delivery": latency.delivery,
        "turnaround": latency.turnaround,
        "gaps inside a graph": ledger.accounts.idle_graph,
        "unknown": ledger.accounts.idle_unknown,
    }
    total = sum(causes.values())
    largest = sorted(((time_ns, cause) for cause, time_ns in causes.items() if time_ns), reverse=True)[:MOST_CAUSES]
    shown = [(time_ns, cause) for time_ns, cause in largest if time_ns >= NOTABLE_FRAC * total]
    return ", ".join(
        f"{label_of(cause.removeprefix('annotation:'))} {percent(time_ns, total)}" for time_ns, cause in shown
    )


def batch_block(page: "OnePage") -> Block:
    """Say what the server ran, and what held it there."""
    server = page.server
    if server is None:
        return _batch_of_trace(page)
    report = server.report
    ran = count_text(report.steady_batch, "request")
    answer = f"{ran} ran at once"
    if server.asked is not None:
        mismatch = any(finding.code == "batch_mismatch" for finding in report.findings)
        answer += f", NOT {server.asked}" if mismatch else f", as asked ({server.asked})"
    busiest = max(report.engines, key=lambda engine: engine.steady_batch)
    answer += f"; limit {str(busiest.cause.limit).replace('_', ' ')}: {busiest.cause.reason}"
    evidence = [_quoted(line) for line in report.decided_by[:1]]
    if len(report.engines) > 1:
        sizes = " + ".join(str(engine.steady_batch) for engine in report.engines)
        evidence.append(f"{len(report.engines)} engines: {sizes}; a step of this trace is one engine's")
    evidence += _batch_doubts(server)
    evidence += [
        f"{finding.code}: {finding.message}" for finding in report.findings if finding.code != "batch_mismatch"
    ]
    return Block("What batch?", answer, tuple(evidence))


def _batch_of_trace(page: "OnePage") -> Block:
    """Say which batch the steps carry in their names, and whether the floor is for another."""
    named = page.device.steps.batch
    text = "not checked: --server-log LOG shows what the server ran"
    if named is None:
        return Block("What batch?", text)
    given = None if page.floor is None else page.floor.roofline.setting.batch
    but = f", NOT the {given} of the floor" if given not in (None, named) else ""
    return Block("What batch?", f"{named} by the names of the steps{but}; {text}")


def _batch_doubts(server: "ServerSide") -> list[str]:
    texts = []
    if server.trace_batch is not None and server.trace_batch != server.engine_batch:
        texts.append(
            f"the trace's steps have batch {server.trace_batch}, the log's {server.engine_batch}: not the same load"
        )
    replayed = [engine for engine in server.report.engines if engine.graph_false]
    if replayed:
        off = sum(engine.graph_false or 0 for engine in replayed)
        texts.append(f"without graph replay: {off} of {sum(engine.samples for engine in replayed)} samples of the log")
    return texts


def _quoted(line: "LineRef") -> str:
    return f"line {line.number}: {shorten(line.text, LINE_WIDTH)}"
