"""The critical path of a step: walking back from the end of its window, what each moment waited for.

Every stretch of the window belongs to exactly one element of the path, so the path sums to the window.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from traceaudit.model.schema import I64
from traceaudit.model.timeline import EdgeType, NodeType, Timeline

__all__ = ["PathKind", "Stretch", "critical_path"]


class PathKind(StrEnum):
    """What a stretch of the critical path is.

    `OP` runs on the device. `LAUNCH_CALL` and `HOST` are the launching thread: a call, and the time between calls.
    `SYNC` is a blocking call that found nothing to wait for. `DELIVERY` runs from a launch's return to its op, `QUEUE`
    and `GRAPH` from an op to the next in the queue or graph, `EVENT` from an op to one of another queue that waited for
    it, `WAKE_UP` from an op to the return of the call that waited for it. `BEFORE` is bound by something that the trace
    does not hold.
    """

    OP = "op"
    LAUNCH_CALL = "launch_call"
    HOST = "host"
    SYNC = "sync"
    DELIVERY = "delivery"
    QUEUE = "queue"
    GRAPH = "graph"
    EVENT = "event"
    WAKE_UP = "wake_up"
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the path, ``[start_ns, end_ns)``, and the node of the timeline it is about (-1 for none)."""

    kind: PathKind
    node: int
    start_ns: int
    end_ns: int


_OF_EDGE = {
    int(EdgeType.STREAM): PathKind.QUEUE,
    int(EdgeType.GRAPH): PathKind.GRAPH,
    int(EdgeType.EVENT): PathKind.EVENT,
    int(EdgeType.SYNC): PathKind.WAKE_UP,
}


def critical_path(timeline: Timeline, start_ns: int, end_ns: int) -> tuple[Stretch, ...]:
    """Walk back from the end of a window to its start.

    Returns
    -------
    tuple of Stretch
        Touching stretches in time order, from `start_ns` to `end_ns`.
    """
    walk = _Walk(timeline, start_ns, end_ns)
    node = walk.first_node()
    while node >= 0 and walk.now > start_ns:
        node = walk.over_op(node) if timeline.node_type[node] == NodeType.OP else walk.over_call(node)
    walk.back_to(start_ns, PathKind.BEFORE, -1)
    return tuple(reversed(walk.path))


class _Walk:
    """Position of the walk and the path behind it."""

    def __init__(self, timeline: Timeline, start_ns: int, end_ns: int) -> None:
        self.timeline = timeline
        self.start_ns = start_ns
        self.now = end_ns
        self.path: list[Stretch] = []
        self._first_op = len(timeline) - len(timeline.view.ops)
        order = np.argsort(timeline.target, kind="stable")
        self._source, self._kind = timeline.source[order], timeline.edge_type[order]
        self._first = np.searchsorted(timeline.target[order], np.arange(len(timeline) + 1))

    def back_to(self, at: int, kind: PathKind, node: int) -> None:
        """Book the time from `at` to the present position, and move there."""
        at = max(at, self.start_ns)
        if at < self.now:
            self.path.append(Stretch(kind, node, at, self.now))
            self.now = at

    def first_node(self) -> int:
        """Return the node at the end of the window: the op that runs there, else the next op, which ends the gap.

        Where no op follows, or nothing before its launch is known, it is what ended last, with the host behind it: the
        host was not done. If nothing ended in the window either, the host has all of it, unless an op follows whose
        launch is missing.
        """
        timeline = self.timeline
        running = self._running()
        if running >= 0:
            return running
        following = self._following()
        if following >= 0 and self._is_led_up_to(following):
            return following
        done = np.flatnonzero((timeline.end_ns <= self.now) & (timeline.end_ns > self.start_ns))
        if not len(done):
            if following < 0 or len(self._edges_into(following)[0]):
                self.back_to(self.start_ns, PathKind.HOST, -1)
            return -1
        node = int(done[np.argmax(timeline.end_ns[done])])
        is_op = timeline.node_type[node] == NodeType.OP
        self.back_to(int(timeline.end_ns[node]), PathKind.HOST, -1 if is_op else node)
        return node

    def _running(self) -> int:
        """Return the op that runs up to the end of the window, the first to end of several; -1 if none does."""
        start, end = self._ops()
        running = np.flatnonzero((start < self.now) & (end >= self.now))
        first = np.lexsort((-start[running], end[running]))[:1]
        return int(running[first[0]]) + self._first_op if len(first) else -1

    def _following(self) -> int:
        """Return the next op behind the window; -1 if none follows."""
        start, end = self._ops()
        behind = np.flatnonzero((start >= self.now) & (end > start))
        return int(behind[np.argmin(start[behind])]) + self._first_op if len(behind) else -1

    def _is_led_up_to(self, node: int) -> bool:
        """Tell whether it is known what came before an op, and before its launch if that has not begun."""
        sources, kinds = self._edges_into(node)
        launch = sources[kinds == EdgeType.LAUNCH]
        if not len(launch) or self.timeline.start_ns[launch[0]] < self.now:
            return len(sources) > 0
        return EdgeType.HOST in self._edges_into(int(launch[0]))[1]

    def _ops(self) -> tuple[I64, I64]:
        """Return the starts and ends of the ops, which follow the calls."""
        return self.timeline.start_ns[self._first_op :], self.timeline.end_ns[self._first_op :]

    def over_op(self, node: int) -> int:
        """Cross an op to what it waited for last."""
        timeline = self.timeline
        self.back_to(int(timeline.start_ns[node]), PathKind.OP, node)
        sources, kinds = self._edges_into(node)
        if not len(sources):
            return -1
        best = int(np.argmax(timeline.end_ns[sources]))
        source, kind = int(sources[best]), int(kinds[best])
        if kind != EdgeType.LAUNCH:
            self.back_to(int(timeline.end_ns[source]), _OF_EDGE[kind], node)
            return source
        self.back_to(int(timeline.end_ns[source]), PathKind.DELIVERY, node)
        return source

    def over_call(self, node: int) -> int:
        """Cross a call to the call before it on its thread, or to the op that it waited for."""
        timeline = self.timeline
        sources, kinds = self._edges_into(node)
        waited = [int(s) for s, k in zip(sources, kinds, strict=True) if k == EdgeType.SYNC]
        if waited and timeline.end_ns[waited[0]] > timeline.start_ns[node]:
            self.back_to(int(timeline.end_ns[waited[0]]), PathKind.WAKE_UP, node)
            return waited[0]
        kind = PathKind.SYNC if timeline.node_type[node] == NodeType.SYNC else PathKind.LAUNCH_CALL
        self.back_to(int(timeline.start_ns[node]), kind, node)
        earlier = [int(s) for s, k in zip(sources, kinds, strict=True) if k == EdgeType.HOST]
        self.back_to(int(timeline.end_ns[earlier[0]]) if earlier else self.start_ns, PathKind.HOST, node)
        return earlier[0] if earlier else -1

    def _edges_into(self, node: int) -> tuple[I64, I64]:
        mine = slice(int(self._first[node]), int(self._first[node + 1]))
        return self._source[mine], self._kind[mine].astype(np.int64)
