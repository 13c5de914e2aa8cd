"""``key: value`` and ``key = value`` items, read by name wherever they stand in a line."""

import re
from collections.abc import Mapping

__all__ = ["ITEMS_LIMIT", "count_of", "items_in", "list_maximum", "number_of", "truth_of"]

ITEMS_LIMIT = 4096
COUNT_LIMIT = 10**12
ITEM = re.compile(
    r"(?P<key>[#A-Za-z][^:,=\[\]{}\r\n]{0,60}?)\s{0,3}[:=]\s{0,3}(?P<value>-?\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?|True|False)"
)


def items_in(text: str) -> dict[str, str]:
    """Return the items of a message whose value is a number or a truth value; the first of a name counts.

    Examples
    --------
    >>> items_in("#running-req: 8, token usage: 0.01, cuda graph: True, gen throughput (token/s): 28.00, ")
    {'#running-req': '8', 'token usage': '0.01', 'cuda graph': 'True', 'gen throughput (token/s)': '28.00'}
    """
    found: dict[str, str] = {}
    for match in ITEM.finditer(text[:ITEMS_LIMIT]):
        found.setdefault(match["key"].strip(" '\"\\"), match["value"])
    return found


def count_of(items: Mapping[str, str], *names: str) -> int | None:
    """Return the sum of the named counts, None if none of them is there.

    Examples
    --------
    >>> count_of({"#queue-req": "3"}, "#queue-req", "#transfer-req"), count_of({}, "#queue-req")
    (3, None)
    """
    values = [number_of(items, name) for name in names]
    known = [int(value) for value in values if value is not None and value < COUNT_LIMIT]
    return sum(known) if known else None


def number_of(items: Mapping[str, str], name: str) -> float | None:
    """Return the named number; None if it is absent, negative or not finite.

    Examples
    --------
    >>> number_of({"accept len": "2.31"}, "accept len")
    2.31
    """
    try:
        value = float(items[name])
    except (KeyError, ValueError):
        return None
    return value if 0 <= value < float("inf") else None


def truth_of(items: Mapping[str, str], ending: str) -> bool | None:
    """Return the truth value of the first item whose name ends so, None if there is none.

    Examples
    --------
    >>> truth_of({"npu graph": "True"}, " graph")
    True
    """
    for name, value in items.items():
        if name.endswith(ending) and value in {"True", "False"}:
            return value == "True"
    return None


def list_maximum(text: str) -> int | None:
    """Return the largest whole number of a list such as ``[1, 2, 4]``.

    Examples
    --------
    >>> list_maximum("[1, 2, 4, 8]")
    8
    """
    numbers = [int(number) for number in re.findall(r"\d{1,9}", text[:ITEMS_LIMIT])]
    return max(numbers, default=None)
