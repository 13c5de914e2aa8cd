"""Exact conversion of the times that traces and users write, and unit constants.

Traces write microseconds, often with three decimals made from integer nanoseconds. Nothing here goes through a float
where the text is at hand, so no nanosecond is lost.
"""

from decimal import Decimal, InvalidOperation

__all__ = ["NS_PER_MS", "NS_PER_S", "NS_PER_US", "ms_to_ns", "us_text_to_ns"]

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

LARGEST_EXPONENT = 30
"""Larger times mean nothing, and the digits of a huge exponent would take forever to write out."""


def us_text_to_ns(text: str) -> int:
    """Convert a decimal number of microseconds to nanoseconds, rounding half to even below one nanosecond.

    Raises
    ------
    ValueError
        If `text` is no finite decimal number.

    Examples
    --------
    >>> us_text_to_ns("1767225600000000.123")
    1767225600000000123
    >>> us_text_to_ns("12")
    12000
    """
    return _scaled(text, NS_PER_US)


def ms_to_ns(value: str | float) -> int:
    """Convert milliseconds, as text or number, to the nearest nanosecond.

    Raises
    ------
    ValueError
        If `value` is no finite number.

    Examples
    --------
    >>> ms_to_ns("3.3")
    3300000
    """
    return _scaled(str(value), NS_PER_MS)


def _scaled(text: str, factor: int) -> int:
    try:
        number = Decimal(text.strip())
        if not number.is_finite() or number.adjusted() > LARGEST_EXPONENT:
            raise ValueError(f"not a finite number of reasonable size: {text!r}")
        return int((number * factor).to_integral_value())
    except InvalidOperation as exc:
        raise ValueError(f"not a number: {text!r}") from exc
