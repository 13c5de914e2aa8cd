"""What a command reads, so that nothing it writes takes the place of it."""

import glob
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from traceaudit.errors import TraceAuditError, UsageError

__all__ = ["Inputs", "refuse_same_output"]

STDIN = STDOUT = "-"
MODEL_PATTERNS = ("config.json", "hf_quant_config.json", "*.safetensors", "*.safetensors.index.json")
"""What is read of a model's folder or of a checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The paths that a command was given to read, as typed; None where not given.

    Attributes
    ----------
    traces
        Traces, folders of them, and patterns.
    logs
        Server logs, and folders of them.
    models
        Configurations or their folders, checkpoints, and names of packaged models.
    files
        Any other file.
    """

    traces: tuple[str | None, ...] = ()
    logs: tuple[str, ...] = ()
    models: tuple[str | None, ...] = ()
    files: tuple[str | None, ...] = ()

    def refuse(self, output: str | None, flag: str = "--output") -> None:
        """Refuse to write to a file that is read: the same file under any name, or a member of a folder.

        Raises
        ------
        UsageError
            If `output` is an input.
        """
        if output is None or output == STDOUT:
            return
        there = _file(output)
        if there is not None and any(os.path.samestat(there, one) for one in self._files()):
            raise UsageError("the output is an input", where=output, hint=f"name another file after {flag}")

    def _files(self) -> Iterator[os.stat_result]:
        """Walk over the files that are there; what is missing or no file is for its reader to complain about."""
        paths = [*filter(None, self.files), *_traces(self.traces), *_logs(self.logs), *_models(self.models)]
        yield from filter(None, map(_file, paths))


def refuse_same_output(first: str | None, second: str | None) -> None:
    """Refuse to write two things to one file.

    Raises
    ------
    UsageError
        If both paths are one file.
    """
    if first and second and first != STDOUT and os.path.realpath(first) == os.path.realpath(second):
        raise UsageError("two outputs are one file", where=first, hint="give each a name of its own")


def _file(path: str) -> os.stat_result | None:
    """Return what the system knows of a regular file, or of the one that standard input comes from."""
    try:
        found = os.fstat(sys.stdin.fileno()) if path == STDIN else Path(path).stat()
    except (OSError, ValueError, AttributeError):  # no such file, no name of one, or no standard input
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _traces(paths: tuple[str | None, ...]) -> Iterator[str]:
    from traceaudit.ingest import locate

    for path in filter(None, paths):
        expand = glob.has_magic(path) and not Path(path).exists()
        for match in glob.iglob(path, recursive=True) if expand else (path,):  # noqa: PTH207  (absolute patterns, too)
            try:
                yield from locate(match)
            except (TraceAuditError, OSError, ValueError):
                continue


def _logs(paths: tuple[str, ...]) -> Iterator[str]:
    from traceaudit.ingest.serverlog.files import expand

    for path in paths:
        try:
            yield from expand((path,))
        except TraceAuditError:
            continue


def _models(paths: tuple[str | None, ...]) -> Iterator[str]:
    for path in filter(None, paths):
        yield path
        folder = Path(path)
        try:
            for pattern in MODEL_PATTERNS if folder.is_dir() else MODEL_PATTERNS[1:2]:
                for file in (folder if folder.is_dir() else folder.parent).glob(pattern):
                    yield str(file)
        except (OSError, ValueError):
            continue
