"""Repairs of a text that should be JSON, in the order in which they are likely: each counted, none of a valid text.

They are for short texts, one row or the object around the events, so that a mistake in one cannot spread.
"""

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

__all__ = ["MAX_REPAIRED_BYTES", "QUOTES", "REPAIRS", "repair"]

MAX_REPAIRED_BYTES = 1 << 20
"""Longer texts are not worth the time and memory; a row has a few hundred bytes, a long one some thousands."""

QUOTES = "unescaped quotes"
"""The one repair that may take a text for another: what it escapes was a part of the grammar."""

# One that never ends runs to the end of the text; else each quote in it would be tried as a beginning.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPE = {0x08: b"\\b", 0x09: b"\\t", 0x0A: b"\\n", 0x0C: b"\\f", 0x0D: b"\\r"}
_LEGAL_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_POINTER = re.compile(rb"(?<![\w.+-])0[xX][0-9a-fA-F]+")
_WORD = re.compile(
    rb"(?<![\w.+-])[+-]?(?:nan\([a-z]*\)|nan|inf(?:inity)?|1\.#(?:inf|ind|qnan|snan)\d*|n/a|none|undefined)(?![\w/])",
    re.IGNORECASE,
)
_BOOLEAN = re.compile(rb"(?<![\w.+-])(?:True|False)(?!\w)")
_MISSING_VALUE = re.compile(rb":\s*(?=[,}\]])")
_EXTRA_COMMA = re.compile(rb",(?=\s*[,}\]])")
_MARK = re.compile(rb'\\.|["{}\[\]]', re.DOTALL)
_OBJECT = ord("{")
_ENDS_KEY = re.compile(rb"\s*:")
_ENDS_IN_OBJECT = re.compile(rb'\s*(?:\}|,\s*\}|,\s*"[^"\\]*"\s*:|\Z)')
_ENDS_IN_LIST = re.compile(rb'\s*(?:\]|,\s*(?:["{\[\]]|-?\d|true|false|null)|\Z)')

Stage = Callable[[bytes], tuple[bytes, int]]


def repair(
    text: bytes, parses: Callable[[bytes], bool], first: Iterable[str] = ()
) -> tuple[bytes, dict[str, int]] | None:
    """Return the repaired text and what was repaired how often, or None if nothing makes it parse.

    Parameters
    ----------
    text
        A text that does not parse.
    parses
        Whether a text is valid.
    first
        Repairs that helped the text before this one; tried alone at first, as one file has one kind of trouble.
    """
    for order in (tuple(first), *_ORDERS):
        current, done = text, dict[str, int]()
        for name in order:
            current, count = REPAIRS[name](current)
            if count:
                done[name] = count
                if parses(current):
                    return current, done
    return None


def _replace_invalid_utf8(text: bytes) -> tuple[bytes, int]:
    try:
        text.decode()
    except UnicodeDecodeError:
        # Lone surrogates encoded as UTF-8 count here as well.
        replaced = text.decode("utf-8", "replace").encode()
        return replaced, replaced.count(b"\xef\xbf\xbd") - text.count(b"\xef\xbf\xbd")
    return text, 0


def _escape_control_characters(text: bytes) -> tuple[bytes, int]:
    count = 0

    def escape(match: re.Match[bytes]) -> bytes:
        nonlocal count
        count += 1
        byte = match.group()[0]
        return _ESCAPE.get(byte, b"\\u%04x" % byte)

    return _STRING.sub(lambda match: _CONTROL.sub(escape, match.group()), text), count


def _replace_bare_words(text: bytes) -> tuple[bytes, int]:
    text, pointers = _outside_strings(text, _POINTER, lambda match: b'"' + match.group() + b'"')
    text, words = _outside_strings(text, _WORD, lambda _: b"null")
    text, booleans = _outside_strings(text, _BOOLEAN, lambda match: match.group().lower())
    return text, pointers + words + booleans


def _fill_missing_values(text: bytes) -> tuple[bytes, int]:
    return _outside_strings(text, _MISSING_VALUE, lambda match: match.group() + b"null")


def _remove_extra_commas(text: bytes) -> tuple[bytes, int]:
    return _outside_strings(text, _EXTRA_COMMA, lambda _: b"")


def _double_backslashes(text: bytes) -> tuple[bytes, int]:
    count = 0

    def whole_string(match: re.Match[bytes]) -> bytes:
        nonlocal count
        string = match.group()
        if b"\\" not in _LEGAL_ESCAPE.sub(b"", string):
            return string
        # One illegal escape shows that nothing here was escaped, so a legal one is a path's part as well.
        fixed = re.sub(rb'\\(\\?)(?!")', lambda found: b"\\\\\\\\" if found.group(1) else b"\\\\", string)
        count += 1
        return fixed

    return _STRING.sub(whole_string, text), count


def _escape_inner_quotes(text: bytes) -> tuple[bytes, int]:
    """Escape the quotes in strings that cannot end them, by what follows."""
    inner: list[int] = []
    containers: list[int] = []
    ends: re.Pattern[bytes] | None = None
    for match in _MARK.finditer(text):
        mark = match.group()
        if ends is not None:
            if mark == b'"':
                if ends.match(text, match.end()):
                    ends = None
                else:
                    inner.append(match.start())
        elif mark == b'"':
            is_key = _before(text, match.start()) in (b"{", b",") and containers[-1:] == [_OBJECT]
            ends = _ENDS_KEY if is_key else _ENDS_IN_OBJECT if containers[-1:] == [_OBJECT] else _ENDS_IN_LIST
        elif mark in (b"{", b"["):
            containers.append(mark[0])
        elif mark in (b"}", b"]") and containers:
            containers.pop()
    pieces = [text[begin:end] for begin, end in pairwise([0, *inner, len(text)])]
    return b"\\".join(pieces), len(inner)


def _before(text: bytes, place: int) -> bytes:
    """Return the last byte before `place` that is no space."""
    while place and text[place - 1] in b" \t\r\n":
        place -= 1
    return text[place - 1 : place]


def _outside_strings(
    text: bytes, pattern: re.Pattern[bytes], change: Callable[[re.Match[bytes]], bytes]
) -> tuple[bytes, int]:
    """Change what the pattern matches outside strings; return the text and the number of changes."""
    if not pattern.search(text):
        return text, 0
    pieces: list[bytes] = []
    place = total = 0
    for string in _STRING.finditer(text):
        piece, count = pattern.subn(change, text[place : string.start()])
        pieces += (piece, string.group())
        total += count
        place = string.end()
    piece, count = pattern.subn(change, text[place:])
    return b"".join((*pieces, piece)), total + count


REPAIRS: dict[str, Stage] = {
    "invalid UTF-8": _replace_invalid_utf8,
    "control characters": _escape_control_characters,
    "bare words": _replace_bare_words,
    "missing values": _fill_missing_values,
    "extra commas": _remove_extra_commas,
    "lone backslashes": _double_backslashes,
    QUOTES: _escape_inner_quotes,
}

_QUOTES_FIRST = ("invalid UTF-8", QUOTES)

# The quotes come last: escaping them is the boldest repair. Where they are the trouble, all that depends on knowing
# what is a string and what is not went wrong, so the second order begins with them.
_ORDERS = (
    tuple(REPAIRS),
    (
        "invalid UTF-8",
        QUOTES,
        *(name for name in REPAIRS if name not in {"invalid UTF-8", QUOTES}),
    ),
)
