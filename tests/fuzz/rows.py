"""Damage to the rows of a healthy trace, each kind with the findings by which it must be noticed.

What nothing in a file can show has no codes: the file would be the same if that had been the run. That holds for an op
lost together with its own launch, for a time that is off a little, for a correlation exchanged with another's.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from random import Random

from builders import HostRow, Op, TraceBuilder

__all__ = ["DAMAGES", "Damage", "Inapplicable"]

MS = 1_000_000
DAY = 86_400 * 1000 * MS


class Inapplicable(Exception):  # noqa: N818  (no error; the damage needs something that this trace lacks)
    """The trace has nothing that could be damaged in this way."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A kind of damage.

    Attributes
    ----------
    apply
        Changes a trace in place.
    codes
        Findings that cover it; none if nothing can show it.
    always
        A finding is due even where the ledger comes out the same.
    reason
        Why it cannot be noticed, for those that cannot.
    """

    apply: Callable[[TraceBuilder, Random], None]
    codes: frozenset[str] = frozenset()
    always: bool = False
    reason: str | None = None


def _launches(trace: TraceBuilder) -> dict[int, list[Op]]:
    """Return the ops of each correlation."""
    ops: dict[int, list[Op]] = {}
    for op in trace.ops:
        ops.setdefault(op.correlation, []).append(op)
    return ops


def _replays(trace: TraceBuilder) -> list[list[Op]]:
    """Return the ops of each graph launch."""
    graphs = {row.correlation for row in trace.host if row.name == "cudaGraphLaunch"}
    found = [ops for correlation, ops in _launches(trace).items() if correlation in graphs]
    if len(found) < 3:
        raise Inapplicable
    return found


def _single_ops(trace: TraceBuilder) -> list[Op]:
    """Return the ops that are their launch's only one."""
    found = [ops[0] for ops in _launches(trace).values() if len(ops) == 1]
    if not found:
        raise Inapplicable
    return found


def _remove(trace: TraceBuilder, ops: list[Op]) -> None:
    gone = set(map(id, ops))
    trace.ops = [op for op in trace.ops if id(op) not in gone]


def _some(rng: Random, items: list, most: int) -> list:
    if not items or not most:
        raise Inapplicable
    return rng.sample(items, rng.randint(1, min(most, len(items))))


def _one(rng: Random, ops: list[Op]) -> Op:
    if not ops:
        raise Inapplicable
    return rng.choice(ops)


def _api(trace: TraceBuilder) -> list[HostRow]:
    used = {op.correlation for op in trace.ops}
    return [row for row in trace.host if row.correlation in used]


def _lose_ops(trace: TraceBuilder, rng: Random) -> None:
    _remove(trace, _some(rng, _single_ops(trace), 6))


def _lose_all_ops(trace: TraceBuilder, _: Random) -> None:
    trace.ops = []


def _lose_replay_rows(trace: TraceBuilder, rng: Random) -> None:
    """Lose some rows of fewer than half of the replays."""
    replays = _replays(trace)
    for replay in rng.sample(replays, rng.randint(1, (len(replays) - 1) // 2)):
        _remove(trace, _some(rng, replay, len(replay) - 1))


def _lose_replays(trace: TraceBuilder, rng: Random) -> None:
    replays = _replays(trace)
    for replay in rng.sample(replays, rng.randint(1, len(replays) - 1)):
        _remove(trace, replay)


def _leave_strays(trace: TraceBuilder, rng: Random) -> None:
    """Leave one op of most replays, another each time."""
    replays = _replays(trace)
    whole = rng.randrange(len(replays))
    for number, replay in enumerate(replays):
        if number != whole:
            kept = rng.choice(replay)
            _remove(trace, [op for op in replay if op is not kept])


def _lose_launches(trace: TraceBuilder, rng: Random) -> None:
    gone = set(map(id, _some(rng, _api(trace), 5)))
    trace.host = [row for row in trace.host if id(row) not in gone]


def _lose_all_host_rows(trace: TraceBuilder, _: Random) -> None:
    trace.host = [row for row in trace.host if row.category == "annotation"]


def _lose_pairs(trace: TraceBuilder, rng: Random) -> None:
    ops = _some(rng, _single_ops(trace), 3)
    _remove(trace, ops)
    gone = {op.correlation for op in ops}
    trace.host = [row for row in trace.host if row.correlation not in gone]


def _unlink_ops(trace: TraceBuilder, rng: Random) -> None:
    for op in _some(rng, trace.ops, 5):
        op.correlation = rng.choice([0, -1, 900_000 + rng.randrange(1000)])


def _unlink_launches(trace: TraceBuilder, rng: Random) -> None:
    for row in _some(rng, _api(trace), 5):
        row.correlation = 0


def _swap_correlations(trace: TraceBuilder, rng: Random) -> None:
    if len(trace.ops) < 2:
        raise Inapplicable
    first, second = rng.sample(trace.ops, 2)
    first.correlation, second.correlation = second.correlation, first.correlation


def _duplicate(trace: TraceBuilder, rng: Random) -> None:
    trace.ops += [deepcopy(op) for op in _some(rng, trace.ops, 5)]


def _duplicate_calls(trace: TraceBuilder, rng: Random) -> None:
    trace.host += [deepcopy(row) for row in _some(rng, trace.host, 5)]


def _start_early(trace: TraceBuilder, rng: Random) -> None:
    """Move ops to before their launch."""
    starts = {row.correlation: row.start_ns for row in trace.host if row.correlation}
    for op in _some(rng, trace.ops, 2):
        if op.correlation not in starts:
            raise Inapplicable
        op.start_ns = starts[op.correlation] - rng.randint(2000, 50_000)


def _start_late(trace: TraceBuilder, rng: Random) -> None:
    """Move the last op milliseconds away from its launch."""
    if not trace.ops:
        raise Inapplicable
    last = max(trace.ops, key=lambda op: op.start_ns)
    last.start_ns += rng.randint(10, 50) * MS


def _shift(trace: TraceBuilder, rng: Random) -> None:
    for op in _some(rng, trace.ops, 3):
        op.start_ns += rng.randint(1, 300)


def _shorten(trace: TraceBuilder, rng: Random) -> None:
    for op in _some(rng, trace.ops, 3):
        op.dur_ns = max(1, op.dur_ns - rng.randint(1, 3000))


def _overrun(trace: TraceBuilder, rng: Random) -> None:
    """Let an op that another follows on its queue last far beyond the end of the capture."""
    last = {op.stream: op for op in sorted(trace.ops, key=lambda op: op.start_ns)}
    followed = [op for op in trace.ops if last[op.stream] is not op and last[op.stream].start_ns > op.start_ns]
    if not followed:
        raise Inapplicable
    rng.choice(followed).dur_ns += rng.randint(10, 10_000) * MS


def _negative(trace: TraceBuilder, rng: Random) -> None:
    for op in _some(rng, trace.ops, 3):
        op.dur_ns = -rng.randint(1, 10**9)


def _absurd(trace: TraceBuilder, rng: Random) -> None:
    for op in _some(rng, trace.ops, 2):
        op.dur_ns = rng.randint(2, 100) * DAY


def _zero(trace: TraceBuilder, rng: Random) -> None:
    for op in _some(rng, trace.ops, 3):
        op.dur_ns = 0


def _far_away(trace: TraceBuilder, rng: Random) -> None:
    if len(trace.ops) < 5:
        raise Inapplicable  # with two of three rows gone, which are the far ones?
    for op in _some(rng, trace.ops, 2):
        op.start_ns += rng.choice([-1, 1]) * rng.randint(3, 1000) * DAY


def _negative_calls(trace: TraceBuilder, rng: Random) -> None:
    for row in _some(rng, _api(trace), 3):
        row.dur_ns = -rng.randint(1, 10**6)


def _lose_markers(trace: TraceBuilder, _: Random) -> None:
    trace.host = [row for row in trace.host if row.category != "annotation"]


def _lose_a_marker(trace: TraceBuilder, rng: Random) -> None:
    """Lose a numbered marker between others."""
    markers = [row for row in trace.host if row.name.startswith("ProfilerStep")]
    if len(markers) < 3:
        raise Inapplicable
    gone = rng.choice(markers[1:-1])
    trace.host = [row for row in trace.host if row is not gone]


def _lose_an_unnumbered_marker(trace: TraceBuilder, rng: Random) -> None:
    markers = [row for row in trace.host if row.name.startswith("step[")]
    if not markers:
        raise Inapplicable
    gone = rng.choice(markers)
    trace.host = [row for row in trace.host if row is not gone]


def _cut_device_rows(trace: TraceBuilder, rng: Random) -> None:
    """Lose all device rows of a stretch of time, as a full buffer does."""
    begin, end = sorted(_one(rng, trace.ops).start_ns for _ in range(2))
    kept = [op for op in trace.ops if not begin <= op.start_ns <= end]
    if not kept:
        raise Inapplicable
    trace.ops = kept


def _cut_tail(trace: TraceBuilder, rng: Random) -> None:
    """Lose the device rows from some time on."""
    end = _one(rng, trace.ops).start_ns
    kept = [op for op in trace.ops if op.start_ns < end]
    if not kept:
        raise Inapplicable
    trace.ops = kept


def _cut_head(trace: TraceBuilder, rng: Random) -> None:
    """Lose the device rows up to some time, as a profiler that starts late does."""
    begin = _one(rng, trace.ops).start_ns
    kept = [op for op in trace.ops if op.start_ns > begin]
    if not kept:
        raise Inapplicable
    trace.ops = kept


def _of(apply: Callable[[TraceBuilder, Random], None], *codes: str, always: bool = False) -> Damage:
    return Damage(apply, frozenset(codes), always)


def _unseen(apply: Callable[[TraceBuilder, Random], None], reason: str) -> Damage:
    return Damage(apply, reason=reason)


_LOST = ("launch_without_op", "graph_replay_uneven", "capture_edge_loss")
_REJECTED = ("negative_duration", "absurd_duration", "rows_dropped")

DAMAGES: dict[str, Damage] = {
    "ops lost, launches kept": _of(_lose_ops, *_LOST, "device_without_ops"),
    "all ops lost": _of(_lose_all_ops, "device_without_ops"),
    "rows of some replays lost": _of(_lose_replay_rows, "graph_replay_uneven"),
    "all rows of some replays lost": _of(_lose_replays, "graph_replay_uneven"),
    "most replays left with one stray row": _of(_leave_strays, "graph_replay_uneven"),
    "launches lost, ops kept": _of(_lose_launches, "op_without_launch", always=True),
    "all calls lost": _of(_lose_all_host_rows, "op_without_launch", always=True),
    "ops without correlation, or with one of nobody": _of(_unlink_ops, "op_without_launch", always=True),
    "launches without correlation": _of(_unlink_launches, "op_without_launch", always=True),
    "device rows twice": _of(_duplicate, "duplicate_rows", always=True),
    "host rows twice": _of(_duplicate_calls),
    "ops before their launch": _of(_start_early, "clock_skew", always=True),
    "an op long after its launch": _of(_start_late, "idle_while_pending", "capture_edge_loss"),
    "an op that never ends": _of(_overrun, "impossible_overlap", always=True),
    "negative durations": _of(_negative, "negative_duration", always=True),
    "absurd durations": _of(_absurd, "absurd_duration", always=True),
    "no durations": _of(_zero, "zero_duration", always=True),
    "ops days away": _of(_far_away, "rows_dropped", always=True),
    "calls that end before they start": _of(_negative_calls, *_REJECTED, "op_without_launch", always=True),
    "a numbered marker lost": _of(_lose_a_marker, "steps_uneven"),
    "device rows of a stretch lost": _of(_cut_device_rows, *_LOST),
    "device rows lost at the end": _of(_cut_tail, *_LOST),
    "device rows lost at the start": _of(_cut_head, *_LOST),
    "ops lost with their launches": _unseen(_lose_pairs, "the file of a run that never made those calls is the same"),
    "correlations exchanged": _unseen(_swap_correlations, "each op has a launch and each launch its number of ops"),
    "small shifts": _unseen(_shift, "a time has no other to be checked against"),
    "shorter durations": _unseen(_shorten, "a time has no other to be checked against"),
    "all markers lost": _unseen(_lose_markers, "the source of the steps is another, and named"),
    "an unnumbered marker lost": _unseen(_lose_an_unnumbered_marker, "markers without numbers cannot be counted"),
}
