"""From trace files to tables: streamed, typed, exact, with a finding for whatever is wrong."""

from typing import TYPE_CHECKING

from traceaudit.ingest.limits import Limits
from traceaudit.ingest.locate import locate, rank_in_name

if TYPE_CHECKING:
    from traceaudit.ingest.reader import read

__all__ = ["Limits", "locate", "rank_in_name", "read"]


def __getattr__(name: str) -> object:
    """Import the reader when it is first asked for; workers need only parts of it."""
    if name != "read":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from traceaudit.ingest.reader import read

    return read


def __dir__() -> list[str]:
    """List what can be imported, imported yet or not."""
    return __all__
