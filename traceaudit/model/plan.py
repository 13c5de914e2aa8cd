"""Consecutive steps as a schedule that can be re-timed: nodes in order, and what each of them waits for.

Order and dependencies stay as recorded. An edge's lag is the recorded one, but no more than what such an edge usually
costs: an op that waited in a queue shows a long time since its launch that is no cost of launching. What remains
unexplained of a node's recorded start is kept as its own delay.

The steps of a plan follow one another without end: what the first waits for is done by the last. So the host may run
ahead over the end of a plan, and nothing is counted for the filling of an empty queue.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from traceaudit.model.handover import Handovers, handovers_of
from traceaudit.model.results import DeviceAudit
from traceaudit.model.schema import I64
from traceaudit.model.timeline import EdgeType, NodeType, Timeline

__all__ = ["HostStretches", "Plan", "plan_of"]

Flags = npt.NDArray[np.bool_]

MAX_NODES = 20_000
"""Nodes of a plan at most: as many whole steps as fit, since every re-timing visits every node in turn, thrice."""

UNSEEN_LAG_NS = 5_000
"""Lag of a kind of edge that never decided in the trace: delivery and hand-over take a few microseconds."""

WAIT_CALL_NS = 3_000
"""What a waiting call takes that need not wait, where the trace has none to show it."""

NEVER = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True)
class HostStretches:
    """Where the host's time between two calls of a thread lies: ``[since_ns, until_ns)`` of an edge.

    An edge from the last call of a plan to the first has two: behind the one, and before the other. A wait for another
    thread that lies in such a stretch is one of its own with `sign` -1: it is no work.
    """

    edge: I64
    thread: I64
    since_ns: I64
    until_ns: I64
    sign: I64


@dataclass(frozen=True, slots=True)
class Plan:
    """Consecutive steps as a schedule; positions are in an order in which predecessors come first.

    Attributes
    ----------
    timeline, first_step
        The graph, and the first step of it that the plan holds.
    steps
        How many steps the plan counts for: those it holds, or into how many the user divides a whole trace.
    start_ns, end_ns
        When the first window begins and the last ends, as recorded.
    node
        Node of each position.
    duration_ns
        Recorded duration; of waiting calls the shortest that such a call takes when it need not wait.
    delay_ns
        Part of the recorded start (of waiting calls: end) that no predecessor explains.
    edge_first, edge_source, edge_lag_ns, edge_type
        Predecessors of position ``i`` are edges ``edge_first[i]`` to ``edge_first[i + 1]``: positions, lags, types.
    edge_back
        Whether the source is that of the round before.
    stretches
        The host's time between calls.
    """

    timeline: Timeline
    first_step: int
    steps: int
    start_ns: int
    end_ns: int
    node: I64
    duration_ns: I64
    delay_ns: I64
    edge_first: I64
    edge_source: I64
    edge_lag_ns: I64
    edge_type: I64
    edge_back: Flags
    stretches: HostStretches

    @property
    def node_type(self) -> I64:
        """`NodeType` of each position."""
        return self.timeline.node_type[self.node].astype(np.int64)

    @property
    def edge_target(self) -> I64:
        """Position to which each edge leads."""
        return np.repeat(np.arange(len(self.node)), np.diff(self.edge_first))


def plan_of(timeline: Timeline, audit: DeviceAudit) -> Plan | None:
    """Prepare the longest run of used steps for re-timing; None if no used step has a node."""
    first, last = _longest_run(timeline, audit)
    chosen = (timeline.step >= first) & (timeline.step < last)
    node = timeline.order[chosen[timeline.order]]
    if not len(node):
        return None
    window, marks = audit.steps.items, timeline.view.marks
    start, end = window[first].start_ns, window[last - 1].start_ns + window[last - 1].window_ns
    host = (int(marks.start_ns[first]), int(marks.end_ns[last - 1]))
    handovers = handovers_of(timeline, node, host)
    edges = _edges(timeline, node, end - start, host, handovers)
    plan = Plan(
        timeline=timeline,
        first_step=first,
        steps=audit.ledger.steps if len(audit.steps.items) == 1 else last - first,
        start_ns=start,
        end_ns=end,
        node=node,
        duration_ns=_durations(timeline, node),
        delay_ns=np.zeros(len(node), np.int64),
        edge_first=np.searchsorted(edges.target, np.arange(len(node) + 1)),
        edge_source=edges.source,
        edge_lag_ns=edges.lag_ns,
        edge_type=edges.kind,
        edge_back=edges.back,
        stretches=_stretches(timeline, node, edges, host, handovers),
    )
    return replace(plan, delay_ns=_delays(plan, host[1] - host[0]))


def _delays(plan: Plan, host_ns: int) -> I64:
    """Return what no predecessor explains of the recorded starts (of waiting calls: ends).

    Parameters
    ----------
    host_ns
        The host's time for the plan: a round that it runs ahead is that much earlier.
    """
    timeline, kind, target = plan.timeline, plan.edge_type, plan.edge_target
    start, end = timeline.start_ns[plan.node], timeline.end_ns[plan.node]
    earlier = np.where(kind == EdgeType.HOST, host_ns, plan.end_ns - plan.start_ns)
    ready = end[plan.edge_source] - np.where(plan.edge_back, earlier, 0) + plan.edge_lag_ns
    launched, is_sync = kind == EdgeType.LAUNCH, kind == EdgeType.SYNC
    ready[launched] = np.maximum(ready[launched], start[plan.edge_source[launched]])
    begin = _latest(len(plan.node), target[~is_sync], ready[~is_sync])
    begin = np.where(begin == NEVER, start, begin)
    released = _latest(len(plan.node), target[is_sync], ready[is_sync])
    waiting = plan.node_type == NodeType.SYNC
    modelled = np.where(waiting, np.maximum(begin + plan.duration_ns, released), begin)
    unexplained: I64 = np.where(waiting, end, start) - modelled
    return np.maximum(unexplained, 0)


def _latest(size: int, target: I64, at: I64) -> I64:
    latest = np.full(size, NEVER, np.int64)
    np.maximum.at(latest, target, at)
    return latest


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


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges of a plan, by target; `source` and `target` are positions."""

    target: I64
    source: I64
    lag_ns: I64
    kind: I64
    back: Flags


def _edges(timeline: Timeline, node: I64, period_ns: int, host: tuple[int, int], handovers: Handovers) -> _Edges:
    """Return the edges inside a plan, and those from its end back to its beginning."""
    position = np.full(len(timeline), -1, np.int64)
    position[node] = np.arange(len(node))
    usual = _usual_lags(timeline, np.flatnonzero(position[timeline.target] >= 0))
    mine = np.flatnonzero(position[timeline.target] >= 0)
    source, target, kind = timeline.source[mine], timeline.target[mine], timeline.edge_type[mine].astype(np.int64)
    lag = np.minimum(_lags(timeline, mine), np.array([usual[one] for one in EdgeType])[kind])
    inside = position[source] >= 0
    first_call, last_call = _ends_by_queue(timeline, node, of_ops=False)
    first_op, last_op = _ends_by_queue(timeline, node, of_ops=True)
    hand_over = timeline.start_ns[first_op] + period_ns - timeline.end_ns[last_op]
    outside = np.flatnonzero(~inside & (kind != EdgeType.HOST) & ~_same_queue(timeline, source, target))
    like = _a_round_later(timeline, position, source[outside])
    outside, like = outside[like >= 0], like[like >= 0]
    waited = handovers.waited_ns(len(timeline), first_call, timeline.queue[first_call])
    lag -= np.where(kind == EdgeType.HOST, waited[target], 0)
    around = _around(timeline, first_call, last_call, host) - waited[first_call]
    forward, backward = _turns(timeline, position, first_call, handovers, host)
    columns: list[_Columns] = [
        (target[inside], source[inside], lag[inside], kind[inside]),
        forward,
        (first_call, last_call, around, np.full(len(first_call), EdgeType.HOST)),
        backward,
        (first_op, last_op, np.clip(hand_over, 0, usual[EdgeType.STREAM]), np.full(len(first_op), EdgeType.STREAM)),
        (target[outside], like, lag[outside], kind[outside]),
    ]
    targets = np.concatenate([column[0] for column in columns])
    order = np.argsort(position[targets], kind="stable")
    return _Edges(
        target=position[targets][order],
        source=position[np.concatenate([column[1] for column in columns])][order],
        lag_ns=np.concatenate([column[2] for column in columns])[order],
        kind=np.concatenate([column[3] for column in columns])[order],
        back=(np.arange(len(targets)) >= inside.sum() + len(forward[0]))[order],
    )


_Columns = tuple[I64, I64, I64, I64]
"""Target, source, lag and type of edges."""


def _turns(
    timeline: Timeline, position: I64, first_call: I64, handovers: Handovers, host: tuple[int, int]
) -> tuple[_Columns, _Columns]:
    """Return the edges from the call of one thread to that of another which waited for it: inside, and a round later.

    The last of the waits before a call decides.
    """
    target = handovers.resumed(first_call, timeline.queue[first_call])
    later = handovers.target < 0
    order = np.lexsort((handovers.until_ns, ~later, target))
    decides = order[np.append(target[order][1:] != target[order][:-1], np.ones(min(len(order), 1), np.bool_))]
    target, source, later = target[decides], handovers.source[decides], later[decides]
    lag = timeline.start_ns[target] - timeline.end_ns[source] + np.where(later, host[1] - host[0], 0)
    kind = np.full(len(target), EdgeType.HOST, np.int64)
    forward = np.flatnonzero(~later & (position[source] < position[target]))
    back = np.flatnonzero(later)
    inside, behind = ((target[one], source[one], lag[one], kind[one]) for one in (forward, back))
    return inside, behind


def _ends_by_queue(timeline: Timeline, node: I64, *, of_ops: bool) -> tuple[I64, I64]:
    """Return the first and the last node of each stream, or of each thread."""
    mine = np.sort(node[(timeline.node_type[node] == NodeType.OP) == of_ops])
    queue = timeline.queue[mine]
    _, first = np.unique(queue, return_index=True)
    _, last = np.unique(queue[::-1], return_index=True)
    return mine[first], mine[::-1][last]


def _same_queue(timeline: Timeline, source: I64, target: I64) -> Flags:
    of_ops = (timeline.node_type[source] == NodeType.OP) & (timeline.node_type[target] == NodeType.OP)
    same: Flags = of_ops & (timeline.queue[source] == timeline.queue[target])
    return same


def _around(timeline: Timeline, first: I64, last: I64, host: tuple[int, int]) -> I64:
    """Return the host's time behind the last call of a plan and before the first."""
    behind = np.maximum(host[1] - timeline.end_ns[last], 0)
    return behind + np.maximum(timeline.start_ns[first] - host[0], 0)


def _a_round_later(timeline: Timeline, position: I64, source: I64) -> I64:
    """Return the ops of a plan that are as far from its end as given ones from its beginning, per stream.

    -1 where there is none.
    """
    like = np.full(len(source), -1, np.int64)
    queue, is_op = timeline.queue, timeline.node_type == NodeType.OP
    for stream in np.unique(queue[source]).tolist():
        line = np.flatnonzero(is_op & (queue == stream))
        planned = np.flatnonzero(position[line] >= 0)
        mine = np.flatnonzero(is_op[source] & (queue[source] == stream))
        if len(planned) and len(mine):
            before = planned[0] - np.searchsorted(line, source[mine])
            good = (before > 0) & (before <= len(planned))
            like[mine[good]] = line[planned[len(planned) - before[good]]]
    return like


def _stretches(
    timeline: Timeline, node: I64, edges: _Edges, host: tuple[int, int], handovers: Handovers
) -> HostStretches:
    """Return where the host's time of each of its edges lies."""
    inner = np.flatnonzero((edges.kind == EdgeType.HOST) & ~edges.back)
    back = np.flatnonzero((edges.kind == EdgeType.HOST) & edges.back)
    source, target, queue = node[edges.source], node[edges.target], timeline.queue
    own = np.flatnonzero((edges.kind == EdgeType.HOST) & (queue[source] == queue[target]))
    edge_of = np.full(len(timeline), -1, np.int64)
    edge_of[target[own]] = own
    first_call, _ = _ends_by_queue(timeline, node, of_ops=False)
    waits = edge_of[handovers.resumed(first_call, queue[first_call])]
    edge = np.concatenate((inner, back, back, waits))
    since = (timeline.end_ns[source[inner]], timeline.end_ns[source[back]], np.full(len(back), host[0]))
    until = (timeline.start_ns[target[inner]], np.full(len(back), host[1]), timeline.start_ns[target[back]])
    since_ns = np.concatenate((*since, handovers.since_ns))
    until_ns = np.concatenate((*until, handovers.until_ns))
    sign = np.where(np.arange(len(edge)) < len(edge) - len(waits), 1, -1)
    return HostStretches(edge, queue[target[edge]], since_ns, np.maximum(until_ns, since_ns), sign)


def _lags(timeline: Timeline, edges: npt.NDArray[np.intp]) -> I64:
    """Return lags from the source's end to the target's start (of waiting calls: end)."""
    target = timeline.target[edges]
    until = np.where(timeline.edge_type[edges] == EdgeType.SYNC, timeline.end_ns[target], timeline.start_ns[target])
    return until - timeline.end_ns[timeline.source[edges]]


def _usual_lags(timeline: Timeline, edges: npt.NDArray[np.intp]) -> dict[EdgeType, int]:
    """Return what edges of each type usually cost: the median over the targets that such an edge bound.

    Of a target's edges, the one whose source was done last bound it. Lags of the host thread are its work, lags inside
    a graph are the nodes' own latency: they have no limit.
    """
    kind, source, target = timeline.edge_type[edges], timeline.source[edges], timeline.target[edges]
    lag = _lags(timeline, edges)
    done = _latest(len(timeline), target, timeline.end_ns[source])
    binding = timeline.end_ns[source] == done[target]
    usual = dict.fromkeys(EdgeType, np.iinfo(np.int64).max)
    for edge_type in (EdgeType.LAUNCH, EdgeType.STREAM, EdgeType.EVENT, EdgeType.SYNC):
        deciding = (kind == edge_type) & binding & (lag >= 0)
        usual[edge_type] = int(np.median(lag[deciding])) if deciding.any() else UNSEEN_LAG_NS
    return usual


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
