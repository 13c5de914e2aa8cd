"""What is wrong with a small JSON file, in words that a reader of it understands."""

import json

__all__ = ["kind_of", "problem_of"]


def problem_of(exc: ValueError | RecursionError) -> str:
    r"""Say where a text is no JSON, and what a likely cause is.

    Examples
    --------
    >>> def problem(text):
    ...     try:
    ...         json.loads(text)
    ...     except (ValueError, RecursionError) as exc:
    ...         return problem_of(exc)
    >>> problem(""), problem('{"a": [1,')
    ('the file is empty', 'the file ends early')
    >>> problem('{"a": 1,\n b}'), problem(b"{\xff}")
    ('line 2, column 2', 'byte 1 is no UTF-8 text')
    >>> problem("[" * 100_000)
    'it is nested too deeply'
    """
    if isinstance(exc, RecursionError):
        return "it is nested too deeply"
    if isinstance(exc, UnicodeDecodeError):
        return f"byte {exc.start} is no UTF-8 text"
    if not isinstance(exc, json.JSONDecodeError):
        return "a number has too many digits"
    if not exc.doc.strip():
        return "the file is empty"
    if exc.pos >= len(exc.doc.rstrip()):
        return "the file ends early"
    return f"line {exc.lineno}, column {exc.colno}"


def kind_of(value: object) -> str:
    """Name a JSON value by its kind.

    Examples
    --------
    >>> kind_of(None), kind_of(True), kind_of(3), kind_of([])
    ('null', 'true or false', 'a number', 'an array')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    kinds = {int: "a number", float: "a number", str: "a string", list: "an array", dict: "an object"}
    return kinds[type(value)]
