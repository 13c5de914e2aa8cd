"""Which files belong together: rotated parts of one log, logs of several processes, folders."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from traceaudit.errors import TraceAuditError, TraceNotFoundError
from traceaudit.ingest.serverlog.collect import Collected
from traceaudit.model.serverlines import Sample, ServerSource

__all__ = ["FileContent", "expand", "joined"]

STDIN = "-"
COMPRESSED = re.compile(r"\.(?:gz|zst|zstd|bz2|xz)$", re.IGNORECASE)
ROTATION = re.compile(r"(?:\.(?P<number>\d{1,4})|[.-]\d{8}(?:[-T_]?\d{2,6})?)$")
FILES_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class FileContent:
    """One file as it was read."""

    source: ServerSource
    content: Collected

    @property
    def stem(self) -> str:
        """The name without its rotation and compression suffixes: parts of one log share it."""
        return ROTATION.sub("", COMPRESSED.sub("", Path(self.source.path).name))

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last time in ns, None without clocks."""
        times = [sample.time_ns for sample in self.content.samples if sample.time_ns is not None]
        return (min(times), max(times)) if times else None


def expand(paths: Sequence[str]) -> tuple[str, ...]:
    """Replace folders by the files in them.

    Raises
    ------
    TraceAuditError
        If nothing lies at a path, or a folder has no files.
    """
    found: list[str] = []
    for path in paths:
        if path == STDIN:
            found.append(path)
            continue
        if not path:
            raise TraceNotFoundError("the path of the log is empty", hint="- is standard input")
        try:
            if not Path(path).is_dir():
                found.append(path)
                continue
            files = [item for item in Path(path).iterdir() if item.is_file()]
        except (OSError, ValueError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
            raise TraceNotFoundError(f"cannot be read: {reason.lower()}", where=path) from exc
        inside = sorted(str(item) for item in files if not item.name.startswith("."))
        if not 0 < len(inside) <= FILES_LIMIT:
            raise TraceAuditError(
                f"the folder has {len(inside):,} files",
                where=path,
                hint="name the log files, or a folder with them only",
            )
        found += inside
    return tuple(dict.fromkeys(found))


def joined(files: Sequence[FileContent]) -> tuple[tuple[FileContent, ...], tuple[str, ...]]:
    """Order the files by time and name their processes apart where they ran at once.

    Parts of one log (``server.log.2.gz``, ``server.log.1``, ``server.log``) follow each other. Files of other names
    are logs of other processes if their times overlap, and successive parts of one log if not.
    """
    ordered = sorted(files, key=_place)
    stems: dict[str, list[FileContent]] = {}
    for file in ordered:
        stems.setdefault(file.stem, []).append(file)
    if len(stems) == 1 or not _overlap(list(stems.values())):
        return tuple(ordered), ()
    note = f"{len(stems)} logs overlap in time: taken as separate processes"
    return tuple(_renamed(file) for file in ordered), (note,)


def _place(file: FileContent) -> tuple[bool, int, int]:
    number = match["number"] if (match := ROTATION.search(COMPRESSED.sub("", file.source.path))) else None
    span = file.span
    return span is None, span[0] if span else 0, -int(number or 0)


def _overlap(groups: list[list[FileContent]]) -> bool:
    spans = []
    for group in groups:
        known = [file.span for file in group if file.span is not None]
        if known:
            spans.append((min(start for start, _ in known), max(end for _, end in known)))
    spans.sort()
    return any(later[0] < earlier[1] for earlier, later in pairwise(spans))


def _renamed(file: FileContent) -> FileContent:
    def name(process: str) -> str:
        return f"{file.stem} {process}".strip()

    content = file.content
    samples: list[Sample] = [replace(sample, process=name(sample.process)) for sample in content.samples]
    settings = [replace(setting, process=name(setting.process)) for setting in content.settings]
    events = [replace(event, process=name(event.process)) for event in content.events]
    return FileContent(file.source, replace(content, samples=samples, settings=settings, events=events))
