"""One trace file, from its path to a `Trace`."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from traceaudit.errors import TraceFormatError
from traceaudit.ingest.chrome import BlockReader, Document
from traceaudit.ingest.collect import Collector
from traceaudit.ingest.container import Source
from traceaudit.ingest.devices import list_devices
from traceaudit.ingest.filefindings import find_in_file
from traceaudit.ingest.gather import gather
from traceaudit.ingest.limits import Limits
from traceaudit.ingest.locate import rank_in_name
from traceaudit.ingest.normalize import Tables, build_tables
from traceaudit.ingest.topkeys import TopKeys, parse_top_keys
from traceaudit.ingest.validate import Checked, check_tables
from traceaudit.ingest.writers import name_writer
from traceaudit.model.trace import Trace, TraceSource
from traceaudit.units import NS_PER_US

__all__ = ["read"]

Progress = Callable[[int, int | None], None]

_EPOCH_SIZED_NS = 10**17
"""1973. Times counted from a base or from the start of the process stay below, times since 1970 are above."""


def read(
    path: str,
    *,
    limits: Limits | None = None,
    progress: Progress | None = None,
    rank: int | None = None,
    details: bool = True,
) -> Trace:
    """Read one trace file.

    Parameters
    ----------
    path
        A file (JSON, plain or compressed with gzip, zstd or zip), or ``-`` for standard input.
    limits
        Bounds on what reading may cost.
    progress
        Called with the bytes of the file taken in so far and its size (None for standard input).
    rank
        Rank of the trace where the file itself names none; by default what the file's name tells, else 0.
    details
        Whether to keep what framework ops say of their inputs (`Trace.details`), a third of the time of reading.

    Raises
    ------
    TraceNotFoundError
        If there is no such file.
    TraceFormatError
        If the input is no trace of the PyTorch profiler, or beyond the limits.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rank3.json")
    >>> _ = path.write_text('[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5.25,"dur":2.000}]')
    >>> trace = read(str(path))
    >>> trace.ops.end_ns.tolist(), trace.ranks
    ([2000], (3,))
    """
    limits = limits or Limits()
    source = Source(path, limits)
    document = Document()
    collected = Collector(limits, path, details=details)

    def report() -> None:
        if progress is not None:
            progress(source.position, source.total)

    try:
        with _no_garbage_collection():
            gather(BlockReader(source, limits, document), source, collected, limits, report=report)
            collected.finish()
        keys = parse_top_keys(document.head, document.tail)
        default_rank = next(known for known in (keys.rank, rank, rank_in_name(path), 0) if known is not None)
        tables = build_tables(collected, default_rank)
        _refuse_foreign(tables, keys, collected, path)
        _check_devices(tables, limits, path)
        window_end = None if collected.window_end is None else collected.window_end - tables.zero_ns
        checked = check_tables(tables, window_end_ns=window_end, resolution_ns=1 if collected.decimals else NS_PER_US)
        return _trace(source, document, collected, keys, tables, checked)
    finally:
        source.close()


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    # Rows hold no cycles, and looking for some takes longer than decoding.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _check_devices(tables: Tables, limits: Limits, path: str) -> None:
    if not len(tables.ops):
        return
    pairs = len(np.unique(tables.ops.rank.astype(np.int64) << 32 | tables.ops.device))
    if pairs > limits.max_devices:
        raise TraceFormatError(
            f"device ops of {pairs} devices in one file",
            where=path,
            hint="raise Limits.max_devices if they are really that many",
        )


def _refuse_foreign(tables: Tables, keys: TopKeys, collected: Collector, path: str) -> None:
    if any(map(len, (tables.ops, tables.host, tables.syncs, tables.overheads))):
        return
    if collected.features & {"window end", "empty span"} or "schemaVersion" in keys.present:
        return
    if "XLA" in collected.features:
        what = "a trace of XLA (JAX, TensorBoard), not of the PyTorch profiler"
    elif collected.events:
        what = f"{collected.events} events, but none that the PyTorch profiler writes"
    else:
        what = "JSON without events"
    raise TraceFormatError(what, where=path, hint="record with torch.profiler and export_chrome_trace")


def _trace(
    source: Source, document: Document, collected: Collector, keys: TopKeys, tables: Tables, checked: Checked
) -> Trace:
    features = set(collected.features)
    if collected.decimals:
        features.add("decimals")
    if len(tables.ranks) > 1:
        features.add("merged ranks")
    origin = tables.zero_ns if tables.zero_ns >= _EPOCH_SIZED_NS else None
    if origin is None and keys.base_ns is not None:
        origin = keys.base_ns + tables.zero_ns
    return Trace(
        source=TraceSource(
            path=source.path,
            events=collected.events,
            bytes_read=source.bytes_read,
            writer=name_writer(keys, collected.categories, frozenset(features), is_array=document.is_array),
            time_resolution_ns=1 if collected.decimals else NS_PER_US,
            origin_ns=origin,
            categories=dict(sorted(collected.categories.items())),
            versions=keys.versions,
            capture_ns=_capture(collected, tables.zero_ns),
            captures_ns=_captures(collected, tables.zero_ns),
        ),
        names=tables.names,
        details=tables.details,
        ops=checked.ops,
        host=tables.host,
        threads=tables.threads,
        syncs=tables.syncs,
        overheads=tables.overheads,
        collectives=tables.collectives,
        devices=list_devices(keys, checked.ops, tables.ranks),
        ranks=tables.ranks,
        world_size=keys.world_size,
        wall=keys.wall,
        findings=(*find_in_file(source, document, keys, collected, tables), *checked.findings),
    )


def _capture(collected: Collector, zero_ns: int) -> tuple[int, int] | None:
    if not collected.spans:
        return None
    start = min(start for start, _ in collected.spans)
    end = max(end for _, end in collected.spans)
    if collected.window_end is not None:
        end = max(end, collected.window_end)
    return start - zero_ns, end - zero_ns


def _captures(collected: Collector, zero_ns: int) -> tuple[tuple[int, int], ...]:
    """Return the captures apart; those of several ranks at one time are one."""
    captures: list[tuple[int, int]] = []
    for start, end in sorted((start - zero_ns, end - zero_ns) for start, end in collected.spans):
        if captures and start <= captures[-1][1]:
            captures[-1] = captures[-1][0], max(captures[-1][1], end)
        else:
            captures.append((start, end))
    return tuple(captures)
