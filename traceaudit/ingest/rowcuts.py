"""Where a text of many rows can be cut, whatever the layout.

A text that starts with a row is cut right iff what lies before the cut decodes as a list: a cut inside a string or a
nested object cannot, so another candidate is tried. The decoder itself is the judge; nothing here parses JSON.
"""

import re
from collections.abc import Iterator

from traceaudit.ingest.decode import Block, Failure, decode_rows

__all__ = ["END_OF_ROWS", "NEXT_ROW", "Taken", "first_cut", "take_rows"]

_SPACE = b" \t\r\n"

NEXT_ROW = re.compile(rb'\}\s*,\s*(?=\{\s*(?:"(?:ph|name|cat|ts|pid|tid|dur|args|s|bp)"|\}))')
"""Matches from the end of one row to the start of what looks like another, by its first key."""

END_OF_ROWS = re.compile(rb'\}\s*,?\s*(?=\]\s*(?:,\s*"|\}|\Z))')
"""Matches from the end of a row to a bracket after which the object around the rows could go on."""


class Taken:
    """Whole rows from the start of a text.

    Attributes
    ----------
    block
        The rows.
    size
        Bytes of the text that are done with, the comma after the last row included.
    ended
        Whether the list of rows ends there.
    """

    __slots__ = ("block", "ended", "size")

    def __init__(self, block: Block, size: int, *, ended: bool) -> None:
        self.block = block
        self.size = size
        self.ended = ended


def take_rows(text: bytes) -> Taken:
    """Decode as many whole rows as the text holds, up to the end of their list.

    Parameters
    ----------
    text
        Starts at a row, or at the bracket that ends the list.

    Raises
    ------
    Failure
        With `truncated` if no row ends in the text, else with the place that cannot be.
    """
    for cut, following in _cuts(text):
        try:
            return Taken(decode_rows(_listed(text, cut)), following, ended=False)
        except Failure as failure:
            if failure.trailing:
                return _up_to_bracket(text, failure)
            if not _is_wrong_cut(failure, cut):
                raise
    try:
        return Taken(decode_rows(b"[" + text), len(text), ended=True)
    except Failure as failure:
        if failure.trailing:
            return _up_to_bracket(text, failure)
        raise


def _up_to_bracket(text: bytes, failure: Failure) -> Taken:
    end = text.rindex(b"]", 0, failure.position)
    return Taken(decode_rows(_listed(text, end)), end + 1, ended=True)


def first_cut(text: bytes) -> tuple[int, int] | None:
    """Return the cut that is tried first: where its last row ends, and where the next one begins."""
    return next(_cuts(text), None)


def _listed(text: bytes, size: int) -> bytes:
    return b"".join((b"[", memoryview(text)[:size], b"]"))


def _is_wrong_cut(failure: Failure, cut: int) -> bool:
    # A text cut inside a string or a nested value is truncated, or trips over the bracket put at its end.
    return failure.truncated or (failure.position is not None and failure.position >= cut)


def _cuts(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield places between rows, from the last backwards with growing steps: end of one row, start of the next."""
    place = len(text)
    step = 1
    while (place := text.rfind(b"{", 0, max(place, 0))) > 0:
        before = _skip_space_back(text, place)
        if text[before - 1 : before] != b",":
            continue
        end = _skip_space_back(text, before - 1)
        if text[end - 1 : end] != b"}":
            continue
        yield end, place
        place -= step
        step *= 2


def _skip_space_back(text: bytes, place: int) -> int:
    while place and text[place - 1] in _SPACE:
        place -= 1
    return place
