"""Where threads that launch take turns: which pauses of one are a wait for the calls of another.

One thread often goes on where another ended: the backward pass behind the forward pass, a worker behind the scheduler.
No row records that wait. A pause of a thread is taken for one if others worked through most of it, or if it ends soon
after the blocking call of another returns. Time in blocking calls is no work: what they wait for is known.
"""

from dataclasses import dataclass

import numpy as np

from traceaudit.model import intervals
from traceaudit.model.intervals import Intervals
from traceaudit.model.schema import I64, HostCategory
from traceaudit.model.timeline import NodeType, Timeline

__all__ = ["Handovers", "handovers_of"]

PAUSE_NS = 20_000
"""Shorter pauses lie between two rows of one piece of work; waking a thread takes about as long."""

WORKED_FRAC = 0.5
"""Share of a pause that others must have worked, as far as they were not blocked."""

SOON_FRAC = 0.1
"""A pause that goes on for no more than this share of it after another's blocking call has waited for that call."""


@dataclass(frozen=True, slots=True)
class Handovers:
    """Pauses of threads that waited for another.

    Attributes
    ----------
    since_ns, until_ns
        From when to when the thread waited: to the end of the other thread's last call in the pause.
    source
        Node of that call. If the wait goes on in the next round, the call of this round that is like it.
    target
        Node of the thread's first call behind the pause; -1 if none comes before the end.
    thread
        The thread that waited.
    """

    since_ns: I64
    until_ns: I64
    source: I64
    target: I64
    thread: I64

    def waited_ns(self, size: int, first_call: I64, first_thread: I64) -> I64:
        """Return how long each of so many nodes' threads waited before it, since their call before.

        What a thread waited behind its last call counts for its first call: that of the next round.
        """
        target = self.resumed(first_call, first_thread)
        return np.bincount(target, self.until_ns - self.since_ns, minlength=size).astype(np.int64)

    def resumed(self, first_call: I64, first_thread: I64) -> I64:
        """Return the target of each wait, in the next round if need be."""
        return np.where(self.target >= 0, self.target, first_call[np.searchsorted(first_thread, self.thread)])


def handovers_of(timeline: Timeline, node: I64, host: tuple[int, int]) -> Handovers:
    """Find the waits of the threads that made the calls among some nodes, from one time of the host to another."""
    calls = np.sort(node[timeline.node_type[node] != NodeType.OP])
    thread = timeline.queue[calls]
    threads = np.unique(thread).tolist()
    rows = {one: _rows(timeline, one, host) for one in threads} if len(threads) > 1 else {}
    found = [_waits_of(timeline, calls, one, rows, host) for one in rows]
    columns = (np.concatenate(column) for column in zip(*found, strict=True)) if found else (np.empty(0, np.int64),) * 5
    return Handovers(*columns)


def _rows(timeline: Timeline, thread: int, host: tuple[int, int]) -> Intervals:
    """Return when a thread was inside calls and ops of the framework; annotations and frames may span its waits."""
    rows = timeline.view.trace.host
    named = (rows.category == HostCategory.API) | (rows.category == HostCategory.CPU_OP)
    mine = named & (rows.thread == thread) & (rows.end_ns > host[0]) & (rows.start_ns < host[1])
    united = intervals.union(rows.start_ns[mine], rows.end_ns[mine])
    between = intervals.gaps(united, *host)
    short = between.end - between.start < PAUSE_NS
    start = np.concatenate((united.start, between.start[short]))
    return intervals.clip(intervals.union(start, np.concatenate((united.end, between.end[short]))), *host)


def _waits_of(
    timeline: Timeline, calls: I64, thread: int, rows: dict[int, Intervals], host: tuple[int, int]
) -> tuple[I64, ...]:
    """Return the columns of `Handovers` for one thread."""
    pauses = intervals.gaps(rows[thread], *host)
    own = timeline.queue[calls] == thread
    others, mine = calls[~own], calls[own]
    blocked = others[timeline.node_type[others] == NodeType.SYNC]
    waiting = intervals.union(timeline.start_ns[blocked], timeline.end_ns[blocked])
    active = [one for other, one in rows.items() if other != thread]
    united = intervals.union(np.concatenate([one.start for one in active]), np.concatenate([one.end for one in active]))
    worked = intervals.covered(intervals.subtract(united, waiting), *pauses)
    free = pauses.end - pauses.start - intervals.covered(waiting, *pauses)
    by_end = others[np.argsort(timeline.end_ns[others], kind="stable")]
    last = by_end[np.maximum(np.searchsorted(timeline.end_ns[by_end], pauses.end, "right") - 1, 0)]
    until, was_blocked = timeline.end_ns[last].copy(), timeline.node_type[last] == NodeType.SYNC
    inside = (until > pauses.start) & (until <= pauses.end) & (was_blocked | (timeline.start_ns[last] >= pauses.start))
    released = was_blocked & (pauses.end - until <= SOON_FRAC * (pauses.end - pauses.start))
    if len(last) > 1 and pauses.start[0] == host[0] and pauses.end[-1] == host[1]:  # one pause, from round to round
        worked[[0, -1]], free[[0, -1]] = worked[0] + worked[-1], free[0] + free[-1]
        if inside[0]:
            inside[-1], until[-1], last[-1] = True, host[1], last[0]
    good = inside & ((worked > WORKED_FRAC * free) | released)
    behind = np.searchsorted(timeline.start_ns[mine], pauses.end, "left")
    target = np.where(behind < len(mine), mine[np.minimum(behind, len(mine) - 1)], -1)
    columns = (pauses.start, until, last, target, np.full(len(last), thread))
    return tuple(column[good] for column in columns)
