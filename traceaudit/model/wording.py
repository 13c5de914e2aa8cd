"""Words for the messages of findings: counts and times inside sentences."""

from traceaudit.units import NS_PER_MS

__all__ = ["counted", "milliseconds"]


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "op"), counted(2, "op"), counted(3, "launch", "launches")
    ('1 op', '2 ops', '3 launches')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def milliseconds(time_ns: float) -> str:
    """Return a time in ms to the microsecond.

    Examples
    --------
    >>> milliseconds(1_234_567)
    '1.235 ms'
    """
    return f"{time_ns / NS_PER_MS:.3f} ms"
