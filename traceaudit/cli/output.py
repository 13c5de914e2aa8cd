"""From a result to a report on stdout or in a file, and to the exit code."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Self, TextIO

import typer

from traceaudit.cli.options import Format
from traceaudit.cli.progress import Report, progress_line
from traceaudit.errors import ExitCode, TraceAuditError, UsageError
from traceaudit.model.findings import Verdict
from traceaudit.report import Page, Result, formats_of, plain, render

__all__ = [
    "Output",
    "deliver",
    "format_by_ending",
    "page_of",
    "refuse_unwritable",
    "silence_stdout",
    "write_file",
    "write_stderr",
]

STDOUT = "-"
ENDINGS = {".json": Format.JSON, ".md": Format.MARKDOWN, ".markdown": Format.MARKDOWN, ".csv": Format.CSV}
TEXT_ENDINGS = ("", ".txt", ".log")
"""Endings of files that take the table."""
WIDEST, NARROWEST, DEFAULT_WIDTH = 120, 72, 100
ASCII: dict[int, str] = dict(zip(map(ord, "█▉▊▋▌▍▎▏░╌◂µ…—"), "########:-<u~-", strict=True)) | {ord("±"): "+-"}
"""Stand-ins for output that knows ASCII only."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where a report goes and in which form."""

    command: str
    format: Format
    path: str | None
    strict: bool
    quiet: bool
    full_names: bool = False

    @classmethod
    def of(
        cls,
        command: str,
        format_: StrEnum | None,
        path: str | None,
        *,
        strict: bool,
        quiet: bool,
        full_names: bool = False,
    ) -> Self:
        """Settle the format before any work is done.

        Raises
        ------
        UsageError
            If the command has no report of that format, or the ending of the file says none.
        """
        chosen = Format(format_by_ending(path, ENDINGS) if format_ is None else format_.value)
        known = formats_of(command)
        if chosen not in known:
            raise UsageError(f"{command} has no {chosen} report", hint=f"take one of {', '.join(known)}")
        return cls(command, chosen, None if path == STDOUT else path, strict, quiet, full_names)


def format_by_ending(path: str | None, endings: Mapping[str, StrEnum]) -> str:
    """Return the format that the ending of a file stands for: the table's for text, and without a file.

    Raises
    ------
    UsageError
        If the ending says nothing, or promises what no report is, such as a compressed file.
    """
    ending = "" if path is None else Path(path).suffix.lower()
    if ending in TEXT_ENDINGS:
        return Format.TABLE.value
    if ending not in endings:
        raise UsageError(
            f"cannot tell the format from the ending {ending!r}",
            where=path,
            hint="--format says it; .txt, .log or no ending takes the table",
        )
    return str(endings[ending].value)


def deliver(analyse: Callable[[Report | None], Result], output: Output) -> None:
    """Run the analysis, write its report, and leave with the exit code that it leads to."""
    if output.path is None and sys.stdout is None:
        raise TraceAuditError("cannot write the report: standard output is closed", hint="take -o FILE")
    with progress_line(quiet=output.quiet) as progress:
        result = analyse(progress)
    page = replace(page_of(sys.stdout, output.path), full_names=output.full_names)
    text = render(output.command, output.format, result, page)
    if output.path is None:
        _write_stdout(text)
    else:
        write_file(output.path, text)
    if output.strict and result.completeness.verdict is Verdict.UNRELIABLE:
        if not output.quiet:
            write_stderr(["traceaudit: the trace is unreliable, and --strict asks for more"])
        raise typer.Exit(int(ExitCode.INCONCLUSIVE))


def page_of(stream: TextIO, path: str | None) -> Page:
    """Decide on width and colour: a terminal's own, without colour and 100 columns wide elsewhere.

    ``COLUMNS`` sets the width; ``NO_COLOR`` and ``TERM=dumb`` turn colour off.
    """
    terminal = path is None and stream.isatty()
    width = (
        shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
        if terminal or os.environ.get("COLUMNS")
        else DEFAULT_WIDTH
    )
    color = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Page(width=min(max(width, NARROWEST), WIDEST), color=color)


def write_file(path: str, text: str) -> None:
    """Write a report whole or not at all: into a neighbour first, which then takes the file's place.

    Raises
    ------
    TraceAuditError
        If the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    data = text.encode("utf-8", "backslashreplace")
    try:
        if target.exists() and not target.is_file():
            if target.is_dir():
                raise IsADirectoryError(None, "it is a folder", path)
            target.write_bytes(data)  # a device or a pipe cannot be replaced
            return
        _replace(target, data)
    except OSError as exc:
        raise TraceAuditError(
            f"cannot write the report: {exc.strerror or exc}",
            where=plain(path),
            hint="check the folder and its permissions",
        ) from exc


def refuse_unwritable(path: str | None, flag: str) -> None:
    """Refuse a file that cannot be written for want of a name or a folder, before long work is done for it.

    Raises
    ------
    UsageError
        If the path is empty, a folder, or in a folder that does not exist.
    """
    if path is None or path == STDOUT:
        return
    if not path:
        raise UsageError(f"{flag} is empty", hint=f"write {flag} FILE")
    target = Path(os.path.realpath(path))
    if target.is_dir() or not target.parent.is_dir():
        reason = "it is a folder" if target.is_dir() else "no such folder"
        raise UsageError(f"{flag} cannot be written: {reason}", where=plain(path), hint="check the path")


def write_stderr(lines: list[str]) -> None:
    """Write messages to stderr, line by line, with nothing in them that a terminal would obey."""
    try:
        _put(sys.stderr, "".join(f"{plain(line)}\n" for line in lines))
    except OSError:
        return  # nobody listens


def _replace(target: Path, data: bytes) -> None:
    neighbour = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with neighbour.open("xb") as file:
            file.write(data)
        if target.exists():
            shutil.copymode(target, neighbour)
        neighbour.replace(target)
    except BaseException:
        neighbour.unlink(missing_ok=True)
        raise


def _write_stdout(text: str) -> None:
    try:
        _put(sys.stdout, text)
    except BrokenPipeError:
        # The reader has seen enough.
        silence_stdout()
    except OSError as exc:
        silence_stdout()
        raise TraceAuditError(
            f"cannot write the report: {exc.strerror or exc}", hint="see where standard output goes, or take -o FILE"
        ) from exc


def silence_stdout() -> None:
    """Send to nowhere what is left of stdout, so that its last flush cannot fail."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _put(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(ASCII).encode(encoding, "backslashreplace").decode(encoding)
    stream.write(text)
    stream.flush()
