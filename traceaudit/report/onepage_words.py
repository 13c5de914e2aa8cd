"""The questions of the one-page audit, each with its answer and the evidence; shared by table and Markdown."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceaudit.model.findings import CODES, Severity, Verdict
from traceaudit.report.distance_words import distance_text
from traceaudit.report.format import bytes_text, count_text, duration, factor, percent, shorten
from traceaudit.report.remarks import verdict_reason
from traceaudit.report.roofline_words import exchange_text, ranks_text
from traceaudit.report.waterfall import DILATED, doubted, label_of

if TYPE_CHECKING:
    from traceaudit.model.results.onepage import Fix, FloorSide, KernelLine, OnePage, ServerSide
    from traceaudit.model.results.serverlog import StepReading
    from traceaudit.model.serverlines import LineRef

__all__ = [
    "Block",
    "batch_block",
    "believe_block",
    "decision_lines",
    "floor_block",
    "gain_block",
    "hidden_text",
    "kernels_answer",
    "step_block",
    "subject",
    "where_block",
]

NAME_WIDTH = 60
LINE_WIDTH = 150
MOST_CAUSES = 4
SAME_FRAC = 0.05
MOST_READINGS = 4
WORTH_FRAC = 0.02
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


OF_THE_WALL = {"wall_below_busy", "rank_skew", "spinning_collective"}


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
    """Say what the device did in the step, and what it waited for."""
    device, step = page.device, page.device.step
    whole = step.window_ns if step.wall_ns is None else step.wall_ns
    name = "window" if step.wall_ns is None else "wall"
    full_speed = step.dilation is not None and step.dilation > DILATED and step.full_speed_idle_ns is not None
    idle = (step.full_speed_idle_ns or 0.0) if full_speed else step.idle_ns
    mark = "?" if doubted(device, "idle_ns") and not full_speed else ""
    answer = f"busy {duration(step.busy_ns)} ({percent(step.busy_ns, whole)} of the {name})"
    answer += f", idle {duration(idle)}{mark} ({percent(idle, whole)})"
    if step.residual_ns is not None and step.residual_ns >= NOTABLE_FRAC * whole:
        answer += f", outside the trace {duration(step.residual_ns)} ({percent(step.residual_ns, whole)})"
    evidence = []
    causes = _causes(page)
    if causes:
        split = "idle split as in the profile (estimate)" if full_speed else "idle"
        evidence.append(f"{split}: {causes}")
    host = device.host
    if host.scheduler_exposed_ns and device.ledger.steps:
        exposed = duration(host.scheduler_exposed_ns / device.ledger.steps)
        evidence.append(f"engine scheduling: {exposed} a step while the device idles, as profiled")
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


def floor_block(page: "OnePage") -> Block:
    """Give the least time for the step, and what lies between it and the step."""
    floor = page.floor
    if floor is None:
        return Block("What floor?", "not asked: --model CONFIG gives the least time that the hardware allows")
    result = floor.roofline
    bounds, gap = result.floor, result.gap
    answer = f"{duration(bounds.expected_ns)} expected"
    if bounds.minimum_ns != bounds.expected_ns:
        answer += f", {duration(bounds.minimum_ns)} at least"
    evidence = []
    if gap is not None:
        answer += f"; the step takes {factor(gap.factor)} that"
        evidence.append(_factors(page))
    evidence.append(_basis(floor))
    if result.distance is not None:
        evidence.append(distance_text(result.distance))
    exchanged = exchange_text(result.communication)
    if exchanged:
        evidence.append(f"communication, not in the floor: {exchanged}")
    return Block("What floor?", answer, tuple(evidence))


def _factors(page: "OnePage") -> str:
    """Write measured over floor with numerator and denominator named, and the factors that do not hold."""
    assert page.floor is not None  # noqa: S101  (the caller looked)
    result, asked = page.floor.roofline, page.floor.asked
    assert result.gap is not None  # noqa: S101  (the caller looked)
    gap, bounds, batch = result.gap, result.floor, result.setting.batch
    text = f"{factor(gap.factor)} = {duration(gap.measured.step_ns)} / {duration(bounds.expected_ns)} at batch {batch}"
    if bounds.minimum_ns != bounds.expected_ns:
        text += f", {factor(gap.factor_of_minimum)} over the minimum of {duration(bounds.minimum_ns)}"
    offered = next((one for one in page.step.readings if one.kind == "given"), None)
    if asked is not None and offered is not None:
        ratio = offered.step_ns / asked.floor.expected_ns
        text += (
            f"; had batch {asked.setting.batch} run, {factor(ratio)} = {duration(offered.step_ns)} / "
            f"{duration(asked.floor.expected_ns)}"
        )
    elif asked is not None:
        text += f"; at batch {asked.setting.batch} the floor is {duration(asked.floor.expected_ns)}"
    return text


def _basis(floor: "FloorSide") -> str:
    result = floor.roofline
    setting = result.setting
    size = bytes_text(result.weight_bytes.expected + result.kv_bytes)
    text = (
        f"{size} a GPU at {result.peak_gbps:,.0f} GB/s of {setting.gpu or 'the device'} ({floor.gpu_source}), "
        f"{result.floor.bound} bound; batch {setting.batch} ({floor.batch_source}), context "
        f"{setting.context_mean:,.0f} ({floor.context_source})"
    )
    if result.experts is not None and result.experts.minimum != result.experts.maximum:
        use = result.experts
        text += f"; {use.expected:.1f} of {use.count} experts a layer touched, {use.minimum:.0f} at least"
    return text


def batch_block(page: "OnePage") -> Block:
    """Say what the server ran, and what held it there."""
    server = page.server
    if server is None:
        batch = {item.batch for item in page.device.steps.items if item.used}
        named = batch.pop() if len(batch) == 1 else None
        text = "not checked: --server-log LOG shows what the server ran"
        return Block("What batch?", text if named is None else f"{named} by the names of the steps; {text}")
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


def hidden_text(lines: "tuple[KernelLine, ...]") -> str:
    """Say which kernels are not worth touching though the profile shows much of them."""
    if not lines:
        return ""
    named = ", ".join(shorten(line.row.shown_name, NAME_WIDTH // 2) for line in lines[:2])
    more = f" and {len(lines) - 2} more" if len(lines) > 2 else ""  # noqa: PLR2004
    share = percent(sum(line.share_of_busy_frac for line in lines), 1)
    naive, saved = sum(line.naive_save_ns for line in lines), sum(line.save_ns for line in lines)
    return (
        f"{named}{more}: {share} of the op time, {duration(naive)} a step, but each alone hides behind the host: "
        f"removing them one by one saves {duration(saved)} in all"
    )


def gain_block(page: "OnePage") -> Block:
    """Bound what work on the largest kernels can buy, with f and s named."""
    gain = page.gain
    if gain is None:
        return Block("What gain?", "no bound: the trace has no step with launches and ops to re-time")
    count = count_text(len(gain.names), "largest kernel")
    retimed = "everything" if gain.retimed_factor is None else factor(gain.retimed_factor)
    answer = f"the {count} removed: at most {retimed}, re-timed"
    if gain.tokens_per_second is not None and gain.retimed_factor is not None:
        after = gain.tokens_per_second * gain.retimed_factor
        answer += f" ({_rate(gain.tokens_per_second)} to {_rate(after)} tokens/s)"
    busy, share = percent(gain.busy_share_frac, 1), percent(gain.top_share_frac, 1)
    whole = "wall" if page.device.step.wall_ns is not None else "window"
    evidence = [f"busy is f = {busy} of the {whole}, they are s = {share} of the op time"]
    if gain.naive_factor is not None:
        evidence[0] += f": naive 1 / (1 - f s) = {factor(gain.naive_factor)}"
    if gain.profile_factor is not None:
        evidence[0] += f", not {factor(gain.profile_factor)} = 1 / (1 - s), which takes busy for the whole step"
    return Block("What gain?", answer, tuple(evidence))


def kernels_answer(page: "OnePage") -> str:
    """Say which kernel is worth most, or that none is worth anything."""
    best = max(page.kernels, key=lambda line: line.save_ns)
    whole = page.gain.baseline_ns if page.gain is not None else page.device.step.window_ns
    if best.save_ns < WORTH_FRAC * whole:
        return f"none alone: removing any one saves {duration(max(best.save_ns, 0.0))} a step at most, re-timed"
    name = shorten(best.row.shown_name, NAME_WIDTH)
    return f"{name}: removing it saves {duration(best.save_ns)} a step ({percent(best.save_ns, whole)}), re-timed"


def decision_lines(page: "OnePage") -> tuple[tuple[str, str], ...]:
    """Give what to do in order, each with its evidence."""
    short = {line.row.name: line.row.shown_name for line in page.kernels}
    lines = []
    for number, fix in enumerate(page.fixes, 1):
        named = fix.names if "{names}" in fix.what else ()
        names = ", ".join(shorten(short.get(name, name), NAME_WIDTH) for name in named)
        what = fix.what.replace("{names}", names)
        lines.append((f"{number}. {what[:1].upper()}{what[1:]}{_bought(fix)}", fix.evidence))
    return tuple(lines)


def _bought(fix: "Fix") -> str:
    if fix.factor is None or fix.step_ns is None:
        return ""
    text = f": {'at most' if fix.is_bound else 'about'} {factor(fix.factor)}, to {duration(fix.step_ns)} a step"
    if fix.tokens_per_second is not None:
        text += f", {_rate(fix.tokens_per_second)} tokens/s"
    return text


def _rate(tokens_per_second: float) -> str:
    """Write a rate with three digits or more.

    Examples
    --------
    >>> _rate(11_117.3), _rate(127.27), _rate(28.0)
    ('11,117', '127', '28.0')
    """
    return f"{tokens_per_second:,.0f}" if tokens_per_second >= 100 else f"{tokens_per_second:.1f}"  # noqa: PLR2004
