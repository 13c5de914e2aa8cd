"""From a path to trace files, and from a file's name to its rank."""

import re
from pathlib import Path

from traceaudit.errors import TraceError, TraceNotFoundError
from traceaudit.ingest.container import STDIN

__all__ = ["locate", "rank_in_name"]

_TRACE = re.compile(r"\.json(?:\.gz|\.gzip|\.zst|\.zstd|\.zip)?$", re.IGNORECASE)
_NO_TRACE = re.compile(r"(?:^|[._-])(?:config|manifest|metadata|summary|result|results|metrics)\.json$", re.IGNORECASE)
_API_SERVER = re.compile(r"\.async_llm\.", re.IGNORECASE)  # vLLM's front end: a CPU trace beside those of the ranks

_RANK_IN_NAME = (
    re.compile(r"(?:^|[^a-z])rank[-_.=]?(\d{1,9})", re.IGNORECASE),
    re.compile(r"(?:^|[-_.])TP[-_]?(\d{1,9})(?=[-_.]|$)"),
    re.compile(r"(?:^|[-_.])(?:gpu|worker)[-_]?(\d{1,9})(?=[-_.]|$)", re.IGNORECASE),
)
_PIPELINE_IN_NAME = re.compile(r"(?:^|[-_.])PP[-_]?(\d+)(?=[-_.]|$)")


def locate(path: str) -> tuple[str, ...]:
    """Return the trace files at `path`: the file itself, ``-``, or the traces in a folder, sorted by rank and name.

    Raises
    ------
    TraceNotFoundError
        If there is nothing at `path`, or a folder without traces.
    TraceError
        If the system does not let the place be read.
    """
    if path == STDIN:
        return (path,)
    if not path:
        raise TraceNotFoundError("the path is empty", hint="- is standard input, . the folder that you are in")
    place = Path(path)
    try:
        if not place.is_dir():
            if not place.exists():
                raise TraceNotFoundError("no such file", where=path, hint=_near(place))
            return (path,)
        names = sorted(entry.name for entry in place.iterdir() if entry.is_file() and _TRACE.search(entry.name))
    except OSError as exc:
        if isinstance(exc, TraceError):
            raise
        raise TraceError(f"cannot be read: {(exc.strerror or str(exc)).lower()}", where=path) from exc
    found = [name for name in names if not _NO_TRACE.search(name) and not _API_SERVER.search(name)]
    if not found:
        raise TraceNotFoundError(
            "no trace in the folder", where=path, hint="a trace is named like *.json, *.json.gz or *.json.zst"
        )
    found.sort(key=lambda name: (_or_last(rank_in_name(name)), name))
    return tuple(str(place / name) for name in found)


def rank_in_name(path: str) -> int | None:
    """Return the rank that a file's name tells, as engines and launchers write it, or None.

    Examples
    --------
    >>> rank_in_name("dp0_pp0_tp1_dcp0_ep1_rank3.1767225600.pt.trace.json.gz")
    3
    >>> rank_in_name("1767225600.5-TP-2.trace.json.gz"), rank_in_name("host_4711.json")
    (2, None)
    """
    name = Path(path).name
    pipeline = _PIPELINE_IN_NAME.search(name)
    for pattern in _RANK_IN_NAME:
        if match := pattern.search(name):
            # With pipeline stages the tensor rank alone names several files; their number is not in the name.
            if pattern is _RANK_IN_NAME[1] and pipeline and int(pipeline.group(1)):
                return None
            return int(match.group(1))
    return None


def _or_last(rank: int | None) -> int:
    return rank if rank is not None else 1 << 62


def _near(place: Path) -> str:
    from difflib import get_close_matches

    if not place.parent.is_dir():
        return f"there is no folder {str(place.parent)!r} either"
    try:
        names = [entry.name for entry in place.parent.iterdir()]
    except OSError:  # a folder that may be entered and not listed
        names = []
    close = get_close_matches(place.name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else "check the path"
