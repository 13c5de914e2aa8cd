"""From trace files to tables: streamed, typed, exact, with a finding for whatever is wrong."""

from traceaudit.ingest.limits import Limits
from traceaudit.ingest.locate import locate
from traceaudit.ingest.reader import read

__all__ = ["Limits", "locate", "read"]
