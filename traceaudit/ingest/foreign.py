"""What an input is that is no trace of the PyTorch profiler, said in one line with what to do."""

from pathlib import Path
from typing import NoReturn

import msgspec

from traceaudit.errors import TraceFormatError
from traceaudit.ingest.container import Source
from traceaudit.ingest.decode import Failure

__all__ = ["place_in", "refuse", "refuse_without_rows"]

_SQLITE = b"SQLite format 3\0"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_NSYS_SUFFIXES = frozenset({".nsys-rep", ".qdrep", ".qdstrm"})
_PROTOBUF_SUFFIXES = frozenset({".pftrace", ".perfetto-trace", ".perfetto"})
_TENSORBOARD_SUFFIXES = frozenset({".pb", ".xplane"})
_PRINTABLE_SHARE = 0.9
_KEYS_NAMED = 5
_RECORD_HINT = "record with torch.profiler and export_chrome_trace"


def refuse(text: bytes, source: Source) -> NoReturn:
    """Raise for an input whose first character other than space starts no JSON object or list."""
    where = source.path
    suffixes = {suffix.lower() for suffix in Path(source.path).suffixes}
    if not text.strip():
        if source.damage:
            raise TraceFormatError(f"nothing could be decompressed: {source.damage}", where=where, hint="copy it again")
        raise TraceFormatError("the file is empty", where=where, hint="the recording may not have been finished")
    if text.startswith(_SQLITE):
        raise TraceFormatError(
            "an SQLite database, as Nsight Systems and RPD write, not a trace of the PyTorch profiler",
            where=where,
            hint=f"convert an RPD file with rpd2tracing; for Nsight Systems, {_RECORD_HINT}",
        )
    if suffixes & _NSYS_SUFFIXES:
        raise TraceFormatError("a report of Nsight Systems, not a PyTorch trace", where=where, hint=_RECORD_HINT)
    if suffixes & _PROTOBUF_SUFFIXES or (text[:1] == b"\x0a" and not _is_text(text)):
        raise TraceFormatError(
            "a binary Perfetto trace, not JSON", where=where, hint="export the trace as JSON (export_chrome_trace)"
        )
    if suffixes & _TENSORBOARD_SUFFIXES or "tfevents" in source.path:
        raise TraceFormatError("a TensorBoard or XLA profile, not a PyTorch trace", where=where, hint=_RECORD_HINT)
    if text.startswith(_UTF16):
        raise TraceFormatError("the text is UTF-16", where=where, hint="save it as UTF-8")
    if not _is_text(text):
        raise TraceFormatError("a binary file, not JSON", where=where, hint=_RECORD_HINT)
    start = text.lstrip()[:20].decode("utf-8", "replace")
    raise TraceFormatError(f"not JSON: it starts with {start!r}", where=where, hint=_RECORD_HINT)


def refuse_without_rows(text: bytes, source: Source) -> NoReturn:
    """Raise for an object that ends without a list of events."""
    try:
        keys = list(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        failure = Failure.of(exc)
        if failure.truncated or source.damage:
            raise TraceFormatError(
                f"the file ends before its events, after {len(text)} bytes", where=source.path, hint="copy it again"
            ) from exc
        place = place_in(text, None if failure.position is None else failure.position + 1)
        raise TraceFormatError(
            f"not JSON, and no 'traceEvents' in it ({'nested too deeply' if isinstance(exc, RecursionError) else exc})",
            where=f"{source.path}, {place}",
            hint=_RECORD_HINT,
        ) from exc
    named = ", ".join(map(repr, keys[:_KEYS_NAMED])) + (", …" if len(keys) > _KEYS_NAMED else "")
    raise TraceFormatError(
        f"JSON without 'traceEvents'; its keys are {named}" if keys else "an empty JSON object",
        where=source.path,
        hint=_RECORD_HINT,
    )


def place_in(text: bytes, position: int | None, offset: int = 0) -> str:
    r"""Return line, column and byte of a position, in words.

    Examples
    --------
    >>> place_in(b"{\n  x", 4)
    'line 2, column 3 (byte 4)'
    """
    if position is None:
        return f"byte {offset} or later"
    line = text.count(b"\n", 0, position) + 1
    column = position - text.rfind(b"\n", 0, position)
    return f"line {line}, column {column} (byte {offset + position})"


def _is_text(text: bytes) -> bool:
    sample = text[:512]
    printable = sum(byte >= 0x20 or byte in b"\t\r\n" for byte in sample)  # noqa: PLR2004  (the first that prints)
    return b"\0" not in sample and printable >= _PRINTABLE_SHARE * len(sample)
