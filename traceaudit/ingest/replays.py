"""Replays of one graph hold the same ops; one that holds fewer lost rows."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceaudit.ingest.severity import by_share, examples_of, in_ms
from traceaudit.model.apis import is_graph_launch
from traceaudit.model.findings import Finding
from traceaudit.model.schema import DeviceOps, HostCategory, HostRows

__all__ = ["find_uneven_replays"]

_PERIOD_AGREEMENT = 0.8
"""Share of replays that must repeat the one a period earlier, for an order of graphs to count as one."""

_MAX_PERIOD = 512


@dataclass(frozen=True, slots=True)
class _Replay:
    row: int
    start_ns: int
    graph: int
    ops: tuple[int, ...]
    op_time_ns: int


def find_uneven_replays(ops: DeviceOps, host: HostRows, names: Sequence[str]) -> list[Finding]:
    """Report graph launches with no rows, or with other rows than most launches of the same graph.

    Launches of one graph are those with its id. Where the writer gives none, they are those at the same place of a
    repeating order of launches; where no order repeats, only launches without any row are reported.
    """
    replays = _replays(ops, host, names)
    if not replays:
        return []
    uneven: dict[int, int] = {}
    for group in _groups(replays):
        uneven |= _unlike_most(group)
    mean = sum(replay.op_time_ns for replay in replays) / max(1, sum(bool(replay.ops) for replay in replays))
    for replay in replays:
        if not replay.ops:
            uneven.setdefault(replay.row, round(mean))
    if not uneven:
        return []
    empty = sum(not replay.ops for replay in replays)
    impact = sum(uneven.values())
    total = int((ops.end_ns - ops.start_ns).sum())
    what = f"{empty} have no rows" if empty else ""
    if len(uneven) > empty:
        what += (" and " if what else "") + f"{len(uneven) - empty} other rows than their siblings"
    by_row = {replay.row: replay for replay in replays}
    worst = sorted(uneven, key=lambda row: (-uneven[row], row))
    return [
        Finding(
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
    ]


def _replays(ops: DeviceOps, host: HostRows, names: Sequence[str]) -> list[_Replay]:
    apis = np.flatnonzero(host.category == HostCategory.API)
    codes = [code for code in np.unique(host.name[apis]).tolist() if is_graph_launch(names[code])]
    rows = apis[np.isin(host.name[apis], codes)]
    if not len(rows):
        return []
    order = np.argsort(ops.launch, kind="stable")
    launches = ops.launch[order]
    begin, end = np.searchsorted(launches, rows, side="left"), np.searchsorted(launches, rows, side="right")
    length = ops.end_ns - ops.start_ns
    replays: list[_Replay] = []
    for row, first, last in zip(rows.tolist(), begin.tolist(), end.tolist(), strict=True):
        mine = order[first:last]
        graphs = Counter(ops.graph[mine].tolist())
        replays.append(
            _Replay(
                row=row,
                start_ns=int(host.start_ns[row]),
                graph=graphs.most_common(1)[0][0] if graphs else -1,
                ops=tuple(np.sort(ops.name[mine]).tolist()),
                op_time_ns=int(length[mine].sum()),
            )
        )
    return replays


def _groups(replays: list[_Replay]) -> list[list[_Replay]]:
    by_graph: defaultdict[int, list[_Replay]] = defaultdict(list)
    unnamed: list[_Replay] = []
    for replay in replays:
        if replay.graph >= 0:
            by_graph[replay.graph].append(replay)
        elif replay.ops:
            unnamed.append(replay)
    groups = list(by_graph.values())
    period = _period([replay.ops for replay in unnamed])
    if period:
        groups += [unnamed[place::period] for place in range(period)]
    return groups


def _period(contents: list[tuple[int, ...]]) -> int | None:
    """Return the smallest period after which replays mostly repeat, None if they do not."""
    for period in range(1, min(len(contents) // 2, _MAX_PERIOD) + 1):
        pairs = len(contents) - period
        same = sum(contents[place] == contents[place + period] for place in range(pairs))
        if same >= _PERIOD_AGREEMENT * pairs:
            return period
    return None


def _unlike_most(group: list[_Replay]) -> dict[int, int]:
    """Return the launches that differ from the commonest content, with the op time they lack."""
    counts = Counter(replay.ops for replay in group if replay.ops)
    if not counts:
        return {}
    # Of equally common contents the larger is the complete one.
    usual = max(counts, key=lambda content: (counts[content], len(content)))
    times = [replay.op_time_ns for replay in group if replay.ops == usual]
    mean = round(sum(times) / len(times))
    return {replay.row: max(0, mean - replay.op_time_ns) for replay in group if replay.ops != usual}
