"""The check behind every conservation law, and named parts of a whole."""

from dataclasses import dataclass, fields
from typing import Self

from traceaudit.errors import InvariantError

__all__ = [
    "Sums",
    "conserve",
]


@dataclass(frozen=True, slots=True)
class Sums:
    """Named integer parts of a whole."""

    def total(self) -> int:
        """Return the sum of the parts."""
        return sum(getattr(self, item.name) for item in fields(self))

    def plus(self, other: Self) -> Self:
        """Return the sum part by part."""
        return type(self)(**{item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(self)})


def conserve(what: str, parts: int, whole: int) -> None:
    """Raise `InvariantError` unless the parts sum to the whole (both in ns)."""
    if parts != whole:
        raise InvariantError(
            f"{what}: parts sum to {parts} ns, the whole is {whole} ns",
            hint="this is a bug of traceaudit; please report it with the trace",
        )
