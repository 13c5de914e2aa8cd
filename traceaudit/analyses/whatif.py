"""What a change would buy: the re-timed step, its range, and the naive bound beside it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from traceaudit.errors import MissingDataError, UsageError
from traceaudit.model import intervals
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.enclosing import issuing_rows
from traceaudit.model.fullspeed import HostModel, HostTime, as_profiled, assumed, by_factor, by_row, host_time
from traceaudit.model.intervals import Intervals
from traceaudit.model.options import Speedup, WhatIfOptions
from traceaudit.model.plan import Plan, plan_of
from traceaudit.model.results import DeviceAudit
from traceaudit.model.results.whatif import DeviceWhatIf, KernelGain
from traceaudit.model.retime import F64, Costs, retime
from traceaudit.model.schema import I64, HostCategory
from traceaudit.model.sides import sides_of
from traceaudit.model.timeline import EdgeType, NodeType, timeline_of
from traceaudit.model.wording import brief

__all__ = ["GRAPH_LAUNCH_NS", "GRAPH_NODE_NS", "KERNELS_RANKED", "gains_of", "predict"]

KERNELS_RANKED = 15
"""Kernels re-timed for the table of gains, by op time."""

GRAPH_LAUNCH_NS = 10_000
"""Cost of one graph launch call without a profiler; tens of microseconds at most on current drivers."""

GRAPH_NODE_NS = 500
"""Gap between two nodes of a graph; the H200 recordings in `traces/` show 0.1 or 0.4 us, by process."""

OUTSIDE_FRAC = 0.5
"""Time outside the trace that takes more than this share of the step bounds it."""

BUSY_TOLERANCE = 1.02
"""Busy time may exceed the wall by the noise between two runs, not by more."""

DIFFERS_FRAC = 0.02
"""Prediction and naive bound differ when they are further apart than this share of the baseline."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What the options do to a plan: factors on durations of ops, and parts of the host with the share of each left."""

    op_factor: F64
    host_parts: tuple[tuple[HostTime, float], ...]
    matched: dict[str, int]


def predict(
    view: DeviceView, audit: DeviceAudit, options: WhatIfOptions, *, ranked: int = KERNELS_RANKED
) -> DeviceWhatIf:
    """Re-time the used steps of a device with the changes that the options ask for.

    `ranked` kernels are also re-timed one by one for the table of gains.

    Raises
    ------
    MissingDataError
        If no used step has an op with a launch.
    UsageError
        If a pattern matches nothing.
    """
    plan = _plan(view, audit)
    change = _change(plan, options)
    wall = _wall(audit)
    of_host = bool(options.graph_replay or options.remove_gaps or change.host_parts)
    models = _models(plan, audit.step.window_ns, wall, of_host=of_host)
    outside = max(wall - audit.step.window_ns, 0.0) if wall is not None else 0.0
    changed = [_changed(plan, model, change, options) for model in models]
    retimed = [retime(plan, costs) for costs in changed]
    baseline = float(audit.step.window_ns if wall is None else wall)
    least = 0.0 if of_host else baseline * min(1.0, float(change.op_factor.min()))
    rests = [outside if options.remove_gaps else model.rest_ns for model in models]
    steps = [max(time + rest, least) for time, rest in zip(retimed, rests, strict=True)]
    removed = _op_time(plan, 1 - change.op_factor)
    naive = baseline - removed
    bound = _bound(plan, changed[0], steps[0], outside)
    return DeviceWhatIf(
        rank=view.rank,
        device=view.device,
        name=view.name,
        changes=_named(options),
        baseline_ns=baseline,
        predicted_ns=steps[0],
        low_ns=min(steps),
        high_ns=max(steps),
        naive_ns=naive,
        busy_share_frac=audit.step.busy_ns / baseline if baseline else 0.0,
        bound_by=bound,
        changed_op_time_ns=removed,
        matched=change.matched,
        reasons=(
            *_assumed(audit, models, outside, baseline),
            *_against_naive(steps[0], naive, baseline, bound),
            *_below_busy(retimed[0], audit.step.busy_ns - removed),
        ),
        kernels=_gains(plan, models[0], ranked),
        steps=plan.steps,
        short_names=view.short_names,
    )


def gains_of(
    view: DeviceView, audit: DeviceAudit, groups: Sequence[I64], *, ranked: int = KERNELS_RANKED
) -> list[float | None]:
    """Return what making each group of ops instant would save a step, re-timed; ns.

    Parameters
    ----------
    view, audit
        The device and its ledger.
    groups
        Rows of the view's ops.
    ranked
        Groups that are re-timed, by op time in the used steps; the others get None.

    Raises
    ------
    MissingDataError
        If no used step has an op with a launch.
    """
    plan = _plan(view, audit)
    wall = _wall(audit)
    model = _models(plan, audit.step.window_ns, wall, of_host=False)[0]
    group_of = np.full(len(view.ops), -1, np.int64)
    for number, rows in enumerate(groups):
        group_of[rows] = number
    group, base = _of_nodes(plan, group_of), retime(plan, model.costs)
    saved = {number: base - retime(plan, _instant(model, group == number)) for number in _largest(plan, group, ranked)}
    return [saved.get(number) for number in range(len(groups))]


def _plan(view: DeviceView, audit: DeviceAudit) -> Plan:
    plan = plan_of(timeline_of(view), audit)
    if plan is None:
        raise MissingDataError(
            "no step to re-time: none has launches and ops",
            where=view.trace.source.path,
            hint="record with ProfilerActivity.CPU and ProfilerActivity.CUDA, some steps long",
        )
    return plan


def _named(options: WhatIfOptions) -> tuple[str, ...]:
    flags = {"graph replay": options.graph_replay, "no gaps": options.remove_gaps}
    return (*(speedup.text for speedup in options.speedups), *(name for name, asked in flags.items() if asked))


def _not_the_same_run(audit: DeviceAudit) -> bool:
    """Tell whether the wall is shorter than busy, beyond the noise between two runs: it says nothing about this one."""
    wall = audit.step.wall_ns
    return wall is not None and audit.step.busy_ns > BUSY_TOLERANCE * wall


def _wall(audit: DeviceAudit) -> float | None:
    """Return the wall if it is of this run, but no less than busy: no run takes less than its ops."""
    wall = audit.step.wall_ns
    return None if wall is None or _not_the_same_run(audit) else max(float(wall), audit.step.busy_ns)


def _models(plan: Plan, window_ns: float, wall_ns: float | None, *, of_host: bool) -> list[HostModel]:
    """Return the ways in which the unprofiled host may differ from the profiled one, the likeliest first.

    That the host is as profiled, and what the profiler added lies outside, is no way to look at a change of host time:
    part of what was added would go with it.
    """
    profiled = as_profiled(plan, window_ns if wall_ns is None else wall_ns)
    if wall_ns is None or profiled.rest_ns >= 0:
        return [profiled]
    fitted = [*by_row(plan, wall_ns), by_factor(plan, wall_ns)]
    return fitted if of_host else [*fitted, profiled]


def _change(plan: Plan, options: WhatIfOptions) -> _Change:
    """Turn speed-ups into factors of ops and shares of the host's time that stay."""
    factor = np.ones(len(plan.node))
    covered: list[tuple[Intervals, float]] = []
    matched: dict[str, int] = {}
    host = plan.timeline.view.trace.host
    for speedup in options.speedups:
        ops, rows = _matching_ops(plan, speedup), _matching_rows(plan, speedup)
        factor[ops] /= speedup.factor
        covered = _overlaid(covered, intervals.union(host.start_ns[rows], host.end_ns[rows]), 1 / speedup.factor)
        matched[speedup.text] = int(ops.sum()) + len(rows)
        if not matched[speedup.text]:
            raise UsageError(
                f"nothing in the steps matches {speedup.pattern.pattern!r}",
                where=plan.timeline.view.trace.source.path,
                hint="`traceaudit kernels` lists the names",
            )
    return _Change(factor, tuple((host_time(plan, part), left) for part, left in covered), matched)


def _overlaid(parts: list[tuple[Intervals, float]], added: Intervals, left: float) -> list[tuple[Intervals, float]]:
    """Add intervals of which a share is left to disjoint ones; where they overlap, the shares multiply."""
    found = []
    for part, share in parts:
        found += [(intervals.intersect(part, added), share * left), (intervals.subtract(part, added), share)]
        added = intervals.subtract(added, part)
    return [(part, share) for part, share in (*found, (added, left)) if len(part.start)]


def _matching_ops(plan: Plan, speedup: Speedup) -> npt.NDArray[np.bool_]:
    view, is_op = plan.timeline.view, plan.node_type == NodeType.OP
    good = np.array([speedup.pattern.search(name) is not None for name in view.trace.names], np.bool_)
    found = np.zeros(len(plan.node), np.bool_)
    rows = plan.timeline.row[plan.node[is_op]]
    found[is_op] = good[view.ops.name[rows]] & (True if speedup.ops is None else np.isin(rows, speedup.ops))
    return found


def _matching_rows(plan: Plan, speedup: Speedup) -> I64:
    """Return annotations and frames of the plan's time that match; API calls and ops of the framework are not work."""
    trace = plan.timeline.view.trace
    host = trace.host
    good = np.array([speedup.pattern.search(name) is not None for name in trace.names], np.bool_)
    named = (host.category == HostCategory.ANNOTATION) | (host.category == HostCategory.PYTHON)
    return np.flatnonzero(named & good[host.name] & (host.start_ns < plan.end_ns) & (host.end_ns > plan.start_ns))


def _changed(plan: Plan, model: HostModel, change: _Change, options: WhatIfOptions) -> Costs:
    """Return what a plan costs after the change."""
    costs = model.costs
    costs = replace(costs, duration_ns=costs.duration_ns * change.op_factor)
    costs = _without_host(model, costs, change.host_parts)
    if options.graph_replay:
        costs = _as_graph(plan, costs)
    return _without_gaps(plan, costs) if options.remove_gaps else costs


def _without_host(model: HostModel, costs: Costs, parts: Iterable[tuple[HostTime, float]]) -> Costs:
    """Take parts of the host's time away, as long as they are at full speed, but for the share of each that is left."""
    lag_named, lag_saved, call_named, call_saved = (np.zeros(1) for _ in range(4))
    for part, left in parts:
        lag, call = model.at_full_speed(part.lag_ns, part.lag_rows), model.at_full_speed(part.call_ns, part.call_rows)
        lag_named, lag_saved = lag_named + lag, lag_saved + (1 - left) * lag
        call_named, call_saved = call_named + call, call_saved + (1 - left) * call
    return replace(
        costs,
        duration_ns=costs.duration_ns - _no_more_than(costs.duration_ns, call_named) * call_saved,
        lag_ns=costs.lag_ns - _no_more_than(costs.lag_ns, lag_named) * lag_saved,
    )


def _no_more_than(whole: F64, parts: F64) -> F64:
    """Return by what to multiply parts so that they are no more than the whole."""
    return np.where(parts > whole, np.maximum(whole, 0) / np.where(parts > 0, parts, 1), 1.0)


def _as_graph(plan: Plan, costs: Costs) -> Costs:
    """Replace the launches of a step between two waits by one graph launch, and gaps between ops by those of nodes."""
    kinds, step, target = plan.node_type, plan.timeline.step[plan.node], plan.edge_target
    duration, lag, delay = costs.duration_ns.copy(), costs.lag_ns.copy(), costs.delay_ns.copy()
    one_step = ~plan.edge_back & (step[plan.edge_source] == step[target])
    launches = np.isin(kinds, [NodeType.LAUNCH, NodeType.WAIT])
    edges = np.flatnonzero(one_step & (plan.edge_type == EdgeType.HOST) & launches[plan.edge_source] & launches[target])
    behind_wait = target[one_step & (plan.edge_type == EdgeType.HOST) & ~launches[plan.edge_source]]
    edges = edges[~np.isin(target[edges], behind_wait)]
    replaced = _chained(plan, np.where(launches, duration, 0), np.maximum(lag, 0), edges)
    lag[edges] = 0
    duration[launches] = 0
    follows = np.zeros(len(plan.node), np.bool_)
    follows[target[edges]] = True
    duration[launches & ~follows] = np.minimum(replaced, GRAPH_LAUNCH_NS)[launches & ~follows]
    chained = np.flatnonzero(one_step & np.isin(plan.edge_type, [EdgeType.STREAM, EdgeType.GRAPH]))
    lag[chained] = np.minimum(lag[chained], GRAPH_NODE_NS)
    delay[target[chained]] = 0
    return Costs(duration, lag, delay)


def _chained(plan: Plan, duration: F64, lag: F64, edges: npt.NDArray[np.intp]) -> F64:
    """Return for the first of nodes that edges chain what the whole chain takes."""
    head, total, target = np.arange(len(duration)).tolist(), duration.copy(), plan.edge_target
    for edge in edges.tolist():
        node = int(target[edge])
        if head[node] == node:
            head[node] = head[plan.edge_source[edge]]
            total[head[node]] += duration[node] + lag[edge]
    return total


def _without_gaps(plan: Plan, costs: Costs) -> Costs:
    """Leave nothing but the ops: no host time, no lag, no delay; ops that overlap still do."""
    duration = np.where(plan.node_type == NodeType.OP, costs.duration_ns, 0.0)
    return Costs(duration, np.minimum(costs.lag_ns, 0.0), np.zeros(len(duration)))


def _op_time(plan: Plan, share: F64) -> float:
    is_op = plan.node_type == NodeType.OP
    return float((plan.duration_ns * share)[is_op].sum()) / plan.steps


def _bound(plan: Plan, costs: Costs, step_ns: float, outside_ns: float) -> str:
    """Say what bounds the predicted step: a side that alone would take nearly as long."""
    if outside_ns > OUTSIDE_FRAC * step_ns:
        return "outside"
    return sides_of(plan, costs).binding(step_ns)


def _gains(plan: Plan, model: HostModel, ranked: int) -> tuple[KernelGain, ...]:
    """Re-time the step without each of the largest kernels: once with its launches still made, once without them."""
    view, is_op = plan.timeline.view, plan.node_type == NodeType.OP
    names = _of_nodes(plan, view.ops.name.astype(np.int64))
    time = _largest(plan, names, ranked)
    if not time:
        return ()
    base, issuing = retime(plan, model.costs), issuing_rows(view, plan.timeline.row[plan.node[is_op]])
    gains = []
    for code, op_time in time.items():
        instant = _instant(model, names == code)
        gone = _without_host(model, instant, [(host_time(plan, issuing[code]), 0.0)]) if code in issuing else instant
        saved, saved_with_launch = base - retime(plan, instant), base - retime(plan, gone)
        gains.append(KernelGain(view.trace.names[code], op_time, saved, saved_with_launch, op_time))
    return tuple(sorted(gains, key=lambda gain: (-gain.save_with_launch_ns, -gain.save_ns)))


def _of_nodes(plan: Plan, value: I64) -> I64:
    """Return a value of each op for each node of the plan, -1 for nodes that are no op."""
    found = np.full(len(plan.node), -1, np.int64)
    is_op = plan.node_type == NodeType.OP
    found[is_op] = value[plan.timeline.row[plan.node[is_op]]]
    return found


def _largest(plan: Plan, group: I64, ranked: int) -> dict[int, float]:
    """Return the op time of a step of the groups with most of it, by the group of each node (-1: none)."""
    numbers = np.unique(group[group >= 0]).tolist()
    time = {number: float(plan.duration_ns[group == number].sum()) / plan.steps for number in numbers}
    return {number: time[number] for number in sorted(time, key=lambda one: -time[one])[:ranked]}


def _instant(model: HostModel, chosen: npt.NDArray[np.bool_]) -> Costs:
    """Return the costs with some ops of no time; their launches are still made."""
    return replace(model.costs, duration_ns=np.where(chosen, 0.0, model.costs.duration_ns))


def _assumed(audit: DeviceAudit, models: list[HostModel], outside_ns: float, baseline_ns: float) -> Iterator[str]:
    """Say what the prediction rests on."""
    if _not_the_same_run(audit):
        yield "the wall is shorter than busy, so it is of another run: the profiled step is the baseline instead"
    elif audit.step.wall_ns is None:
        yield "no wall given: the profiled step is the baseline, and the host is as slow as the profiler made it"
    elif models[0].as_recorded:
        yield "the wall is no shorter than the re-timed step: the host is as fast as in the trace"
    else:
        yield f"the host runs at full speed: {assumed(models)}"
    if audit.step.wall_ns is not None and audit.step.wall_ns < baseline_ns and not _not_the_same_run(audit):
        yield "the wall is shorter than busy by the noise between two runs: busy is the baseline"
    if outside_ns > DIFFERS_FRAC * baseline_ns:
        yield f"{brief(outside_ns)} a step of the wall are not in the trace and stay"


def _against_naive(predicted_ns: float, naive_ns: float, baseline_ns: float, bound: str) -> Iterator[str]:
    """Say why prediction and naive bound differ."""
    if predicted_ns - naive_ns > DIFFERS_FRAC * baseline_ns:
        hidden = {"host": "the host", "device": "other ops of the device"}.get(bound, "the host or other ops")
        yield f"the naive bound takes the whole op time off the step, but part of it is hidden behind {hidden}"
    if naive_ns - predicted_ns > DIFFERS_FRAC * baseline_ns:
        yield "the change removes time of the host or gaps as well, which the naive bound leaves in"


def _below_busy(retimed_ns: float, busy_ns: float) -> Iterator[str]:
    """Say that ops overlap more than they did, where the re-timed step is shorter than what busy time is left."""
    if retimed_ns < (1 - DIFFERS_FRAC) * busy_ns:
        yield (
            f"the step is shorter than the {brief(busy_ns)} in which ops ran: those of several queues overlap more "
            "than they did, since nothing in the trace says that they wait for one another"
        )
