"""Times as traces write them, in microseconds, as exact int64 nanoseconds.

A decimal below 2**43 µs loses less than half a nanosecond in float64, so it comes back exactly once its integer is
taken off before scaling. Larger decimals (microseconds since 1970) do not fit, and are converted from their text.
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from traceaudit.units import NS_PER_US, us_text_to_ns

__all__ = ["MISSING", "Scalar", "text_to_ns", "to_ns"]

MISSING = np.iinfo(np.int64).min
"""Stands for a time that is absent or no number."""

Scalar = int | float | str | None

_EXACT_FLOAT_US = float(2**43)
_LARGEST_US = 9_000_000_000_000_000  # years 1970 to 2255; more does not fit in int64 ns
_FRACTION_DIGITS = 3


def to_ns(values: Sequence[Scalar], texts: Callable[[], Sequence[bytes]]) -> tuple[npt.NDArray[np.int64], bool]:
    """Convert microseconds to nanoseconds, and tell whether any is written with a decimal point.

    A value that is no number, or beyond the years that int64 holds, becomes `MISSING`.

    Parameters
    ----------
    values
        As decoded.
    texts
        Gives the JSON texts of the same values; called only when float64 cannot hold them.
    """
    numbers = _as_array(values)
    if numbers is None:
        return _each(values, texts), any(map(_is_decimal, values))
    if numbers.dtype.kind == "i":
        return np.where(np.abs(numbers) < _LARGEST_US, numbers * NS_PER_US, MISSING), False
    if not len(numbers):
        return np.empty(0, dtype=np.int64), False
    if np.abs(numbers).max() >= _EXACT_FLOAT_US:
        return np.fromiter((text_to_ns(text) for text in texts()), np.int64, len(values)), True
    whole = np.floor(numbers)
    # Each value less its own integer: what is left is exact, whatever the other values are.
    fraction = np.rint((numbers - whole) * NS_PER_US).astype(np.int64)
    return whole.astype(np.int64) * NS_PER_US + fraction, True


def text_to_ns(text: bytes) -> int:
    """Convert the JSON text of a number, quoted or not.

    Examples
    --------
    >>> text_to_ns(b"1767225600000000.123"), text_to_ns(b'"5.1"')
    (1767225600000000123, 5100)
    """
    return _text_to_ns(text.strip(b'" \t\r\n').decode("ascii", "replace"))


def _text_to_ns(text: str) -> int:
    whole, _, fraction = text.partition(".")
    if whole.isascii() and whole.isdigit() and len(whole) < len(str(_LARGEST_US)) + 1:
        if not fraction:
            return _checked(int(whole) * NS_PER_US)
        if len(fraction) <= _FRACTION_DIGITS and fraction.isascii() and fraction.isdigit():
            return _checked(int(whole) * NS_PER_US + int(fraction.ljust(_FRACTION_DIGITS, "0")))
    try:
        number = Decimal(text)
        # An exponent of a million would take minutes to become an integer.
        if not number.is_finite() or number.adjusted() > len(str(_LARGEST_US)):
            return MISSING
        return _checked(us_text_to_ns(text))
    except (ValueError, ArithmeticError):
        return MISSING


def _is_decimal(value: Scalar) -> bool:
    return isinstance(value, float) or (isinstance(value, str) and "." in value)


def _checked(ns: int) -> int:
    return ns if abs(ns) < _LARGEST_US * NS_PER_US else MISSING


def _as_array(values: Sequence[Scalar]) -> npt.NDArray[Any] | None:
    """Return the values as int64 or float64, None where some are texts, absent or too large."""
    try:
        numbers = np.array(values)
    except (ValueError, OverflowError):
        return None
    return numbers if numbers.dtype in (np.int64, np.float64) else None


def _each(values: Sequence[Scalar], texts: Callable[[], Sequence[bytes]]) -> npt.NDArray[np.int64]:
    written: Sequence[bytes] | None = None
    result = np.full(len(values), MISSING, dtype=np.int64)
    for index, value in enumerate(values):
        if isinstance(value, str):
            result[index] = _text_to_ns(value.strip())
        elif isinstance(value, float):
            if abs(value) < _EXACT_FLOAT_US:
                whole = math.floor(value)
                result[index] = whole * NS_PER_US + round((value - whole) * NS_PER_US)
            else:
                written = texts() if written is None else written
                result[index] = text_to_ns(written[index])
        elif value is not None:
            result[index] = _checked(value * NS_PER_US)
    return result
