"""Baselines: the summaries of a side's runs as a small JSON file, so that traces need not be kept."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from traceaudit.errors import ConfigError
from traceaudit.model.budget import ACCOUNTS
from traceaudit.model.runs import RunSummary, Side

__all__ = ["FORMAT", "baseline_text", "read_baseline"]

FORMAT = "traceaudit-baseline"
VERSION = 1
MAX_BYTES = 256 << 20


class _Head(msgspec.Struct):
    format: str
    version: int


class _Document(msgspec.Struct):
    format: str
    version: int
    name: str
    runs: tuple[RunSummary, ...]


def baseline_text(side: Side, name: str) -> str:
    """Write a side as a baseline; of paths it keeps the files' names only."""
    runs = tuple(replace(run, source=_named(run.source)) for run in side.runs)
    document = _Document(FORMAT, VERSION, _named(name), runs)
    return msgspec.json.format(msgspec.json.encode(document), indent=0).decode() + "\n"


def _named(path: str) -> str:
    """Return a file's name as text that JSON can hold."""
    return Path(path).name.encode("utf-8", "backslashreplace").decode("utf-8")


def read_baseline(path: str) -> Side:
    """Read a baseline.

    Raises
    ------
    ConfigError
        If the file cannot be read or is no baseline.
    """
    hint = "traceaudit check --save-baseline NAME writes one"
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as exc:
        raise ConfigError(f"cannot read the baseline: {exc.strerror or exc}", where=path, hint=hint) from exc
    try:
        head = msgspec.json.decode(data, type=_Head)
        if head.format != FORMAT:
            raise ConfigError("this is no baseline", where=path, hint=hint)
        if head.version != VERSION:
            raise ConfigError(
                f"the baseline has version {head.version}, this program reads {VERSION}", where=path, hint=hint
            )
        document = msgspec.json.decode(data, type=_Document)
    except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
        raise ConfigError(f"this is no baseline: {str(exc)[:1].lower()}{str(exc)[1:]}", where=path, hint=hint) from exc
    problem = next(_problems(document.runs), None)
    if problem is not None:
        raise ConfigError(f"the baseline contradicts itself: {problem}", where=path, hint=hint)
    return Side.of(document.name, document.runs)


def _problems(runs: tuple[RunSummary, ...]) -> Iterator[str]:
    """Say what a program that wrote the file could not have written."""
    if not runs:
        yield "it has no runs"
    for number, run in enumerate(runs):
        lengths = {
            len(run.window_ns),
            len(run.busy_ns),
            *(len(values) for values in run.accounts.values()),
            *(len(kernel.step_ns) for kernel in run.kernels),
            *(len(kernel.step_launches) for kernel in run.kernels),
        }
        if lengths != {run.steps} or not run.steps:
            yield f"run {number} does not have the same steps throughout"
        if any(not 0 <= row < len(run.kernels) for row in run.sequence):
            yield f"the sequence of run {number} names a kernel that is not there"
        if not all(math.isfinite(value) and value >= 0 for kernel in run.kernels for value in kernel.step_ns):
            yield f"run {number} has times below 0"
        missing = sorted(set(ACCOUNTS) - set(run.accounts))
        if missing:
            yield f"run {number} lacks the account {missing[0]}"
