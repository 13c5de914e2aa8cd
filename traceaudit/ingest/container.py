"""Files, compressed or not, as a stream of bytes: what a file is decides its first bytes, never its name."""

import io
import sys
import zipfile
from pathlib import Path
from typing import Any, Protocol

from traceaudit.errors import TraceError, TraceFormatError, TraceNotFoundError
from traceaudit.ingest.limits import Limits
from traceaudit.ingest.zstdframes import Frames

__all__ = ["STDIN", "Source"]

STDIN = "-"

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZIP = b"PK\x03\x04"
_INPUT_BYTES = 1 << 18
_SALVAGE_STEPS = (1 << 16, 1 << 12, 1 << 8, 1 << 4, 1)
_MAX_LAYERS = 3  # an archive of a compressed trace, as bug reports carry them, has two


class _Reader(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Source:
    """The decompressed bytes of a file or of standard input.

    Parameters
    ----------
    path
        A file, or ``-`` for standard input.
    limits
        `Limits.max_bytes` bounds what is read.

    Attributes
    ----------
    damage
        Why the bytes end early, None while they do not.
    bytes_read
        Decompressed bytes handed out.
    total
        Size of the file in bytes, None for standard input.

    Raises
    ------
    TraceNotFoundError
        If there is no such file.
    TraceError
        If it cannot be opened or read, or is a folder.
    """

    def __init__(self, path: str, limits: Limits) -> None:
        self.path = path
        self.bytes_read = 0
        self._limits = limits
        self._file = _open(path)
        self._counted = _Counted(self._file, path)
        self.total = None if path == STDIN else Path(path).stat().st_size
        self._layers: list[_Gzip | _Zstd] = []
        try:
            self._reader = self._unwrap()
        except BaseException:
            self.close()
            raise

    @property
    def position(self) -> int:
        """Bytes of the file that were taken in so far."""
        return self._counted.count

    @property
    def damage(self) -> str | None:
        """Why the bytes end early, None while they do not."""
        return next((layer.damage for layer in self._layers if layer.damage), None)

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer only at the end.

        Raises
        ------
        TraceFormatError
            If the input is larger than `Limits.max_bytes`.
        TraceError
            If the system cannot read the file.
        """
        pieces: list[bytes] = []
        missing = size
        while missing and (piece := self._reader.read(missing)):
            pieces.append(piece)
            missing -= len(piece)
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.bytes_read += len(data)
        if self.bytes_read > self._limits.max_bytes:
            raise TraceFormatError(
                f"more than {self._limits.max_bytes} bytes after decompression",
                where=self.path,
                hint="raise Limits.max_bytes if the trace is really that large",
            )
        return data

    def close(self) -> None:
        """Close the file."""
        if self.path != STDIN:
            self._file.close()

    def _unwrap(self) -> _Reader:
        reader: _Reader = self._counted
        for depth in range(_MAX_LAYERS):
            head = _read_exactly(reader, len(_ZSTD))
            again = _Pushback(head, reader)
            if head.startswith(_GZIP):
                gzip = _Gzip(again, self.path if depth == 0 else None)
                self._layers.append(gzip)
                reader = gzip
            elif head == _ZSTD:
                zstd = _Zstd(again)
                self._layers.append(zstd)
                reader = zstd
            elif head == _ZIP and depth == 0:
                reader = _open_member(self.path)
            else:
                return again
        return reader


class _Counted:
    """A reader that counts what passes, and names the file and the place where the system cannot read it."""

    def __init__(self, reader: _Reader, path: str) -> None:
        self.count = 0
        self._reader = reader
        self._path = path

    def read(self, size: int, /) -> bytes:
        try:
            data = self._reader.read(size)
        except OSError as exc:
            raise TraceError(f"cannot be read after byte {self.count}: {_reason(exc)}", where=self._path) from exc
        self.count += len(data)
        return data


class _Pushback:
    """A reader that gives back the bytes that were looked at."""

    def __init__(self, head: bytes, reader: _Reader) -> None:
        self._head = head
        self._reader = reader

    def read(self, size: int, /) -> bytes:
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        return self._reader.read(size)


class _Gzip:
    """Gzip members, one after the other; of a damaged one, what inflated."""

    def __init__(self, reader: _Reader, path: str | None) -> None:
        self.damage: str | None = None
        self._reader = reader
        self._path = path
        self._input = b""
        self._member: Any = None
        self._produced = 0
        self._ended = False

    def read(self, size: int, /) -> bytes:
        from isal.igzip_lib import IsalError

        while not self._ended:
            if self._member is None and not self._next_member():
                return b""
            try:
                data: bytes = self._member.decompress(self._input, size)
            except IsalError as exc:  # type: ignore[misc]  # isal has no types
                data = self._salvage()
                self._end(f"the gzip stream is damaged ({str(exc).removeprefix('Error ')})")
                return data
            self._input = self._member.unconsumed_tail
            if self._member.eof:
                self._input = self._member.unused_data
                self._member = None
            self._produced += len(data)
            if data:
                return data
            if self._member is not None and not self._input and not self._refill():
                self._end("the gzip stream ends early")
        return b""

    def _next_member(self) -> bool:
        from isal import isal_zlib

        # Tape-style padding with zeros after the last member is no damage.
        self._input = self._input.lstrip(b"\0")
        while len(self._input) < len(_GZIP) and self._refill():
            self._input = self._input.lstrip(b"\0")
        if not self._input.startswith(_GZIP):
            self._end("other data follows the gzip stream" if self._input else None)
            return False
        self._member = isal_zlib.decompressobj(31)
        return True

    def _refill(self) -> bool:
        more = self._reader.read(_INPUT_BYTES)
        self._input += more
        return bool(more)

    def _end(self, damage: str | None) -> None:
        self._ended = True
        self.damage = damage

    def _salvage(self) -> bytes:
        # An error takes the output of its call with it, so go there again and on in ever smaller steps.
        if self._path is None or self._path == STDIN:
            return b""
        kept = bytearray()
        for step in _SALVAGE_STEPS:
            with _open(self._path) as file:
                again = _Gzip(file, None)
                left = self._produced + len(kept)
                while left and (data := again.read(min(left, _INPUT_BYTES))):
                    left -= len(data)
                while data := again.read(step):
                    kept += data
        return bytes(kept)


class _Zstd:
    """Zstandard frames, one after the other; of a damaged one, what was decoded."""

    def __init__(self, reader: _Reader) -> None:
        import zstandard

        self.damage: str | None = None
        self._error = zstandard.ZstdError
        self._frames = Frames()
        self._reader = zstandard.ZstdDecompressor().stream_reader(_Tee(reader, self._frames), read_across_frames=True)  # type: ignore[arg-type]

    def read(self, size: int, /) -> bytes:
        if self.damage:
            return b""
        try:
            data = self._reader.read(size)
        except self._error as exc:
            self.damage = f"the zstd stream is damaged ({exc})"
            return b""
        if not data and size and not self._frames.whole:
            self.damage = "the zstd stream ends early"
        return data


class _Tee:
    """A reader that shows what passes to the one who follows the frames."""

    def __init__(self, reader: _Reader, frames: Frames) -> None:
        self._reader = reader
        self._frames = frames

    def read(self, size: int, /) -> bytes:
        data = self._reader.read(size)
        self._frames.feed(data)
        return data


def _open(path: str) -> Any:  # noqa: ANN401  (a binary file of any kind)
    if path == STDIN:
        if sys.stdin is None:
            raise TraceError("standard input is closed", where=path, hint="give the path of a file, or a pipe")
        return sys.stdin.buffer
    try:
        return Path(path).open("rb", buffering=0)
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise TraceNotFoundError("no such file", where=path, hint="check the path") from exc
    except IsADirectoryError as exc:
        raise TraceError(
            "is a folder, not a file", where=path, hint="give one file of it, or locate() its traces"
        ) from exc
    except (OSError, ValueError) as exc:
        raise TraceError(f"cannot be opened: {_reason(exc)}", where=path) from exc


def _reason(exc: OSError | ValueError) -> str:
    return (exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)).lower()


def _read_exactly(reader: _Reader, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := reader.read(size - len(data))):
        data += more
    return data


def _open_member(path: str) -> _Reader:
    if path == STDIN:
        raise TraceFormatError("a zip archive on standard input", where=path, hint="unpack it, or give its path")
    try:
        archive = zipfile.ZipFile(path)
        members = [name for name in archive.namelist() if ".json" in name.lower() and not name.startswith("__MACOSX")]
        if len(members) != 1:
            raise TraceFormatError(
                f"a zip archive with {len(members)} traces", where=path, hint="unpack it and give one of them"
            )
        return io.BufferedReader(archive.open(members[0]))  # type: ignore[type-var]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as exc:
        raise TraceFormatError(f"the zip archive cannot be read: {exc}", where=path) from exc
