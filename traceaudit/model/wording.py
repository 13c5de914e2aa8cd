"""Words for the messages of findings: counts and times inside sentences."""

from traceaudit.units import NS_PER_MS, NS_PER_US

__all__ = ["brief", "brief_range", "counted", "milliseconds"]


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


def brief(time_ns: float) -> str:
    """Return a time in ms or µs with three digits.

    Examples
    --------
    >>> brief(285_714_286), brief(2_966_000), brief(2_390), brief(1_234_500_000)
    ('286 ms', '2.97 ms', '2.39 µs', '1,234 ms')
    """
    time_ms = time_ns / NS_PER_MS
    if time_ms < 0.1:  # noqa: PLR2004
        return f"{time_ns / NS_PER_US:.3g} µs"
    return f"{time_ms:,.0f} ms" if time_ms >= 100 else f"{time_ms:.3g} ms"  # noqa: PLR2004


def brief_range(low_ns: float, high_ns: float) -> str:
    """Return a range of times, with one unit where both have the same.

    Examples
    --------
    >>> brief_range(7_380_000, 9_750_000), brief_range(90_000, 130_000)
    ('7.38 to 9.75 ms', '90 µs to 0.13 ms')
    """
    low, high = brief(low_ns), brief(high_ns)
    number, _, unit = low.rpartition(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"
