"""Findings about the file itself: where it ends, what was repaired, what was dropped."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traceaudit.ingest.chrome import Document
from traceaudit.ingest.collect import Collector
from traceaudit.ingest.container import STDIN, Source
from traceaudit.ingest.foreign import place_in
from traceaudit.ingest.limits import Limits
from traceaudit.ingest.normalize import Tables
from traceaudit.ingest.severity import by_share, examples_of, in_ms
from traceaudit.ingest.topkeys import TopKeys
from traceaudit.model.findings import Finding, Severity

__all__ = ["find_in_file"]

_SEARCHED_BYTES = 1 << 24
_FIX_WRITER = "update PyTorch: newer versions escape names"


def find_in_file(
    source: Source, document: Document, keys: TopKeys, collected: Collector, tables: Tables
) -> tuple[Finding, ...]:
    """Report what the file made necessary."""
    found = (
        *_truncated(source, document, keys, tables),
        *_second_document(document, keys),
        *_repaired(source, document, keys),
        *_dropped(source, document, collected),
        *_strangers(collected, tables),
    )
    if len(tables.ranks) > 1:
        return found
    return tuple(replace(finding, rank=tables.ranks[0]) for finding in found)


def _truncated(source: Source, document: Document, keys: TopKeys, tables: Tables) -> Iterator[Finding]:
    if document.cut_short or (source.damage and not document.rows_end):
        known = _known_until(tables)
        why = f" ({source.damage})" if source.damage else ""
        yield Finding(
            "file_truncated",
            # Writers put device rows after host rows, so what is missing may be any part of the device's work.
            Severity.ERROR,
            f"the file ends inside its events, after {source.bytes_read} bytes{why}; whole events were read{known}",
            hint="the writer was stopped or the copy is incomplete; copy or record it again",
            examples=(f"byte {document.leftover}",) if document.leftover is not None else (),
        )
    elif keys.truncated or source.damage:
        yield Finding(
            "file_truncated",
            Severity.WARNING,
            f"the file ends after its events{f' ({source.damage})' if source.damage else ''}; all events were read, "
            "keys after them (devices, ranks, base time) may be missing",
            hint="copy it again",
        )


def _known_until(tables: Tables) -> str:
    parts = [
        f"{what} up to {in_ms(int(np.max(table.end_ns)))}"
        for what, table in (("device ops", tables.ops), ("host rows", tables.host))
        if len(table)
    ]
    return f": {', '.join(parts)}" if parts else ", none of them a device op or a host row"


def _second_document(document: Document, keys: TopKeys) -> Iterator[Finding]:
    if not keys.extra:
        return
    place = document.tail_offset + len(document.tail.rstrip()) - len(keys.extra)
    if keys.extra[:1] in (b"{", b"["):
        yield Finding(
            "second_document",
            Severity.WARNING,
            f"a second JSON document follows at byte {place}; only the first was read",
            hint="two processes wrote one file; give each rank a file of its own",
            count=1,
        )
    else:
        yield Finding(
            "file_repaired",
            Severity.INFO,
            f"{len(keys.extra)} bytes after the end of the JSON document, at byte {place}, were ignored",
            count=1,
        )


def _repaired(source: Source, document: Document, keys: TopKeys) -> Iterator[Finding]:
    log = document.log
    repairs = log.repairs.copy()
    repairs.update(keys.repairs)
    if repairs:
        what = ", ".join(f"{name} ({count})" for name, count in repairs.most_common())
        rows = f" in {log.rows_repaired} event{'s' if log.rows_repaired != 1 else ''}" if log.rows_repaired else ""
        around = " and in the keys around the events" if keys.repairs else ""
        yield Finding(
            "file_repaired",
            Severity.INFO,
            f"the file is not valid JSON and was repaired: {what}{rows}{around}; times are as written",
            hint=_FIX_WRITER,
            count=sum(repairs.values()),
            examples=examples_of(_places(source, log.repair_places)),
        )
    if keys.unreadable is not None and not keys.truncated:
        yield Finding(
            "file_repaired",
            Severity.WARNING,
            "the keys around the events are not valid JSON; those that could be found one by one were read",
            hint="devices, ranks or the base time may be missing",
            count=1,
        )


def _dropped(source: Source, document: Document, collected: Collector) -> Iterator[Finding]:
    count = document.log.rows_dropped + collected.dropped
    if count:
        yield Finding(
            "rows_dropped",
            by_share(count, collected.events + document.log.rows_dropped, at_least=Severity.WARNING),
            f"{count} of {collected.events + document.log.rows_dropped} events could not be read; left out",
            hint=_FIX_WRITER,
            count=count,
            examples=examples_of(_places(source, document.log.drop_places)),
        )


def _strangers(collected: Collector, tables: Tables) -> Iterator[Finding]:
    categories = +collected.strangers
    count = categories.total()
    if count:
        yield Finding(
            "rows_dropped",
            by_share(count, tables.ops.start_ns.size + count, at_least=Severity.WARNING),
            f"{count} rows look like device ops, with stream and correlation, but are of an unknown category; left out",
            hint="the writer may be newer than this version, or its text damaged",
            count=count,
            examples=examples_of(iter(f"{name!r}: {rows}" for name, rows in categories.most_common())),
        )


def _places(source: Source, offsets: list[int]) -> Iterator[str]:
    """Give byte offsets as line and column, where the file can be read again at little cost."""
    if source.path == STDIN or not offsets or offsets[-1] > _SEARCHED_BYTES:
        yield from (f"byte {offset}" for offset in offsets)
        return
    again = Source(source.path, Limits())
    try:
        text = again.read(offsets[-1] + 1)
    finally:
        again.close()
    yield from (place_in(text, offset) for offset in offsets)
