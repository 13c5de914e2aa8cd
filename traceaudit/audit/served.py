"""`serverlog`: what batch a server really ran."""

from collections.abc import Sequence

from traceaudit.analyses.serverlog.analysis import serverlog as judge
from traceaudit.audit.reading import Progress
from traceaudit.ingest.serverlog.reader import read_server_log
from traceaudit.model.results.serverlog import ServerReport
from traceaudit.model.serverlines import ServerLogOptions

__all__ = ["serverlog"]


def serverlog(paths: Sequence[str], options: ServerLogOptions, *, progress: Progress | None = None) -> ServerReport:
    """Say what batch a server really ran, from its logs or metrics.

    Raises
    ------
    TraceAuditError
        If a path holds no usable log, or `options` mean nothing.
    """
    return judge(read_server_log(paths, progress=progress), options)
