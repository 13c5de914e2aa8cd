"""How much a defect of a trace matters: by the share of time at stake, with one pair of thresholds for all findings."""

from collections.abc import Iterable
from typing import Final

from traceaudit.model.findings import Severity
from traceaudit.units import NS_PER_MS

__all__ = ["ERROR_SHARE", "MAX_EXAMPLES", "WARNING_SHARE", "by_share", "examples_of", "in_ms", "percent"]

WARNING_SHARE: Final = 0.01
"""Step times of one run repeat within about 1 %; a smaller defect cannot be told from that."""

ERROR_SHARE: Final = 0.10
"""Changes that people act on are about 10 %; a defect of that size can make or hide one."""

MAX_EXAMPLES: Final = 3


def by_share(part: float, whole: float, *, at_least: Severity = Severity.INFO) -> Severity:
    """Return the severity of a defect that concerns `part` of `whole`.

    Examples
    --------
    >>> by_share(1, 1000).value, by_share(5, 100).value, by_share(1, 2).value
    ('info', 'warning', 'error')
    """
    share = part / whole if whole > 0 else float(part > 0)
    if share >= ERROR_SHARE:
        return Severity.ERROR
    return Severity.WARNING if share >= WARNING_SHARE or at_least is not Severity.INFO else Severity.INFO


def examples_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the first few texts."""
    return tuple(text for text, _ in zip(texts, range(MAX_EXAMPLES), strict=False))


def in_ms(ns: float) -> str:
    """Return a time in ms, with as many digits as help.

    Examples
    --------
    >>> in_ms(1_234_567), in_ms(250_500_000)
    ('1.235 ms', '250.5 ms')
    """
    ms = ns / NS_PER_MS
    return f"{ms:.1f} ms" if abs(ms) >= 100 else f"{ms:.3f} ms"  # noqa: PLR2004  (three to four digits)


def percent(part: float, whole: float) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(1, 8)
    '12.5 %'
    """
    return f"{100 * part / whole if whole else 0:.1f} %"
