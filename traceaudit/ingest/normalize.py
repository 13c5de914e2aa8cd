"""From collected columns to the tables: rows with bad times left out, time 0 set, sorted, ranked, linked."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from traceaudit.ingest.arguments import int64
from traceaudit.ingest.clean import Rejected, center_of, keep_rows
from traceaudit.ingest.collect import Collector
from traceaudit.ingest.columns import Codes, Pieces
from traceaudit.ingest.links import find_launches, roles_of_names
from traceaudit.ingest.ranks import process_ranks, untagged
from traceaudit.model.kinds import RULES, classify
from traceaudit.model.schema import (
    I32,
    I64,
    Collectives,
    DeviceOps,
    HostCategory,
    HostRows,
    OpType,
    Overheads,
    Syncs,
    Threads,
)

__all__ = ["Tables", "build_tables"]

_Columns = dict[str, npt.NDArray[Any]]

_AXES = ("x", "y", "z")
_STEP_MARKER = re.compile(r"ProfilerStep#?\d*$")
_COMPUTED = frozenset({"start_ns", "end_ns", "clipped_ns", "kind", "kind_rule", "rank", "launch"})


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables of a trace, and what was left out of them.

    Attributes
    ----------
    zero_ns
        Time 0 of the tables on the file's own clock.
    device_rejected, host_rejected
        Rows left out for their times.
    """

    names: tuple[str, ...]
    details: tuple[bytes, ...]
    ops: DeviceOps
    host: HostRows
    threads: Threads
    syncs: Syncs
    overheads: Overheads
    collectives: Collectives
    ranks: tuple[int, ...]
    zero_ns: int
    device_rejected: Rejected
    host_rejected: Rejected


def build_tables(collected: Collector, default_rank: int) -> Tables:
    """Build the tables; `collected` gives up its columns for them.

    Parameters
    ----------
    default_rank
        Rank of processes whose id names none.
    """
    device, host = _take(collected.device, _DEVICE), _take(collected.host, _HOST)
    sync, overhead = _take(collected.sync, _SYNC), _take(collected.overhead, _OVERHEAD)
    parts = (device, host, sync, overhead)
    center = center_of(*(columns["start"] for columns in parts))
    rejected = [_reject(columns, center, is_device=columns is device) for columns in parts]
    zero = min((int(columns["start"].min()) for columns in parts if len(columns["start"])), default=0)
    for columns in parts:
        columns["start"] -= zero
        columns["end"] -= zero
    ranks = process_ranks(list(collected.processes), default_rank)
    threads, rows_of_threads = _threads(collected, default_rank)
    names = tuple(collected.names)
    host_table = _host_table(host, rows_of_threads, names)
    ops = _ops_table(device, ranks, names, host_table, threads)
    used = np.unique(np.concatenate([ops.rank, threads.rank])).tolist()
    return Tables(
        names=names,
        details=tuple(collected.details.texts)[1:],
        ops=ops,
        host=host_table,
        threads=threads,
        syncs=_plain_table(Syncs, sync, ranks),
        overheads=_plain_table(Overheads, overhead, ranks),
        collectives=_collectives(collected.collectives),
        ranks=tuple(used) or (default_rank,),
        zero_ns=zero,
        device_rejected=rejected[0],
        host_rejected=rejected[1],
    )


_DEVICE: Mapping[str, type[np.generic]] = {
    "start": np.int64,
    "end": np.int64,
    "name": np.int32,
    "op_type": np.int8,
    "process": np.int32,
    "device": np.int32,
    "stream": np.int64,
    "correlation": np.int64,
    "graph": np.int64,
    "graph_node": np.int64,
    **{f"{what}_{axis}": np.int32 for what in ("grid", "block") for axis in _AXES},
    "registers": np.int32,
    "shared_mem": np.int32,
    "copied": np.int64,
    "collective": np.int32,
}
_IN_WORK_ITEMS = frozenset({"hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"})
"""Launch calls whose grid is the number of threads along each axis."""

_HOST: Mapping[str, type[np.generic]] = {
    "start": np.int64,
    "end": np.int64,
    "name": np.int32,
    "category": np.int8,
    "thread": np.int32,
    "correlation": np.int64,
    "detail": np.int32,
}
_SYNC: Mapping[str, type[np.generic]] = {
    "start": np.int64,
    "end": np.int64,
    "name": np.int32,
    "process": np.int32,
    "device": np.int32,
    "stream": np.int64,
    "correlation": np.int64,
    "wait_on_stream": np.int64,
    "wait_on_correlation": np.int64,
}
_OVERHEAD: Mapping[str, type[np.generic]] = {
    "start": np.int64,
    "end": np.int64,
    "name": np.int32,
    "process": np.int32,
}


def _take(pieces: Pieces, columns: Mapping[str, type[np.generic]]) -> _Columns:
    return {name: pieces.take(name, dtype) for name, dtype in columns.items()}


def _reject(columns: _Columns, center: int | None, *, is_device: bool) -> Rejected:
    kept, rejected = keep_rows(columns["start"], columns["end"], center, is_device=is_device)
    if kept is not None:
        for name in columns:
            columns[name] = columns[name][kept]
    return rejected


def _threads(collected: Collector, default_rank: int) -> tuple[Threads, I32]:
    """Return the threads, and the row of each (process, thread) pair as written; 12 and "12" are one thread."""
    pairs = list(collected.threads)
    ranks = process_ranks([process for process, _ in pairs], default_rank).tolist()
    rows = Codes()
    row_of_pair = [
        rows[rank, untagged(process), "" if thread is None else str(thread)]
        for rank, (process, thread) in zip(ranks, pairs, strict=True)
    ]
    names = collected.names
    table = Threads.of(
        rank=[rank for rank, _, _ in rows],
        pid=[names[process] for _, process, _ in rows],
        tid=[names[thread] for _, _, thread in rows],
    )
    return table, np.array(row_of_pair, dtype=np.int32)


def _host_table(columns: _Columns, row_of_pair: I32, names: Sequence[str]) -> HostRows:
    # 1.8 and 1.9 write step markers among the ops.
    markers = [code for code, name in enumerate(names) if _STEP_MARKER.match(name)]
    if markers:
        columns["category"][np.isin(columns["name"], markers)] = HostCategory.ANNOTATION
    order = _order_of_nested(columns["start"], columns["end"], columns["category"])
    sorted_columns = {name: columns.pop(name)[order] for name in tuple(columns)}
    return HostRows(
        start_ns=sorted_columns["start"],
        end_ns=sorted_columns["end"],
        name=sorted_columns["name"],
        category=sorted_columns["category"],
        thread=row_of_pair[sorted_columns["thread"]],
        correlation=sorted_columns["correlation"],
        detail=sorted_columns["detail"],
    )


def _order_of_nested(start: I64, end: I64, category: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Return the order by start, then longest first, then outermost category first."""
    order = np.argsort(start, kind="stable")
    in_order = start[order]
    equal = in_order[1:] == in_order[:-1]
    if equal.any():
        # Sorting by all keys at once takes several times as long, and few rows start together.
        tied = np.zeros(len(start), dtype=bool)
        tied[1:] |= equal
        tied[:-1] |= equal
        rows = order[tied]
        order[tied] = rows[np.lexsort((-category[rows], -end[rows], start[rows]))]
    return order


def _ops_table(
    columns: _Columns, ranks: npt.NDArray[np.int32], names: Sequence[str], host: HostRows, threads: Threads
) -> DeviceOps:
    order = np.lexsort((columns["end"], columns["start"]))
    columns = {name: column[order] for name, column in columns.items()}
    rank = ranks[columns["process"]]
    kind, rule = _kinds(columns["name"], columns["op_type"], columns["collective"] >= 0, names)
    index = np.flatnonzero((host.category == HostCategory.API) | (host.correlation >= 0))
    launch = find_launches(
        op_correlation=columns["correlation"],
        op_rank=rank,
        host_index=index,
        host_correlation=host.correlation[index],
        host_rank=threads.rank[host.thread[index]],
        host_role=roles_of_names(names, host.name[index]),
    )
    _grids_in_blocks(columns, names, host, launch)
    return DeviceOps(
        start_ns=columns["start"],
        end_ns=columns["end"],
        clipped_ns=np.zeros(len(rank), dtype=np.int64),
        kind=kind,
        kind_rule=rule,
        rank=rank,
        launch=launch,
        **{item.name: columns[item.name] for item in fields(DeviceOps) if item.name not in _COMPUTED},
    )


def _grids_in_blocks(columns: _Columns, names: Sequence[str], host: HostRows, launch: I64) -> None:
    """Turn grids that a launch call gives in work items into blocks.

    HIP documents the sizes of these calls as ``globalWorkSize``: threads, where all others take blocks.
    """
    codes = [code for code, name in enumerate(names) if name in _IN_WORK_ITEMS]
    rows = np.flatnonzero((launch >= 0) & np.isin(host.name[np.maximum(launch, 0)], codes)) if codes else ()
    if not len(rows):
        return
    for axis in _AXES:
        items, threads = columns[f"grid_{axis}"], columns[f"block_{axis}"][rows]
        known = rows[(items[rows] > 0) & (threads > 0)]
        items[known] = -(-items[known] // columns[f"block_{axis}"][known])


def _kinds(
    name: I32, op_type: npt.NDArray[np.int8], has_collective: npt.NDArray[np.bool_], names: Sequence[str]
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int16]]:
    types = len(OpType)
    keys = (name.astype(np.int64) * types + op_type) * 2 + has_collective
    distinct, inverse = np.unique(keys, return_inverse=True)
    rules = np.array(
        [
            classify(names[key // 2 // types], OpType(key // 2 % types), has_collective=bool(key % 2))
            for key in distinct.tolist()
        ],
        dtype=np.int16,
    )
    kinds = np.array([rule.kind for rule in RULES], dtype=np.int8)
    return kinds[rules[inverse]], rules[inverse]


def _plain_table(table: type[Any], columns: _Columns, ranks: npt.NDArray[np.int32]) -> Any:  # noqa: ANN401
    order = np.lexsort((columns["end"], columns["start"]))
    named = {**columns, "start_ns": columns["start"], "end_ns": columns["end"], "rank": ranks[columns["process"]]}
    return table(**{item.name: named[item.name][order] for item in fields(table)})


def _collectives(codes: Codes) -> Collectives:
    rows = list(codes)
    limit = np.iinfo(np.int32)
    return Collectives.of(
        name=[row[0] for row in rows],
        group=[row[1] for row in rows],
        dtype=[row[2] for row in rows],
        in_elements=int64([row[3] for row in rows]),
        out_elements=int64([row[4] for row in rows]),
        group_size=np.clip(int64([row[5] for row in rows]), limit.min, limit.max),
    )
