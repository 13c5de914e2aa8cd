"""Numbers to text, and names from a trace to text that nothing obeys."""

import unicodedata
from dataclasses import dataclass

from traceaudit.units import NS_PER_MS, NS_PER_S, NS_PER_US

__all__ = [
    "DOUBT",
    "Scale",
    "bytes_text",
    "count_text",
    "duration",
    "factor",
    "percent",
    "plain",
    "scale_for",
    "shorten",
]

DOUBT = "?"
_UNITS = ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs"), (1, "ns"))
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Scale:
    """One unit and number of decimals for a whole column of times."""

    unit: str
    unit_ns: int
    decimals: int

    def text(self, time_ns: float) -> str:
        """Write a time without its unit; what is not 0 does not read as 0.

        Examples
        --------
        >>> Scale("ms", 1_000_000, 3).text(-1_234_567), Scale("ms", 1_000_000, 3).text(499)
        ('-1.235', '<0.001')
        """
        text = f"{time_ns / self.unit_ns:,.{self.decimals}f}"
        if time_ns and not text.strip("-0."):
            return f"{'>-' if time_ns < 0 else '<'}{10**-self.decimals:.{self.decimals}f}"
        return text


def scale_for(largest_ns: float) -> Scale:
    """Choose the unit in which a column with this largest time reads best.

    Examples
    --------
    >>> scale_for(3_300_000)
    Scale(unit='ms', unit_ns=1000000, decimals=3)
    """
    largest_ns = abs(largest_ns)
    if largest_ns >= 100 * NS_PER_S:
        return Scale("s", NS_PER_S, 3)
    if largest_ns >= 100 * NS_PER_MS:
        return Scale("ms", NS_PER_MS, 2)
    if largest_ns >= NS_PER_MS:
        return Scale("ms", NS_PER_MS, 3)
    return Scale("µs", NS_PER_US, 3 if largest_ns < 10 * NS_PER_US else 1)


def duration(time_ns: float) -> str:
    """Write a time for prose, with three digits and its unit.

    Examples
    --------
    >>> duration(11_043_000), duration(570_000_000), duration(0), duration(-850), duration(999_999)
    ('11.0 ms', '570 ms', '0 ns', '-850 ns', '1.00 ms')
    """
    sign, size = ("-" if time_ns < 0 else ""), abs(time_ns)
    for unit_ns, unit in _UNITS:
        value = size / unit_ns
        if unit_ns == 1:
            return f"{sign}{value:.0f} ns"
        if value >= 0.9995:  # what three digits would round up to the unit  # noqa: PLR2004
            return f"{sign}{_three_digits(value)} {unit}"
    raise AssertionError("a nanosecond is the last unit")


def _three_digits(value: float) -> str:
    if value >= 99.95:  # noqa: PLR2004
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"  # noqa: PLR2004


def percent(part: float, whole: float) -> str:
    """Write a share of a whole, ``-`` if there is no whole.

    Examples
    --------
    >>> percent(1_020, 3_300), percent(1, 10_000), percent(0, 5), percent(1, 0)
    ('30.9%', '<0.1%', '0.0%', '-')
    """
    if not whole:
        return "-"
    share = 100 * part / whole
    return "<0.1%" if 0 < share < 0.05 else f"{share:.1f}%"  # noqa: PLR2004


def factor(ratio: float) -> str:
    """Write a ratio.

    Examples
    --------
    >>> factor(3.6364), factor(1.024), factor(57.2)
    ('3.6x', '1.02x', '57x')
    """
    if ratio >= 10:  # noqa: PLR2004
        return f"{ratio:,.0f}x"
    return f"{ratio:.1f}x" if ratio >= 1.5 else f"{ratio:.2f}x"  # noqa: PLR2004


def count_text(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun.

    Examples
    --------
    >>> count_text(1, "step"), count_text(12_000, "launch", "launches")
    ('1 step', '12,000 launches')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def bytes_text(size: int) -> str:
    """Write a number of bytes; 1 MB is 1e6 bytes.

    Examples
    --------
    >>> bytes_text(512), bytes_text(1_234_567), bytes_text(314_000_000)
    ('512 B', '1.23 MB', '314 MB')
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{_three_digits(size / unit)} {name}"
    return f"{size} B"


def plain(text: str) -> str:
    r"""Return text in which every character shows and none is obeyed: control, format and unassigned ones are escaped.

    Escape sequences of terminals, line breaks, and marks that turn the direction of writing all become visible.

    Examples
    --------
    >>> plain("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN:
        return char
    return char.encode("unicode_escape").decode("ascii")


def shorten(text: str, width: int) -> str:
    """Cut the middle out of a name that is too long; both ends of a kernel's name tell something.

    Examples
    --------
    >>> shorten("void cutlass::Kernel2<cutlass_80>(Params)", 20)
    'void cutlass…Params)'
    """
    if len(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    tail = (width - 1) * 2 // 5
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"
