"""What a change would buy: the re-timed step, its range, and the naive bound beside it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceaudit.errors import MissingDataError, UsageError
from traceaudit.model import intervals
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.fullspeed import Costs, HostModel, as_profiled, by_factor, by_row
from traceaudit.model.options import Speedup, WhatIfOptions
from traceaudit.model.results import DeviceAudit
from traceaudit.model.results.whatif import DeviceWhatIf, KernelGain
from traceaudit.model.retime import F64, Plan, plan_of, retime
from traceaudit.model.schema import I64, HostCategory
from traceaudit.model.timeline import EdgeType, NodeType, timeline_of

__all__ = ["GRAPH_LAUNCH_NS", "GRAPH_NODE_NS", "KERNELS_RANKED", "gains_of", "predict"]

KERNELS_RANKED = 15
"""Kernels re-timed for the table of gains, by op time."""

GRAPH_LAUNCH_NS = 10_000
"""Cost of one graph launch call without a profiler; tens of microseconds at most on current drivers."""

GRAPH_NODE_NS = 500
"""Gap between two nodes of a graph; the H200 recordings in `traces/` show 0.1 or 0.4 us, by process."""

BOUND_FRAC = 0.9
"""A side that alone takes this share of the step bounds it."""

BUSY_TOLERANCE = 1.02
"""Busy time may exceed the wall by the noise between two runs, not by more."""

DIFFERS_FRAC = 0.02
"""Prediction and naive bound differ when they are further apart than this share of the baseline."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What the options do to a plan: factors on durations of ops, time taken from the host's lags and calls."""

    op_factor: F64
    lag_saving_ns: F64
    call_saving_ns: F64
    matched: dict[str, int]

    @property
    def on_host(self) -> bool:
        """Whether time of the host changes."""
        return bool(self.lag_saving_ns.any() or self.call_saving_ns.any())


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
    wall = None if _not_the_same_run(audit) else audit.step.wall_ns
    models = _models(plan, wall, of_host=options.graph_replay or change.on_host)
    steps = [_predicted(plan, model, change, options) for model in models]
    baseline = float(wall) if wall is not None else _time(plan, models[0].costs) + models[0].rest_ns
    removed = _op_time(plan, 1 - change.op_factor)
    naive = baseline - removed
    return DeviceWhatIf(
        rank=view.rank,
        device=view.device,
        name=view.name,
        baseline_ns=baseline,
        predicted_ns=steps[0],
        low_ns=min(steps),
        high_ns=max(steps),
        naive_ns=naive,
        busy_share_frac=audit.step.busy_ns / baseline if baseline else 0.0,
        bound_by=_bound(plan, models[0], change, options),
        changed_op_time_ns=removed,
        matched=change.matched,
        reasons=_reasons(audit, models, steps[0], naive, baseline),
        kernels=_gains(plan, models[0], ranked),
        steps=plan.steps,
        short_names=view.short_names,
    )


def gains_of(
    view: DeviceView, audit: DeviceAudit, groups: Sequence[I64], *, ranked: int = KERNELS_RANKED
) -> list[float | None]:
    """Return what removing each group of ops would save a step, re-timed; ns.

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
    wall = None if _not_the_same_run(audit) else audit.step.wall_ns
    model = _models(plan, wall, of_host=False)[0]
    group_of = np.full(len(view.ops), -1, np.int64)
    for number, rows in enumerate(groups):
        group_of[rows] = number
    gains = _saved(plan, model, _of_nodes(plan, group_of), ranked)
    return [gains[number].save_ns if number in gains else None for number in range(len(groups))]


def _plan(view: DeviceView, audit: DeviceAudit) -> Plan:
    plan = plan_of(timeline_of(view), audit)
    if plan is None:
        raise MissingDataError(
            "no step to re-time: none has launches and ops",
            where=view.trace.source.path,
            hint="record with ProfilerActivity.CPU and ProfilerActivity.CUDA, some steps long",
        )
    return plan


def _not_the_same_run(audit: DeviceAudit) -> bool:
    """Tell whether the wall is shorter than busy, beyond the noise between two runs: it says nothing about this one."""
    wall = audit.step.wall_ns
    return wall is not None and audit.step.busy_ns > BUSY_TOLERANCE * wall


def _models(plan: Plan, wall_ns: int | None, *, of_host: bool) -> list[HostModel]:
    """Return the ways in which the unprofiled host may differ from the profiled one, the likeliest first.

    That the host is as profiled, and what the profiler added lies outside, is no way to look at a change of host time:
    part of what was added would go with it.
    """
    profiled = as_profiled(plan, wall_ns)
    if wall_ns is None or profiled.rest_ns >= 0:
        return [profiled]
    fitted = [*by_row(plan, wall_ns), by_factor(plan, wall_ns)]
    return fitted if of_host else [*fitted, profiled]


def _change(plan: Plan, options: WhatIfOptions) -> _Change:
    """Turn speed-ups into factors of ops and savings of host time."""
    factor = np.ones(len(plan.node))
    lag_saving = np.zeros(len(plan.edge_lag_ns) + len(plan.tail_source) + len(plan.head))
    call_saving = np.zeros(len(plan.node))
    matched: dict[str, int] = {}
    for speedup in options.speedups:
        ops = _matching_ops(plan, speedup)
        factor[ops] /= speedup.factor
        rows = _matching_rows(plan, speedup)
        in_lags, in_calls = _host_savings(plan, rows, 1 - 1 / speedup.factor)
        lag_saving += in_lags
        call_saving += in_calls
        matched[speedup.text] = int(ops.sum()) + len(rows)
        if not matched[speedup.text]:
            raise UsageError(
                f"nothing in the steps matches {speedup.pattern.pattern!r}",
                where=plan.timeline.view.trace.source.path,
                hint="`traceaudit kernels` lists the names",
            )
    return _Change(factor, lag_saving, call_saving, matched)


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


def _host_savings(plan: Plan, rows: I64, share: float) -> tuple[F64, F64]:
    """Return how much of each host lag and call lies in the rows, times the share that goes."""
    host, timeline = plan.timeline.view.trace.host, plan.timeline
    lag_saving = np.zeros(len(plan.edge_lag_ns) + len(plan.tail_source) + len(plan.head))
    call_saving = np.zeros(len(plan.node))
    if not len(rows):
        return lag_saving, call_saving
    covered = intervals.union(host.start_ns[rows], host.end_ns[rows])
    target = np.repeat(np.arange(len(plan.node)), np.diff(plan.edge_first))
    edges = np.flatnonzero(plan.edge_type == EdgeType.HOST)
    since, until = timeline.end_ns[plan.node[plan.edge_source[edges]]], timeline.start_ns[plan.node[target[edges]]]
    lag_saving[edges] = share * intervals.covered(covered, since, until)
    is_call = np.isin(plan.node_type, [NodeType.LAUNCH, NodeType.WAIT])
    calls = np.flatnonzero(is_call)
    call_saving[calls] = share * intervals.covered(
        covered, timeline.start_ns[plan.node[calls]], timeline.end_ns[plan.node[calls]]
    )
    tails = np.flatnonzero(plan.node_type[plan.tail_source] != NodeType.OP)
    since = timeline.end_ns[plan.node[plan.tail_source[tails]]]
    lag_saving[len(plan.edge_lag_ns) + tails] = share * intervals.covered(
        covered, since, since + plan.tail_lag_ns[tails]
    )
    heads = timeline.start_ns[plan.node[plan.head]]
    behind = len(lag_saving) - len(heads)
    lag_saving[behind:] = share * intervals.covered(covered, np.full(len(heads), plan.start_ns), heads)
    return lag_saving, call_saving


def _applied(model: HostModel, change: _Change) -> Costs:
    """Apply factors and savings to a model's costs; host time never falls below zero."""
    saving = np.minimum(change.lag_saving_ns, np.maximum(model.costs.lag_ns, 0))
    lag = model.costs.lag_ns - saving
    duration = np.maximum(model.costs.duration_ns * change.op_factor - change.call_saving_ns, 0)
    return Costs(duration, lag)


def _predicted(plan: Plan, model: HostModel, change: _Change, options: WhatIfOptions) -> float:
    costs = _applied(model, change)
    if options.graph_replay:
        costs = _as_graph(plan, costs)
    if options.remove_gaps:
        return _time(plan, _without_gaps(plan, costs))
    return _time(plan, costs) + model.rest_ns


def _as_graph(plan: Plan, costs: Costs) -> Costs:
    """Replace the launches between two waits by one graph launch, and gaps between ops by those of graph nodes."""
    kinds = plan.node_type
    target = np.repeat(np.arange(len(plan.node)), np.diff(plan.edge_first))
    duration, lag = costs.duration_ns.copy(), costs.lag_ns.copy()
    launches = np.isin(kinds, [NodeType.LAUNCH, NodeType.WAIT])
    edges = np.flatnonzero((plan.edge_type == EdgeType.HOST) & launches[plan.edge_source] & launches[target])
    lag[edges] = 0
    duration[launches] = 0
    follows = np.zeros(len(plan.node), np.bool_)
    follows[target[edges]] = True
    duration[launches & ~follows] = GRAPH_LAUNCH_NS
    chained = np.flatnonzero(np.isin(plan.edge_type, [EdgeType.STREAM, EdgeType.GRAPH]))
    lag[chained] = np.minimum(lag[chained], GRAPH_NODE_NS)
    return Costs(duration, lag)


def _without_gaps(plan: Plan, costs: Costs) -> Costs:
    """Leave nothing but the ops: no host time, no lag; ops that overlap still do."""
    duration = np.where(plan.node_type == NodeType.OP, costs.duration_ns, 0.0)
    return Costs(duration, np.minimum(costs.lag_ns, 0.0))


def _time(plan: Plan, costs: Costs) -> float:
    return (retime(plan, costs.duration_ns, costs.lag_ns) - plan.start_ns) / plan.steps


def _op_time(plan: Plan, share: F64) -> float:
    is_op = plan.node_type == NodeType.OP
    return float((plan.duration_ns * share)[is_op].sum()) / plan.steps


def _bound(plan: Plan, model: HostModel, change: _Change, options: WhatIfOptions) -> str:
    """Say which side bounds the predicted step, by what is left when the other side costs nothing."""
    costs = _applied(model, change)
    if options.graph_replay:
        costs = _as_graph(plan, costs)
    whole = _time(plan, costs)
    is_op = plan.node_type == NodeType.OP
    host_only = _time(plan, Costs(np.where(is_op, 0.0, costs.duration_ns), costs.lag_ns))
    if host_only >= BOUND_FRAC * whole:
        return "host"
    return "device" if _op_sum(plan, costs) >= BOUND_FRAC * whole else "both"


def _op_sum(plan: Plan, costs: Costs) -> float:
    """Return the step with nothing but the ops and the device's own gaps."""
    is_op = plan.node_type == NodeType.OP
    host = np.concatenate((plan.edge_type == EdgeType.HOST, np.ones(len(plan.tail_source) + len(plan.head), np.bool_)))
    return _time(plan, Costs(np.where(is_op, costs.duration_ns, 0.0), np.where(host, 0.0, costs.lag_ns)))


@dataclass(frozen=True, slots=True)
class _Saved:
    """Op time of a group of ops, and what removing it saves; ns a step."""

    op_time_ns: float
    save_ns: float


def _gains(plan: Plan, model: HostModel, ranked: int) -> tuple[KernelGain, ...]:
    """Re-time the step without each of the largest kernels."""
    view = plan.timeline.view
    saved = _saved(plan, model, _of_nodes(plan, view.ops.name.astype(np.int64)), ranked)
    gains = [
        KernelGain(view.trace.names[code], gain.op_time_ns, gain.save_ns, gain.op_time_ns)
        for code, gain in saved.items()
    ]
    return tuple(sorted(gains, key=lambda gain: -gain.save_ns))


def _of_nodes(plan: Plan, value: I64) -> I64:
    """Return a value of each op for each node of the plan, -1 for nodes that are no op."""
    found = np.full(len(plan.node), -1, np.int64)
    is_op = plan.node_type == NodeType.OP
    found[is_op] = value[plan.timeline.row[plan.node[is_op]]]
    return found


def _saved(plan: Plan, model: HostModel, group: I64, ranked: int) -> dict[int, _Saved]:
    """Re-time the step without each of the groups with most op time, by the group of each node."""
    numbers = np.unique(group[group >= 0]).tolist()
    time = {number: float(plan.duration_ns[group == number].sum()) / plan.steps for number in numbers}
    base = _time(plan, model.costs)
    saved = {}
    for number in sorted(time, key=lambda one: -time[one])[:ranked]:
        without = Costs(np.where(group == number, 0.0, model.costs.duration_ns), model.costs.lag_ns)
        saved[number] = _Saved(time[number], base - _time(plan, without))
    return saved


def _reasons(
    audit: DeviceAudit, models: list[HostModel], predicted: float, naive: float, baseline: float
) -> tuple[str, ...]:
    """Say what was assumed, and why prediction and naive bound differ."""
    reasons = []
    if _not_the_same_run(audit):
        reasons.append(
            "the wall is shorter than busy, so it is of another run: the profiled step is the baseline instead"
        )
    elif audit.step.wall_ns is None:
        reasons.append(
            "no wall given: the profiled step is the baseline, and the host is as slow as the profiler made it"
        )
    else:
        reasons.append("the host runs at full speed: " + "; or ".join(dict.fromkeys(model.name for model in models)))
    if predicted - naive > DIFFERS_FRAC * baseline:
        reasons.append("the naive bound takes the whole op time off the step, but part of it is hidden behind the host")
    if naive - predicted > DIFFERS_FRAC * baseline:
        reasons.append("the change removes time of the host or gaps as well, which the naive bound leaves in")
    if models[0].rest_ns > DIFFERS_FRAC * baseline:
        reasons.append(f"{models[0].rest_ns:.0f} ns a step of the wall are not in the trace and stay")
    return tuple(reasons)
