"""From bytes to clean lines: whatever encoding, colour codes, line lengths and rotation left in the file."""

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["LINE_LIMIT", "LineCount", "clean", "lines_of"]

LINE_LIMIT = 65_536
UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# ESC, or what JSON loggers and syslog write for it, then a control sequence.
COLOUR = re.compile(r"(?:\x1b|\\u001[bB]|\\x1[bB]|#033)\[[0-9;?]{0,20}[A-Za-z]")


@dataclass(slots=True)
class LineCount:
    """What `lines_of` has seen so far."""

    lines: int = 0
    bytes_read: int = 0
    cut: int = 0
    nuls: bool = False


def lines_of(blocks: Iterable[bytes], count: LineCount) -> Iterator[bytes]:
    r"""Yield the lines of a byte stream without their ends, each cut after `LINE_LIMIT` bytes.

    NUL bytes are dropped: a log that is truncated while the server holds it open begins with as many of them as it
    had bytes.

    Examples
    --------
    >>> list(lines_of([b"one\r\ntw", b"o"], LineCount()))
    [b'one', b'two']
    """
    head: bytes = b""
    overflow = False
    for block in _as_utf8(blocks, count):
        *full, rest = block.split(b"\n")
        for part in full:
            yield _finish(head + part, overflow, count)
            head, overflow = b"", False
        room = LINE_LIMIT - len(head)
        overflow = overflow or len(rest) > room
        head += rest[: max(0, room)]
    if head:
        yield _finish(head, overflow, count)


def clean(raw: bytes) -> str:
    r"""Return the line as text, without colour codes.

    Examples
    --------
    >>> clean(b"\x1b[36m(APIServer pid=1)\x1b[0;0m INFO")
    '(APIServer pid=1) INFO'
    """
    return COLOUR.sub("", raw.decode("utf-8", "replace"))


def _as_utf8(blocks: Iterable[bytes], count: LineCount) -> Iterator[bytes]:
    decoder: codecs.IncrementalDecoder | None = None
    for index, block in enumerate(blocks):
        count.bytes_read += len(block)
        if index == 0 and block[:2] in UTF16:
            decoder = codecs.getincrementaldecoder(UTF16[block[:2]])("replace")
        text = block if decoder is None else decoder.decode(block).encode("utf-8", "replace")
        if b"\0" in text:
            count.nuls = True
            text = text.replace(b"\0", b"")
        yield text


def _finish(line: bytes, overflow: bool, count: LineCount) -> bytes:  # noqa: FBT001  (private, both calls name it)
    count.lines += 1
    if overflow or len(line) > LINE_LIMIT:
        count.cut += 1
    return line[:LINE_LIMIT].rstrip(b"\r")
