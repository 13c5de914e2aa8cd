"""Where the keys of a TOML document stand, which the standard library's reader does not tell."""

import re
from collections.abc import Iterator

__all__ = ["KeyPath", "key_lines"]

KeyPath = tuple[str | int, ...]
"""Tables, places in lists of tables, and the key."""

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def key_lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield the line of each table and key; the inside of inline tables has the line of its key."""
    table: KeyPath = ()
    counts: dict[str, int] = {}
    quote: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        fences = re.findall(r'"""|\'\'\'', line)
        if quote is None and (found := _HEADER.match(line)):
            table = _parts(found[2])
            if found[1] == "[[":
                name = ".".join(map(str, table))
                counts[name] = counts.get(name, -1) + 1
                table = (*table, counts[name])
            yield table, number
        elif quote is None and (found := _KEY.match(line)):
            yield (*table, *_parts(found[1])), number
        for fence in fences:
            quote = fence if quote is None else None if fence == quote else quote


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
