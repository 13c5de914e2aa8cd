"""A Chrome trace as a stream of blocks of whole rows, and the object around the rows as text.

Works for the object form with the rows anywhere among the keys and for the array form, closed or not. A valid file is
decoded once; where a row is broken, `resync` takes over until the end of that block.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from traceaudit.errors import TraceFormatError
from traceaudit.ingest.container import Source
from traceaudit.ingest.decode import Block, Failure
from traceaudit.ingest.foreign import refuse, refuse_without_rows
from traceaudit.ingest.limits import Limits
from traceaudit.ingest.resync import RepairLog, resync
from traceaudit.ingest.rowcuts import Taken, take_rows
from traceaudit.ingest.topkeys import nests_deeper

__all__ = ["Document", "read_blocks"]

_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
_ROWS_KEY = re.compile(rb'"traceEvents"\s*:\s*')
_KEY_BYTES = 256  # more than the key with its colon; a read may cut it in two


@dataclass(slots=True)
class Document:
    """What surrounds the rows, filled while they are read.

    Attributes
    ----------
    is_array
        The file is a bare list of rows.
    head, tail
        Text before and after the list of rows.
    tail_offset
        Place of the tail in the file.
    rows_end
        The list of rows has an end. A bare list may lack its bracket.
    cut_short
        The file ends inside the rows.
    leftover
        Place of bytes at the end of the file that belong to no row, None if there are none.
    log
        Repairs and drops.
    """

    is_array: bool = False
    head: bytes = b""
    tail: bytes = b""
    tail_offset: int = 0
    rows_end: bool = False
    cut_short: bool = False
    leftover: int | None = None
    log: RepairLog = field(default_factory=RepairLog)


def read_blocks(source: Source, limits: Limits, document: Document) -> Iterator[Block]:
    """Yield the rows of `source` in blocks, and fill `document`.

    Raises
    ------
    TraceFormatError
        If the input is no Chrome trace, or beyond `limits`.
    """
    text = _to_rows(source, limits, document)
    place = source.bytes_read - len(text)
    want = limits.block_bytes
    at_end = False
    while not document.rows_end:
        chunk = source.read(want) if not at_end else b""
        at_end = len(chunk) < want
        text = text + chunk if text else chunk
        taken = _take(text, last=at_end, offset=place, document=document)
        if taken is None:
            if at_end:
                _end_of_file(text, place, document)
                break
            _check_row_size(text, place, source, limits)
            want = max(limits.block_bytes, len(text))
            continue
        want = limits.block_bytes
        yield taken.block
        document.rows_end = taken.ended
        place += taken.size
        text = text[taken.size :]
    if document.rows_end:
        _read_tail(text, place, source, limits, document, at_end=at_end)


def _to_rows(source: Source, limits: Limits, document: Document) -> bytes:
    """Read up to the first row; return the text from there on."""
    text = source.read(limits.block_bytes).removeprefix(_BOM)
    while not text.lstrip(_SPACE) and (chunk := source.read(limits.block_bytes)):
        text = chunk
    start = len(text) - len(text.lstrip(_SPACE))
    opening = text[start : start + 1]
    if opening == b"[":
        document.is_array = True
        return text[start + 1 :]
    if opening != b"{":
        refuse(text, source)
    searched = 0
    while True:
        for match in _ROWS_KEY.finditer(text, searched):
            if match.end() >= len(text) - 1:
                break
            if not nests_deeper(text[: match.start()]):
                return _after_key(text, match, source, document)
        if len(text) > limits.max_metadata_bytes:
            raise TraceFormatError(
                f"no 'traceEvents' in the first {len(text)} bytes",
                where=source.path,
                hint="raise Limits.max_metadata_bytes if the text before the events is really that long",
            )
        searched = max(0, len(text) - _KEY_BYTES)
        chunk = source.read(max(limits.block_bytes, len(text)))
        if not chunk:
            refuse_without_rows(text, source)
        text += chunk


def _after_key(text: bytes, match: re.Match[bytes], source: Source, document: Document) -> bytes:
    if text[match.end() : match.end() + 1] != b"[":
        raise TraceFormatError(
            "'traceEvents' is not a list", where=f"{source.path}, byte {match.end()}", hint="record the trace again"
        )
    document.head = text[: match.end()]
    return text[match.end() + 1 :]


def _take(text: bytes, *, last: bool, offset: int, document: Document) -> Taken | None:
    """Take whole rows from the start of the text; None if none ends in it."""
    if not text or text.isspace():
        return None
    try:
        return take_rows(text)
    except Failure as failure:
        if failure.truncated and not last:
            return None
    return resync(text, last=last, offset=offset, log=document.log)


def _end_of_file(text: bytes, place: int, document: Document) -> None:
    """Judge a file that ends before the list of rows does."""
    rest = text.strip(_SPACE + b",\0")
    if rest:
        document.leftover = place
    # The array form may lack its bracket; the object form may not.
    document.cut_short = bool(rest) or not document.is_array


def _check_row_size(text: bytes, place: int, source: Source, limits: Limits) -> None:
    if len(text) > limits.max_event_bytes:
        raise TraceFormatError(
            f"no event ends within {len(text)} bytes",
            where=f"{source.path}, byte {place}",
            hint="raise Limits.max_event_bytes if an event is really that long",
        )


def _read_tail(text: bytes, place: int, source: Source, limits: Limits, document: Document, *, at_end: bool) -> None:
    pieces = [text]
    size = len(text)
    while not at_end and size <= limits.max_metadata_bytes and (chunk := source.read(limits.block_bytes)):
        pieces.append(chunk)
        size += len(chunk)
    document.tail = b"".join(pieces)
    document.tail_offset = place
