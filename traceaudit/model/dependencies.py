"""What makes a host call or a device op wait for another: nodes and typed edges of the kernel-timeline graph."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from traceaudit.model import apis
from traceaudit.model.causes import blocking_rows
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.schema import I8, I64, HostCategory

__all__ = ["EdgeType", "Edges", "NodeType", "Nodes", "edges_of", "nodes_of"]

WAIT_SLACK_NS = 5_000
"""An op that starts this soon after an op of another queue ends may have waited for it, if a wait was enqueued."""

RESTART_NS = 50_000
"""How soon it starts if the wait was enqueued right before it: queues of ROCm take 10 to 20 µs to go on, and a whole
buffer of the profiler may come between."""


class NodeType(IntEnum):
    """What a node is."""

    LAUNCH = 0
    OP = 1
    SYNC = 2
    WAIT = 3


class EdgeType(IntEnum):
    """Why an edge's target had to wait for its source."""

    HOST = 0
    LAUNCH = 1
    STREAM = 2
    EVENT = 3
    SYNC = 4
    GRAPH = 5


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes before edges: calls first, then ops."""

    calls: I64
    node_type: I8
    start_ns: I64
    end_ns: I64
    node_of_call: I64
    ops: int

    @property
    def first_op(self) -> int:
        """Number of the first op's node."""
        return len(self.calls)


Edges = tuple[I64, I64, I8, npt.NDArray[np.bool_]]
"""Columns of edges: source and target node, `EdgeType`, and whether the edge is inferred."""


def edges_of(view: DeviceView, nodes: Nodes) -> Edges:
    """Return all edges between the nodes of a device; some may lead backward in time."""
    plain = [
        _host_edges(view, nodes),
        _launch_edges(view, nodes),
        *_queue_edges(view, nodes),
        _boundary_edges(view, nodes),
    ]
    groups = [*plain, _event_edges(view, nodes, _ready(nodes, plain)), _sync_edges(view, nodes)]
    source, target, edge_type, inferred = (np.concatenate(column) for column in zip(*groups, strict=True))
    return source, target, edge_type, inferred


def _edges(source: I64, target: I64, kind: EdgeType, inferred: npt.NDArray[np.bool_] | None = None) -> Edges:
    flags = np.zeros(len(source), np.bool_) if inferred is None else inferred
    return source.astype(np.int64), target.astype(np.int64), np.full(len(source), kind, np.int8), flags


def nodes_of(view: DeviceView) -> Nodes:
    """Collect the nodes. A blocking call with ops of its own (a synchronous copy) is two: it launches, then waits.

    When such a call had enqueued its copy is not recorded, so its launch takes no time and the wait takes all of it.
    """
    ops, host = view.ops, view.trace.host
    launches = np.zeros(len(host), np.bool_)
    launches[ops.launch[ops.launch >= 0]] = True
    calls, kind = _calls(view, launches)
    both = np.flatnonzero((kind == NodeType.SYNC) & launches[calls])
    start, end = host.start_ns[calls], host.end_ns[calls].copy()
    kind[both], end[both] = NodeType.LAUNCH, start[both]
    rows = np.concatenate((calls, calls[both]))
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    node_of_call = np.full(len(host) + 1, -1, np.int64)  # the last entry answers for -1, no launch
    node_of_call[ordered[::-1]] = np.arange(len(ordered))[::-1]
    return Nodes(
        calls=ordered,
        node_type=np.concatenate((_joined(kind, NodeType.SYNC, both, order), np.full(len(ops), NodeType.OP))).astype(
            np.int8
        ),
        start_ns=np.concatenate((host.start_ns[ordered], ops.start_ns)),
        end_ns=np.concatenate((np.concatenate((end, host.end_ns[calls[both]]))[order], ops.end_ns)),
        node_of_call=node_of_call,
        ops=len(ops),
    )


def _joined(kind: I8, tail: NodeType, both: I64, order: I64) -> I8:
    return np.concatenate((kind, np.full(len(both), tail, np.int8)))[order]


def _calls(view: DeviceView, launches: npt.NDArray[np.bool_]) -> tuple[I64, I8]:
    """Return the host calls of the rank that launch, wait or block, and what each does."""
    trace, host = view.trace, view.trace.host
    roles = np.array([apis.role_of(name) for name in trace.names], np.int8)
    mine = (trace.threads.rank[host.thread] == view.rank) & (host.category == HostCategory.API)
    blocked = blocking_rows(trace, view.ops) & mine
    role = np.where(mine, roles[host.name], apis.ApiRole.OTHER)
    waits = (role == apis.ApiRole.STREAM_WAIT) | (role == apis.ApiRole.EVENT_RECORD)
    calls = np.flatnonzero(mine & (launches | blocked | waits | (role == apis.ApiRole.LAUNCH)))
    kind = np.where(blocked[calls], NodeType.SYNC, np.where(waits[calls], NodeType.WAIT, NodeType.LAUNCH))
    return calls, kind.astype(np.int8)


def _host_edges(view: DeviceView, nodes: Nodes) -> Edges:
    """Join the calls of each thread in program order."""
    thread = view.trace.host.thread[nodes.calls]
    order = np.argsort(thread, kind="stable")
    same = thread[order[1:]] == thread[order[:-1]]
    return _edges(order[:-1][same], order[1:][same], EdgeType.HOST)


def _launch_edges(view: DeviceView, nodes: Nodes) -> Edges:
    """Join each launch with its ops."""
    source = nodes.node_of_call[view.ops.launch]
    known = np.flatnonzero(source >= 0)
    return _edges(source[known], nodes.first_op + known, EdgeType.LAUNCH)


def _queue_edges(view: DeviceView, nodes: Nodes) -> tuple[Edges, Edges, Edges]:
    """Join the ops of each queue in order, and the ops of a graph launch across queues.

    Queues are in order inside a launch too, where an op may start before the one before it ends (dependent launch).
    Which branch of a graph waited for which is not recorded: of other queues, what ended last before an op began.
    """
    ops = view.ops
    order = np.lexsort((np.arange(len(ops)), ops.stream))
    previous, following = order[:-1], order[1:]
    same_queue = ops.stream[previous] == ops.stream[following]
    one_launch = (ops.launch[previous] >= 0) & (ops.launch[previous] == ops.launch[following])
    stream, graph = same_queue & ~one_launch, same_queue & one_launch
    source, target = _latest_before(ops.launch, ops.start_ns, ops.end_ns)
    across = ops.stream[source] != ops.stream[target]
    return (
        _edges(nodes.first_op + previous[stream], nodes.first_op + following[stream], EdgeType.STREAM),
        _edges(nodes.first_op + previous[graph], nodes.first_op + following[graph], EdgeType.GRAPH),
        _edges(nodes.first_op + source[across], nodes.first_op + target[across], EdgeType.GRAPH),
    )


def _boundary_edges(view: DeviceView, nodes: Nodes) -> Edges:
    """Join the ops at either end of a graph launch with the work around it, which may lie on other queues.

    A replay waits for its stream, but its ops carry internal queues, and the stream of the launch is not recorded. A
    replay's first op, or the first op behind a replay's last, that was launched while the other still ran is taken to
    have waited for it.
    """
    ops, host = view.ops, view.trace.host
    launches, counts = np.unique(ops.launch[ops.launch >= 0], return_counts=True)
    if not (counts > 1).any():
        return _edges(np.empty(0, np.int64), np.empty(0, np.int64), EdgeType.STREAM)
    in_graph = np.isin(ops.launch, launches[counts > 1])
    by_end = np.argsort(ops.end_ns, kind="stable")
    position = np.searchsorted(ops.end_ns[by_end], ops.start_ns, "right") - 1
    source, target = by_end[np.maximum(position, 0)], np.arange(len(ops))
    waiting = (ops.launch >= 0) & (host.start_ns[ops.launch] < ops.end_ns[source])
    other = (ops.stream[source] != ops.stream) & (ops.launch[source] < ops.launch)
    first, last = _ends_of_launches(ops.launch, ops.start_ns, ops.end_ns)
    good = (position >= 0) & waiting & other & ((in_graph & first) | (in_graph & last)[source])
    flags = np.ones(int(good.sum()), np.bool_)
    return _edges(nodes.first_op + source[good], nodes.first_op + target[good], EdgeType.STREAM, flags)


def _ends_of_launches(launch: I64, start: I64, end: I64) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Tell which ops start first, and which end last, of those that share their launch."""
    ends = []
    for order in (np.lexsort((start, launch)), np.lexsort((-end, launch))):
        chosen = np.zeros(len(launch), np.bool_)
        chosen[order[np.concatenate(([True], launch[order[1:]] != launch[order[:-1]]))]] = True
        ends.append(chosen)
    return ends[0], ends[1]


def _latest_before(group: I64, start: I64, end: I64) -> tuple[I64, I64]:
    """Pair each member of a group of several with the member that ended last before it began."""
    members = np.flatnonzero(group >= 0)
    _, inverse, counts = np.unique(group[members], return_inverse=True, return_counts=True)
    several = counts[inverse] > 1
    members, number = members[several], inverse[several]
    if not len(members):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.lexsort((start[members], end[members], number))
    by_end = members[order]
    base = int(start[members].min())
    span = int(end[members].max()) - base + 2
    key = number[order] * span + (end[by_end] - base)
    wanted = number * span + (start[members] - base)
    position = np.searchsorted(key, wanted, "right") - 1
    good = (position >= 0) & (group[by_end[np.maximum(position, 0)]] == group[members])
    source = by_end[np.maximum(position, 0)]
    good &= source != members
    return source[good], members[good]


def _ready(nodes: Nodes, groups: list[Edges]) -> I64:
    """Return for each op when the last of what it is known to wait for was done."""
    ready = np.full(nodes.first_op + nodes.ops, np.iinfo(np.int64).min, np.int64)
    for source, target, _, _ in groups:
        np.maximum.at(ready, target, nodes.end_ns[source])
    return ready[nodes.first_op :]


def _event_edges(view: DeviceView, nodes: Nodes, ready: I64) -> Edges:
    """Join ops across queues: by recorded waits where there are any, else where timing tells."""
    recorded = _recorded_waits(view, nodes)
    if len(recorded[0]):
        return recorded
    return _inferred_waits(view, nodes, ready)


def _has_records(view: DeviceView) -> bool:
    """Tell whether the trace records which stream a wait was for, whether or not the ops can be found."""
    syncs = view.trace.syncs
    return bool(((syncs.rank == view.rank) & (syncs.wait_on_stream >= 0)).any())


def _recorded_waits(view: DeviceView, nodes: Nodes) -> Edges:
    """Follow `cuda_sync` rows: the next op on the waiting stream waits for the last op recorded on the other one."""
    syncs, ops, host = view.trace.syncs, view.ops, view.trace.host
    pairs: list[tuple[int, int]] = []
    launched = _enqueued(view)
    call_of = {int(c): i for i, c in enumerate(host.correlation.tolist()) if c >= 0} if len(syncs) else {}
    for i in np.flatnonzero((syncs.rank == view.rank) & (syncs.wait_on_stream >= 0) & (syncs.stream >= 0)).tolist():
        wait, record = call_of.get(int(syncs.correlation[i])), call_of.get(int(syncs.wait_on_correlation[i]))
        if wait is None or record is None:
            continue
        after = np.flatnonzero((ops.stream == syncs.stream[i]) & (launched > host.start_ns[wait]))
        before = np.flatnonzero((ops.stream == syncs.wait_on_stream[i]) & (launched < host.start_ns[record]))
        if len(after) and len(before):
            pairs.append((int(before[-1]), int(after[0])))
    joined = np.array(pairs, np.int64).reshape(-1, 2)
    return _edges(nodes.first_op + joined[:, 0], nodes.first_op + joined[:, 1], EdgeType.EVENT)


def _inferred_waits(view: DeviceView, nodes: Nodes, ready: I64) -> Edges:
    """Take an op to have waited for the op of another queue that ended just before it began.

    Only where nothing else explains its start: its launch, queue and graph let it begin long before. A wait that the
    host enqueued between the op and the one before it in its queue explains more than timing alone.
    """
    ops = view.ops
    if not (nodes.node_type[: nodes.first_op] == NodeType.WAIT).any():
        return _edges(np.empty(0, np.int64), np.empty(0, np.int64), EdgeType.EVENT)
    by_end = np.argsort(ops.end_ns, kind="stable")
    position = np.searchsorted(ops.end_ns[by_end], ops.start_ns, "right") - 1
    source = by_end[np.maximum(position, 0)]
    earlier = (ops.launch[source] < ops.launch) | ((ops.launch < 0) & (ops.launch[source] >= 0))
    good = (position >= 0) & (ops.stream[source] != ops.stream) & earlier
    good &= (ops.start_ns - ops.end_ns[source] <= WAIT_SLACK_NS) & (ops.start_ns - ready > WAIT_SLACK_NS)
    waited_for = np.where(good, source, -1)
    if not _has_records(view):
        ordered, waiting = _waits_in_order(view, nodes, ready, by_end)
        waited_for[waiting] = ordered
    target = np.flatnonzero(waited_for >= 0)
    flags = np.ones(len(target), np.bool_)
    return _edges(nodes.first_op + waited_for[target], nodes.first_op + target, EdgeType.EVENT, flags)


def _waits_in_order(view: DeviceView, nodes: Nodes, ready: I64, by_end: I64) -> tuple[I64, I64]:
    """Pair ops, as source and target, where the order of the host's calls bears a wait out.

    The target's thread enqueued a wait between its launch and that of the op before it in its queue, and the source,
    of another queue, was launched before that wait. Of those the last to end counts, if it explains more of the
    target's waiting than what is left.
    """
    ops, enqueued = view.ops, _enqueued(view)
    asked = _last_waits(view, nodes)
    order = np.lexsort((np.arange(len(ops)), ops.stream))
    same_queue = ops.stream[order[1:]] == ops.stream[order[:-1]]
    previous = np.full(len(ops), np.iinfo(np.int64).min, np.int64)
    previous[order[1:][same_queue]] = enqueued[order[:-1][same_queue]]
    ends = ops.end_ns[by_end]
    pairs: list[tuple[int, int]] = []
    for target in np.flatnonzero((asked > previous) & (ops.start_ns - ready > WAIT_SLACK_NS)).tolist():
        start = int(ops.start_ns[target])
        near = by_end[np.searchsorted(ends, start - RESTART_NS) : np.searchsorted(ends, start, "right")]
        near = near[(ops.stream[near] != ops.stream[target]) & (enqueued[near] < asked[target])]
        if len(near) and ops.end_ns[near[-1]] - ready[target] > start - ops.end_ns[near[-1]]:
            pairs.append((int(near[-1]), target))
    joined = np.array(pairs, np.int64).reshape(-1, 2)
    return joined[:, 0], joined[:, 1]


def _last_waits(view: DeviceView, nodes: Nodes) -> I64:
    """Return for each op when its thread last began to enqueue a wait before its launch; the least number if never."""
    trace, host, launch = view.trace, view.trace.host, view.ops.launch
    enqueues = np.array([apis.role_of(name) is apis.ApiRole.STREAM_WAIT for name in trace.names], np.bool_)
    waits = nodes.calls[(nodes.node_type[: nodes.first_op] == NodeType.WAIT) & enqueues[host.name[nodes.calls]]]
    asked = np.full(len(launch), np.iinfo(np.int64).min, np.int64)
    for thread in np.unique(host.thread[waits]).tolist():
        begun = host.start_ns[waits[host.thread[waits] == thread]]
        mine = np.flatnonzero((launch >= 0) & (host.thread[launch] == thread))
        last = np.searchsorted(begun, host.start_ns[launch[mine]]) - 1
        asked[mine[last >= 0]] = begun[last[last >= 0]]
    return asked


def _enqueued(view: DeviceView) -> I64:
    """Return when the launch of each op began; the greatest number if it is not known."""
    ops, host = view.ops, view.trace.host
    if not len(host):
        return np.full(len(ops), np.iinfo(np.int64).max, np.int64)
    return np.where(ops.launch >= 0, host.start_ns[ops.launch], np.iinfo(np.int64).max)


def _sync_edges(view: DeviceView, nodes: Nodes) -> Edges:
    """Join blocking calls with the op they waited for: the last to end before it returned, of those launched before.

    Another thread may launch while the call blocks: the call does not wait for that. Which stream or event a call waits
    for is not in its row, so the edge is inferred unless the call is a copy's own.
    """
    ops, host = view.ops, view.trace.host
    syncs = np.flatnonzero(nodes.node_type[: nodes.first_op] == NodeType.SYNC)
    if not len(syncs) or not len(ops):
        return _edges(np.empty(0, np.int64), np.empty(0, np.int64), EdgeType.SYNC)
    by_end = np.argsort(ops.end_ns, kind="stable")
    ends = ops.end_ns[by_end]
    last = np.searchsorted(ends, nodes.end_ns[syncs], "right") - 1
    source = by_end[np.maximum(last, 0)]
    call = nodes.calls[syncs]
    earlier = _enqueued_by(view, source) <= host.start_ns[call]
    for i in np.flatnonzero((last >= 0) & ~earlier).tolist():
        meanwhile = by_end[np.searchsorted(ends, nodes.start_ns[syncs[i]], "right") : last[i]]
        candidates = meanwhile[_enqueued_by(view, meanwhile) <= host.start_ns[call[i]]]
        if len(candidates):
            source[i], earlier[i] = candidates[-1], True
    own = ops.launch[source] == call
    good = (last >= 0) & earlier
    return _edges(nodes.first_op + source[good], syncs[good], EdgeType.SYNC, ~own[good])


def _enqueued_by(view: DeviceView, ops: I64) -> I64:
    """Return when the launches of some ops began; the least number if it is not known, since it may be long ago."""
    launch = view.ops.launch[ops]
    return np.where(launch < 0, np.iinfo(np.int64).min, view.trace.host.start_ns[launch])
