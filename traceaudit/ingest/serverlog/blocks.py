"""A file or standard input as blocks of decompressed bytes."""

import bz2
import io
import lzma
from collections.abc import Iterator
from contextlib import closing
from typing import Protocol

from traceaudit.errors import TraceError, TraceFormatError
from traceaudit.ingest.container import Source
from traceaudit.ingest.limits import Limits

__all__ = ["Blocks"]

BLOCK = 1 << 20
BZIP2, XZ = b"BZh", b"\xfd7zXZ\x00"
MAX_BYTES = 1 << 40  # lines are not kept, so that a log may be long


class _Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class Blocks:
    """The decompressed bytes of a file, in blocks; the compression is told by its first bytes.

    A compressed file that ends early or is damaged inside gives what could be read: the log of a server that still
    runs does. Rotation may also have used bzip2 or xz, which traces do not come in.

    Attributes
    ----------
    damage
        Once all blocks were taken, why they end early; None where they do not.

    Raises
    ------
    TraceAuditError
        While iterating: if the file cannot be opened or read, or the compressed data is damaged at its start.
    """

    def __init__(self, path: str) -> None:
        self.damage: str | None = None
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        """Yield the blocks."""
        seen = False
        with closing(Source(self._path, Limits(max_bytes=MAX_BYTES))) as source:
            for block in self._joined(source):
                seen = True
                yield block
        if self.damage and not seen:
            raise TraceFormatError(
                f"the file cannot be read: {self.damage}",
                where=self._path,
                hint="the copy is incomplete or damaged; copy it again",
            )

    def _joined(self, source: Source) -> Iterator[bytes]:
        """Join pieces to blocks; one big read would lose the pieces before an error."""
        pieces: list[bytes] = []
        size = 0
        try:
            stream = _further(source)
            while piece := stream.read1(BLOCK):
                pieces.append(piece)
                size += len(piece)
                if size >= BLOCK:
                    block, rest = _whole_lines(b"".join(pieces))
                    yield block
                    pieces, size = [rest], len(rest)
        except (OSError, ValueError, EOFError, lzma.LZMAError) as exc:
            if isinstance(exc, TraceError):
                raise
            self.damage = "the compressed stream ends early" if isinstance(exc, EOFError) else _damaged(exc)
        else:
            self.damage = source.damage
        last = b"".join(pieces)
        if self.damage:  # of a number that is cut, digits are left that mean another
            last = last[: last.rfind(b"\n") + 1]
        if last:
            yield last


def _whole_lines(data: bytes) -> tuple[bytes, bytes]:
    """Split after the last end of a line; a line longer than a block is given as it is."""
    end = data.rfind(b"\n") + 1 or len(data)
    return data[:end], data[end:]


def _damaged(exc: Exception) -> str:
    return f"the compressed stream is damaged ({str(exc).lower()})"


def _further(source: Source) -> _Readable:
    head = source.read(len(XZ))
    again = io.BufferedReader(_Again(head, source))
    if head.startswith(BZIP2):
        return bz2.BZ2File(again)
    return lzma.LZMAFile(again) if head == XZ else again


class _Again(io.RawIOBase):
    """A source with the bytes that were looked at put back."""

    def __init__(self, head: bytes, source: Source) -> None:
        self._head = head
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        data = self._head or self._source.read(len(buffer))
        taken = data[: len(buffer)]
        self._head = self._head[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)
