"""A Chrome trace as a stream of blocks of whole rows, and the object around the rows as text.

Works for the object form with the rows anywhere among the keys and for the array form, closed or not. A valid file is
decoded once; where a row is broken, `resync` takes over until the end of that block.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from traceaudit.errors import TraceFormatError
from traceaudit.ingest.container import Source
from traceaudit.ingest.decode import Block, Failure
from traceaudit.ingest.foreign import refuse, refuse_without_rows
from traceaudit.ingest.limits import Limits
from traceaudit.ingest.resync import RepairLog, resync
from traceaudit.ingest.rowcuts import Taken, first_cut, take_rows
from traceaudit.ingest.topkeys import nests_deeper

__all__ = ["BlockReader", "Document", "Guess"]

_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
_ROWS_KEY = re.compile(rb'"traceEvents"\s*:\s*')
_MAX_NESTED = 32  # each is judged by all the text before it, and no writer puts even one there
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


class BlockReader:
    """Takes a source apart into blocks of whole rows, and fills a document.

    Iterating decodes the blocks one after the other. `guess` only cuts the next one, so that it can be decoded
    elsewhere; where that shows a cut to be wrong, `go_back` returns to it, and iterating goes on from there.

    Raises
    ------
    TraceFormatError
        If the input is no Chrome trace, or beyond the limits.
    """

    def __init__(self, source: Source, limits: Limits, document: Document) -> None:
        self._source = source
        self._limits = limits
        self._document = document
        self._again = b""
        self._at_end = False
        self._text = _to_rows(source, limits, document)
        self._place = source.bytes_read - len(self._text)

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks up to the end of the rows, then read what follows them."""
        want = self._limits.block_bytes
        while not self._document.rows_end:
            chunk = b"" if self._at_end else self._read(want)
            self._at_end = len(chunk) < want
            self._text = self._text + chunk if self._text else chunk
            taken = _take(self._text, last=self._at_end, offset=self._place, document=self._document)
            if taken is None:
                if self._at_end:
                    _end_of_file(self._text, self._place, self._document)
                    return
                _check_row_size(self._text, self._place, self._source, self._limits)
                want = max(self._limits.block_bytes, len(self._text))
                continue
            want = self._limits.block_bytes
            self._document.rows_end = taken.ended
            self._place += taken.size
            self._text = self._text[taken.size :]
            yield taken.block
        self._read_tail()

    def guess(self) -> "Guess | None":
        """Cut the next block where iterating would try first; None where it has to be looked at more closely."""
        if self._at_end or self._document.rows_end:
            return None
        chunk = self._read(self._limits.block_bytes)
        cut = first_cut(chunk) if len(chunk) == self._limits.block_bytes else None
        if cut is None:
            self._again = chunk + self._again
            return None
        guess = Guess(self._text, chunk, cut[0], self._place)
        self._place += len(self._text) + cut[1]
        self._text = chunk[cut[1] :]
        return guess

    def go_back(self, guesses: Sequence["Guess"]) -> None:
        """Undo the latest guesses, the earliest of them first in the list."""
        self._again = b"".join((*(guess.chunk for guess in guesses), self._again))
        self._text = guesses[0].rest
        self._place = guesses[0].place

    def _read(self, size: int) -> bytes:
        if not self._again:
            return self._source.read(size)
        chunk, self._again = self._again[:size], self._again[size:]
        return chunk if len(chunk) == size else chunk + self._source.read(size - len(chunk))

    def _read_tail(self) -> None:
        pieces = [self._text]
        size = len(self._text)
        limits = self._limits
        while not self._at_end and size <= limits.max_metadata_bytes and (chunk := self._read(limits.block_bytes)):
            pieces.append(chunk)
            size += len(chunk)
        self._document.tail = b"".join(pieces)
        self._document.tail_offset = self._place


class Guess:
    """A block that was cut but not decoded.

    Attributes
    ----------
    rest, chunk
        Its text: what the block before left, and what was read then.
    end
        Where the last row ends in the chunk.
    place
        Where the text begins in the file.
    """

    __slots__ = ("chunk", "end", "place", "rest")

    def __init__(self, rest: bytes, chunk: bytes, end: int, place: int) -> None:
        self.rest = rest
        self.chunk = chunk
        self.end = end
        self.place = place

    @property
    def rows(self) -> bytes:
        """The JSON text of the list of rows, if the cut is right."""
        return b"".join((b"[", self.rest, memoryview(self.chunk)[: self.end], b"]"))


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
    searched = nested = 0
    while True:
        for match in _ROWS_KEY.finditer(text, searched):
            if match.end() >= len(text) - 1:
                break
            if not nests_deeper(text[: match.start()]):
                return _after_key(text, match, source, document)
            nested = _one_more_nested(nested, match.start(), source)
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


def _one_more_nested(nested: int, place: int, source: Source) -> int:
    if nested >= _MAX_NESTED:
        raise TraceFormatError(
            f"more than {nested} keys 'traceEvents' within other values, and none of the outermost object",
            where=f"{source.path}, byte {place}",
        )
    return nested + 1


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
