"""Typed decoding of a list of rows: only the fields used, the common shapes fast, odd ones still.

Arguments stay raw here; most rows need none of theirs, and those that do decode them by category (`arguments`).
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct

__all__ = ["Block", "Failure", "Row", "decode_row", "decode_rows", "join_rows", "parses_as_row"]

_NO_ARGS = Raw(b"{}")


class Row(Struct, gc=False):
    """One element of the events array; fields in the order in which Kineto writes them."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: int | float | str | None = None
    dur: int | float | str | None = None
    args: Raw = _NO_ARGS
    id: int | float | str | None = None


class _LooseRow(Struct, gc=False):
    """A row whose fields have types that no writer should give them."""

    ph: object = ""
    cat: object = None
    name: object = ""
    pid: object = None
    tid: object = None
    ts: object = None
    dur: object = None
    args: Raw = _NO_ARGS
    id: object = None


class _TimesAsText(Struct, gc=False):
    ts: Raw = Raw(b"")
    dur: Raw = Raw(b"")


_ROWS = msgspec.json.Decoder(list[Row])
_RAW_ROWS = msgspec.json.Decoder(list[Raw])
_ROW = msgspec.json.Decoder(Row)
_LOOSE_ROW = msgspec.json.Decoder(_LooseRow)
_TIMES = msgspec.json.Decoder(list[_TimesAsText])


class Failure(Exception):  # noqa: N818  (not an error of the user's; it steers the search for the right cut)
    """A text is no list of rows.

    Attributes
    ----------
    position
        Index of the byte that cannot be, or of the one before; None where the decoder does not tell.
    truncated
        The text ends too early.
    trailing
        The list ends before the text does.
    """

    def __init__(self, *, position: int | None = None, truncated: bool = False, trailing: bool = False) -> None:
        super().__init__()
        self.position = position
        self.truncated = truncated
        self.trailing = trailing

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        """Read what the decoder says in words."""
        message = str(error)
        _, _, tail = message.rpartition("(byte ")
        position = int(tail[:-1]) - 1 if tail[:-1].isdigit() else None
        return cls(position=position, truncated="truncated" in message, trailing="trailing characters" in message)


class Block:
    """Rows that were decoded together.

    Attributes
    ----------
    rows
        The rows, in the order of the file.
    text
        The JSON text of their list.
    dropped
        Elements of the list that are no rows.
    """

    def __init__(self, rows: list[Row], text: bytes, dropped: int = 0) -> None:
        self.rows = rows
        self.text = text
        self.dropped = dropped
        self._texts: dict[int, tuple[bytes, bytes]] | None = None

    def time_texts(self, rows: Iterable[Row], field: str) -> list[bytes]:
        """Return how ``ts`` or ``dur`` is written in `rows`, which are some of the block's."""
        if self._texts is None:
            self._texts = {
                id(row): (bytes(times.ts), bytes(times.dur))
                for row, times in zip(self.rows, _TIMES.decode(self.text), strict=True)
            }
        column = 0 if field == "ts" else 1
        return [self._texts[id(row)][column] for row in rows]


def decode_rows(text: bytes) -> Block:
    """Decode the JSON text of a list of rows.

    Raises
    ------
    Failure
        If the text is not one JSON list.
    """
    _check_encoding(text)
    try:
        return Block(_ROWS.decode(text), text)
    except msgspec.ValidationError:
        return _decode_loosely(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise Failure.of(exc) from None


def decode_row(text: bytes) -> Row:
    """Decode the JSON text of one row.

    Raises
    ------
    Failure
        If the text is not one row.
    """
    _check_encoding(text)
    try:
        return _loose(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise Failure.of(exc) from None


def _check_encoding(text: bytes) -> None:
    # The decoder looks at strings that it keeps only; a broken key would go unnoticed, and its value with it.
    if text.isascii():
        return
    try:
        text.decode()
    except UnicodeDecodeError as exc:
        raise Failure(position=exc.start) from None


def join_rows(texts: list[bytes]) -> Block:
    """Decode rows that are known to decode one by one."""
    return decode_rows(b"[" + b",".join(texts) + b"]")


def parses_as_row(text: bytes) -> bool:
    """Return whether the text is one row."""
    try:
        decode_row(text)
    except Failure:
        return False
    return True


def _decode_loosely(text: bytes) -> Block:
    try:
        elements = _RAW_ROWS.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise Failure.of(exc) from None
    rows: list[Row] = []
    kept: list[bytes] = []
    for element in elements:
        try:
            rows.append(_loose(element))
        except msgspec.ValidationError:  # no object, or a number that no float can hold
            continue
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise Failure.of(exc) from None
        kept.append(bytes(element))
    return Block(rows, b"[" + b",".join(kept) + b"]", dropped=len(elements) - len(kept))


def _loose(text: bytes | Raw) -> Row:
    try:
        return _ROW.decode(text)
    except msgspec.ValidationError:
        odd = _LOOSE_ROW.decode(text)
    return Row(
        ph=odd.ph if isinstance(odd.ph, str) else "",
        cat=odd.cat if isinstance(odd.cat, str) else None,
        name=odd.name if isinstance(odd.name, str) else _as_text(odd.name),
        pid=_as_scalar(odd.pid),
        tid=_as_scalar(odd.tid),
        ts=_as_scalar(odd.ts),
        dur=_as_scalar(odd.dur),
        args=odd.args,
        id=_as_scalar(odd.id),
    )


def _as_scalar(value: object) -> int | float | str | None:
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else None


def _as_text(value: Any) -> str:  # noqa: ANN401  (anything that JSON can hold)
    return "" if value is None else msgspec.json.encode(value).decode()
