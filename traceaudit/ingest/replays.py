"""Replays of one graph hold the same ops; one that holds fewer lost rows."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceaudit.ingest.captures import in_capture
from traceaudit.ingest.severity import by_share, examples_of, in_ms
from traceaudit.ingest.siblings import markers_tell_batch, places_in_steps, repeating_order
from traceaudit.model.apis import is_graph_launch
from traceaudit.model.findings import Finding
from traceaudit.model.schema import DeviceOps, HostCategory, HostRows

__all__ = ["find_uneven_replays"]

LARGER = 1.5
"""A single replay with this many times the ops of what most replays hold shows what those lost."""

PIECES = 8
"""From this many launches on, the last of a row of equal ones may be another graph: engines that cut a model into one
graph a layer end with a smaller one."""

_Content = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Replay:
    row: int
    start_ns: int
    graph: int
    ops: _Content
    length_ns: tuple[int, ...]

    @property
    def op_time_ns(self) -> int:
        return sum(self.length_ns)


def find_uneven_replays(ops: DeviceOps, host: HostRows, names: Sequence[str]) -> list[Finding]:
    """Report graph launches with no rows, or with other rows than the other launches of the same graph.

    Launches of one graph are those with its id. Where the writer gives none, they are those at the same place in step
    markers of the same text, else at the same place of a repeating order; among these only a launch whose ops are some
    of another's lost any, since two graphs differ in both directions. Launches inside a stream capture replay nothing.
    """
    replays = _replays(ops, host, names)
    if not replays:
        return []
    uneven: dict[int, int] = {}
    for group in _by_graph(replays):
        uneven |= _unlike(group, _union(group), group)
    unnamed = [replay for replay in replays if replay.graph < 0]
    for group, complete in _by_place(unnamed, host, names):
        lacking = _unlike(group, complete, unnamed, fewer_only=True)
        uneven |= {row: lost for row, lost in lacking.items() if row not in uneven}
    mean = sum(replay.op_time_ns for replay in replays) / max(1, sum(bool(replay.ops) for replay in replays))
    for replay in replays:
        if not replay.ops:
            uneven.setdefault(replay.row, round(mean))
    return [_finding(replays, uneven, ops, host, names)] if uneven else []


def _finding(
    replays: list[_Replay], uneven: dict[int, int], ops: DeviceOps, host: HostRows, names: Sequence[str]
) -> Finding:
    empty = sum(not replay.ops for replay in replays)
    impact = sum(uneven.values())
    total = int((ops.end_ns - ops.start_ns).sum())
    what = f"{empty} have no rows" if empty else ""
    if len(uneven) > empty:
        what += (" and " if what else "") + f"{len(uneven) - empty} other rows than their siblings"
    by_row = {replay.row: replay for replay in replays}
    worst = sorted(uneven, key=lambda row: (-uneven[row], row))
    return Finding(
        "graph_replay_uneven",
        by_share(impact, total + impact),
        f"{len(uneven)} of {len(replays)} graph launches are incomplete: {what}; {in_ms(impact)} of device time "
        "is missing if they ran like the others",
        hint="rows of replays were lost; steps without them look idle, so trust complete steps only",
        count=len(uneven),
        impact_ns=impact,
        examples=examples_of(
            f"{names[host.name[row]]} at {in_ms(by_row[row].start_ns)} (correlation {host.correlation[row]}): "
            f"{len(by_row[row].ops)} ops"
            for row in worst
        ),
    )


def _replays(ops: DeviceOps, host: HostRows, names: Sequence[str]) -> list[_Replay]:
    rows = _graph_launches(host, names)
    if not len(rows):
        return []
    order = np.argsort(ops.launch, kind="stable")
    launches = ops.launch[order]
    begin, end = np.searchsorted(launches, rows, side="left"), np.searchsorted(launches, rows, side="right")
    length = ops.end_ns - ops.start_ns
    captured = in_capture(rows, host, names)
    replays: list[_Replay] = []
    for row, first, last, inside in zip(rows.tolist(), begin.tolist(), end.tolist(), captured.tolist(), strict=True):
        if inside and first == last:
            continue
        mine = order[first:last]
        mine = mine[np.argsort(ops.name[mine], kind="stable")]
        graphs = Counter(ops.graph[mine].tolist())
        replays.append(
            _Replay(
                row=row,
                start_ns=int(host.start_ns[row]),
                graph=graphs.most_common(1)[0][0] if graphs else -1,
                ops=tuple(ops.name[mine].tolist()),
                length_ns=tuple(length[mine].tolist()),
            )
        )
    return replays


def _graph_launches(host: HostRows, names: Sequence[str]) -> npt.NDArray[np.int64]:
    apis = np.flatnonzero(host.category == HostCategory.API)
    codes = [code for code in np.unique(host.name[apis]).tolist() if is_graph_launch(names[code])]
    rows: npt.NDArray[np.int64] = apis[np.isin(host.name[apis], codes)]
    return rows


def _by_graph(replays: list[_Replay]) -> Iterator[list[_Replay]]:
    groups: defaultdict[int, list[_Replay]] = defaultdict(list)
    for replay in replays:
        if replay.graph >= 0:
            groups[replay.graph].append(replay)
    yield from groups.values()


def _by_place(replays: list[_Replay], host: HostRows, names: Sequence[str]) -> Iterator[tuple[list[_Replay], _Content]]:
    """Yield replays without an id that are siblings by their place, and the content that they should have."""
    if not any(replay.ops for replay in replays):
        return
    rows = np.array([replay.row for replay in replays], np.int64)
    places = places_in_steps(rows, host, names)
    if places is not None:
        alike = markers_tell_batch(host, names)
        for place in np.unique(places[places >= 0]).tolist():
            group = [replays[index] for index in np.flatnonzero(places == place).tolist()]
            yield group, _union(group) if alike else _complete(group)
        return
    contents = [replay.ops for replay in replays]
    period = repeating_order(contents)
    if not period:
        return
    usual = _complete(replays)
    for first in range(period):
        group = replays[first::period]
        complete = _complete(group)
        if period == 1 and len(replays) >= PIECES and [r for r in group if _is_part(r.ops, complete)] == replays[-1:]:
            continue
        yield group, complete
        if len({replay.ops for replay in group}) > 1:
            yield group, usual


def _union(group: list[_Replay]) -> _Content:
    """Return what the replays of one graph hold together: each op as often as any of them does."""
    union: Counter[int] = Counter()
    for content in {replay.ops for replay in group}:
        union |= Counter(content)
    return tuple(sorted(union.elements()))


def _complete(group: list[_Replay]) -> _Content:
    """Return the content of a replay that lost nothing: the commonest, or a larger one that holds it.

    The larger one counts if it occurs twice, is much larger, or if no more than half of the replays agree on anything.
    """
    counts = Counter(replay.ops for replay in group if replay.ops)
    if not counts:
        return ()
    usual = max(counts, key=lambda content: (counts[content], len(content)))
    largest = max(counts, key=lambda content: (len(content), counts[content]))
    agreed = 2 * counts[usual] > counts.total()
    evident = counts[largest] > 1 or len(largest) >= LARGER * len(usual) or not agreed
    return largest if evident and _is_part(usual, largest) else usual


def _unlike(
    group: list[_Replay], complete: _Content, pool: list[_Replay], *, fewer_only: bool = False
) -> dict[int, int]:
    """Return the launches that have rows, but others than a complete one, and what they lack at the pool's mean."""
    suspects = [
        replay
        for replay in group
        if replay.ops and replay.ops != complete and (not fewer_only or _is_part(replay.ops, complete))
    ]
    if not suspects:
        return {}
    time: Counter[int] = Counter()
    count: Counter[int] = Counter()
    for replay in pool:
        count.update(replay.ops)
        for name, length in zip(replay.ops, replay.length_ns, strict=True):
            time[name] += length
    lacking = {replay.row: Counter(complete) - Counter(replay.ops) for replay in suspects}
    return {
        row: round(sum(times * time[name] / count[name] for name, times in lost.items()))
        for row, lost in lacking.items()
    }


def _is_part(part: _Content, whole: _Content) -> bool:
    return len(part) < len(whole) and Counter(part) <= Counter(whole)
