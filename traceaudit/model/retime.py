"""Re-timing of the kernel-timeline graph: when everything would have happened, had some of it taken less time.

Order and dependencies stay as recorded; every node starts when its last predecessor allows it. An edge's lag is the
recorded one, but no more than what such an edge usually costs: an op that waited in a queue shows a long time since its
launch that is no cost of launching. What remains unexplained of a node's recorded start is kept as its own delay, so
that re-timing without a change gives back the recorded times exactly.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from traceaudit.model.results import DeviceAudit
from traceaudit.model.schema import I64
from traceaudit.model.timeline import EdgeType, NodeType, Timeline

__all__ = ["F64", "Plan", "plan_of", "recorded_lags", "retime"]

F64 = npt.NDArray[np.float64]

MAX_NODES = 40_000
"""Nodes re-timed at most: as many whole steps as fit, since a pass visits every node in turn."""

UNSEEN_LAG_NS = 5_000
"""Lag of a kind of edge that never decided in the trace: delivery and hand-over take a few microseconds."""

WAIT_CALL_NS = 3_000
"""What a waiting call takes that need not wait, where the trace has none to show it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Consecutive steps as a schedule; positions are in an order in which predecessors come first.

    Attributes
    ----------
    timeline, first_step, steps
        The graph, and the steps of it that the plan holds.
    start_ns, end_ns
        When the first window begins and the last ends, as recorded.
    node
        Node of each position.
    duration_ns
        Recorded duration; of waiting calls the shortest that such a call takes when it need not wait.
    delay_ns
        Part of the recorded start (of waiting calls: end) that no predecessor explains.
    floor_ns, release_ns
        Time before which a position cannot start, and a waiting call not return, from predecessors outside the plan;
        the floor is the recorded start where nothing else decides.
    edge_first, edge_source, edge_lag_ns, edge_type
        Predecessors of position ``i`` are edges ``edge_first[i]`` to ``edge_first[i + 1]``: positions, lags, types.
    tail_source, tail_lag_ns
        Positions after whose end, and a lag of the host, the last window ends.
    head, head_lag_ns
        Calls that no other precedes in the plan, and the host's time from the start of the plan to them.
    """

    timeline: Timeline
    first_step: int
    steps: int
    start_ns: int
    end_ns: int
    node: I64
    duration_ns: I64
    delay_ns: I64
    floor_ns: I64
    release_ns: I64
    edge_first: I64
    edge_source: I64
    edge_lag_ns: I64
    edge_type: I64
    tail_source: I64
    tail_lag_ns: I64
    head: I64
    head_lag_ns: I64

    @property
    def node_type(self) -> I64:
        """`NodeType` of each position."""
        return self.timeline.node_type[self.node].astype(np.int64)


def plan_of(timeline: Timeline, audit: DeviceAudit) -> Plan | None:
    """Prepare the longest run of used steps for re-timing; None if no used step has a node."""
    first, last = _longest_run(timeline, audit)
    chosen = (timeline.step >= first) & (timeline.step < last)
    node = timeline.order[chosen[timeline.order]]
    if not len(node):
        return None
    position = np.full(len(timeline), -1, np.int64)
    position[node] = np.arange(len(node))
    edges = _edges(timeline, position)
    target, source, lag, kind, outside = edges
    inside, of_sync = source >= 0, kind == EdgeType.SYNC
    floor = _latest(len(node), target[~inside & ~of_sync], outside[~inside & ~of_sync])
    release = _latest(len(node), target[~inside & of_sync], outside[~inside & of_sync])
    lonely = np.bincount(target[~of_sync], minlength=len(node)) == 0
    floor[lonely] = timeline.start_ns[node[lonely]]
    calls = timeline.node_type[node] != NodeType.OP
    head = np.flatnonzero(lonely & calls & (timeline.start_ns[node] >= audit.steps.items[first].start_ns))
    edge_first = np.searchsorted(target[inside], np.arange(len(node) + 1))
    window = audit.steps.items
    start, end = window[first].start_ns, window[last - 1].start_ns + window[last - 1].window_ns
    tail_source, tail_lag = _tail(timeline, node, end, int(timeline.view.marks.end_ns[last - 1]))
    plan = Plan(
        timeline=timeline,
        first_step=first,
        steps=last - first,
        start_ns=start,
        end_ns=end,
        node=node,
        duration_ns=_durations(timeline, node),
        delay_ns=np.zeros(len(node), np.int64),
        floor_ns=floor,
        release_ns=release,
        edge_first=edge_first,
        edge_source=source[inside],
        edge_lag_ns=lag[inside],
        edge_type=kind[inside],
        tail_source=tail_source,
        tail_lag_ns=tail_lag,
        head=head,
        head_lag_ns=timeline.start_ns[node[head]] - start,
    )
    return _explained(plan)


def retime(plan: Plan, duration_ns: F64, lag_ns: F64) -> float:
    """Return when the last window would end, in ns of the trace.

    Parameters
    ----------
    duration_ns
        Duration of each position.
    lag_ns
        Lag of each edge and, behind the edges, of each tail and each head, as `recorded_lags` has them.
    """
    _, end = _forward(plan, duration_ns.tolist(), lag_ns.tolist(), plan.delay_ns.tolist())
    edges, tails = len(plan.edge_lag_ns), len(plan.tail_source)
    lags: list[float] = lag_ns[edges : edges + tails].tolist()
    sources: list[int] = plan.tail_source.tolist()
    return max(end[source] + lag for source, lag in zip(sources, lags, strict=True))


def recorded_lags(plan: Plan) -> F64:
    """Return the lags of all edges, tails and heads as recorded, in the form that `retime` takes."""
    return np.concatenate((plan.edge_lag_ns, plan.tail_lag_ns, plan.head_lag_ns)).astype(np.float64)


def _forward(plan: Plan, duration: list[float], lag: list[float], delay: list[int]) -> tuple[list[float], list[float]]:
    """Visit the positions in order; return their starts and ends."""
    start: list[float] = [0.0] * len(plan.node)
    end: list[float] = [0.0] * len(plan.node)
    first, source = plan.edge_first.tolist(), plan.edge_source.tolist()
    kind, types = plan.edge_type.tolist(), plan.node_type.tolist()
    floor, release = plan.floor_ns.tolist(), plan.release_ns.tolist()
    for position, behind in zip(plan.head.tolist(), lag[len(lag) - len(plan.head) :], strict=True):
        floor[position] = plan.start_ns + behind
    launch, sync, waiting = int(EdgeType.LAUNCH), int(EdgeType.SYNC), int(NodeType.SYNC)
    for i in range(len(start)):
        begin, released = float(floor[i]), float(release[i])
        for edge in range(first[i], first[i + 1]):
            ready = end[source[edge]] + lag[edge]
            if kind[edge] == launch:
                begin = max(begin, ready, start[source[edge]])
            elif kind[edge] == sync:
                released = max(released, ready)
            else:
                begin = max(begin, ready)
        if types[i] == waiting:
            start[i] = begin
            end[i] = max(begin + duration[i], released) + delay[i]
        else:
            start[i] = begin + delay[i]
            end[i] = start[i] + duration[i]
    return start, end


def _explained(plan: Plan) -> Plan:
    """Fill in the delays that make the schedule reproduce the recorded times."""
    timeline = plan.timeline
    start, end = timeline.start_ns[plan.node], timeline.end_ns[plan.node]
    waiting = plan.node_type == NodeType.SYNC
    target = np.repeat(np.arange(len(plan.node)), np.diff(plan.edge_first))
    is_sync = plan.edge_type == EdgeType.SYNC
    ready = end[plan.edge_source] + plan.edge_lag_ns
    launched = plan.edge_type == EdgeType.LAUNCH
    ready[launched] = np.maximum(ready[launched], start[plan.edge_source[launched]])
    begin = plan.floor_ns.copy()
    np.maximum.at(begin, target[~is_sync], ready[~is_sync])
    released = plan.release_ns.copy()
    np.maximum.at(released, target[is_sync], ready[is_sync])
    modelled = np.where(waiting, np.maximum(begin + plan.duration_ns, released), begin)
    return replace(plan, delay_ns=np.where(waiting, end, start) - modelled)


def _longest_run(timeline: Timeline, audit: DeviceAudit) -> tuple[int, int]:
    """Return the longest run of used steps, cut to what fits, as a half-open range."""
    used = np.array([item.used for item in audit.steps.items] + [False], np.int8)
    change = np.diff(np.concatenate(([0], used)))
    starts, ends = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
    if not len(starts):
        return 0, 0
    longest = int((ends - starts).argmax())
    first, last = int(starts[longest]), int(ends[longest])
    counts = np.bincount(timeline.step[timeline.step >= 0], minlength=last)[first:last]
    fits = int(np.searchsorted(np.cumsum(counts), MAX_NODES, "right"))
    return first, first + max(fits, 1)


def _edges(timeline: Timeline, position: I64) -> tuple[I64, I64, I64, I64, I64]:
    """Return the edges into the plan: target, source (-1 if outside), lag, type, and when the source was ready."""
    mine = np.flatnonzero(position[timeline.target] >= 0)
    mine = mine[np.argsort(position[timeline.target[mine]], kind="stable")]
    source, target = timeline.source[mine], timeline.target[mine]
    kind = timeline.edge_type[mine].astype(np.int64)
    lag = _usual_lags(timeline, mine)
    return position[target], position[source], lag, kind, timeline.end_ns[source] + lag


def _latest(size: int, target: I64, at: I64) -> I64:
    latest = np.full(size, np.iinfo(np.int64).min, np.int64)
    np.maximum.at(latest, target, at)
    return latest


def _usual_lags(timeline: Timeline, edges: npt.NDArray[np.intp]) -> I64:
    """Return the lags of edges, from the source's end; capped by what such an edge usually costs.

    The usual cost is the median over the targets that this edge bound: of a target's edges, the one whose source was
    done last. Lags of the host thread are its work, lags inside a graph are the nodes' own latency: both stay.
    """
    kind, source, target = timeline.edge_type[edges], timeline.source[edges], timeline.target[edges]
    until = np.where(kind == EdgeType.SYNC, timeline.end_ns[target], timeline.start_ns[target])
    lag = until - timeline.end_ns[source]
    done = np.full(len(timeline), np.iinfo(np.int64).min, np.int64)
    np.maximum.at(done, target, timeline.end_ns[source])
    binding = timeline.end_ns[source] == done[target]
    for edge_type in (EdgeType.LAUNCH, EdgeType.STREAM, EdgeType.EVENT, EdgeType.SYNC):
        own = kind == edge_type
        deciding = own & binding & (lag >= 0)
        usual = int(np.median(lag[deciding])) if deciding.any() else UNSEEN_LAG_NS
        lag[own] = np.minimum(lag[own], usual)
    return lag


def _durations(timeline: Timeline, node: I64) -> I64:
    """Return recorded durations; for waiting calls the least that such a call takes when its op is already done."""
    duration = timeline.end_ns - timeline.start_ns
    waiting = timeline.node_type == NodeType.SYNC
    ended = np.full(len(timeline), np.iinfo(np.int64).min, np.int64)
    of_sync = timeline.edge_type == EdgeType.SYNC
    np.maximum.at(ended, timeline.target[of_sync], timeline.end_ns[timeline.source[of_sync]])
    known = np.zeros(len(timeline), np.bool_)
    known[timeline.target[of_sync]] = True
    waited = waiting & known & (ended > timeline.start_ns)
    in_vain = waiting & known & ~waited
    least = int(duration[in_vain].min()) if in_vain.any() else WAIT_CALL_NS
    return np.where(waited, np.minimum(duration, least), duration)[node]


def _tail(timeline: Timeline, node: I64, end: int, host_end: int) -> tuple[I64, I64]:
    """Return what decides the end of the last window: the last op of each queue, the host's last call and its work."""
    is_op = timeline.node_type[node] == NodeType.OP
    ops = np.flatnonzero(is_op)
    stream = timeline.view.ops.stream[timeline.row[node[ops]]]
    last = {queue: ops[stream == queue] for queue in np.unique(stream).tolist()}
    groups = [(mine, end) for mine in last.values()] + [(np.flatnonzero(~is_op), min(host_end, end))]
    source: list[int] = []
    lag: list[int] = []
    for mine, until in groups:
        if len(mine):
            latest = int(mine[np.argmax(timeline.end_ns[node[mine]])])
            behind = until - int(timeline.end_ns[node[latest]])
            source.append(latest)
            lag.append(min(behind, 0) if is_op[latest] else behind)
    ends = [int(timeline.end_ns[node[one]]) for one in source]
    if max(at + behind for at, behind in zip(ends, lag, strict=True)) < end:  # with work of steps before the plan
        lag[0] = end - ends[0]
    return np.array(source, np.int64), np.array(lag, np.int64)
