"""Reads the file of ``kernels --spec``: what one launch of a kernel moves and computes.

.. code-block:: toml

    [[kernels]]
    match = '^fused_moe_kernel$'     # regular expression, looked for in the kernel's name
    bytes = 7_222_591_488            # of one launch: a number, a text with a unit, or an expression
    flop = "2 * batch * 8 * 3 * config.hidden_size * config.moe_intermediate_size"
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from traceaudit.errors import ConfigError
from traceaudit.ingest.tomllines import KeyPath, key_lines
from traceaudit.model.kernelspec import Expression, KernelSpec, expression

__all__ = ["read_spec"]

MOST_BYTES = 4 << 20
TABLE = "kernels"
KEYS = ("match", "bytes", "flop", "note")
BYTE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
FLOP_UNITS = {"FLOP": 1, "kFLOP": 10**3, "MFLOP": 10**6, "GFLOP": 10**9, "TFLOP": 10**12}
_QUANTITY = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]+)\s*")


def read_spec(path: str) -> tuple[KernelSpec, ...]:
    """Return the entries of a file, in its order; the first that matches a kernel decides.

    Raises
    ------
    ConfigError
        If the file cannot be read, or an entry is wrong; the message names the line.
    """
    text = _text(path)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"no TOML: {exc}", where=path) from exc
    lines = dict(reversed(list(key_lines(text))))
    strange = sorted(set(content) - {TABLE})
    if strange:
        raise ConfigError(
            f"unknown table or key {strange[0]!r}", where=_where(path, lines, (strange[0],)), hint="write [[kernels]]"
        )
    entries = content.get(TABLE)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(
            "no [[kernels]] in the file", where=path, hint="each entry has match and bytes, and flop if you like"
        )
    return tuple(_entry(entry, path, lines, index) for index, entry in enumerate(entries))


def _text(path: str) -> str:
    file = Path(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise ConfigError(f"more than {MOST_BYTES >> 20} MiB are no file of kernels", where=path)
        return file.read_text("utf-8")
    except OSError as exc:
        raise ConfigError(f"cannot read the file: {exc.strerror or exc}", where=path) from exc
    except UnicodeDecodeError as exc:
        raise ConfigError("the file is no UTF-8 text", where=path) from exc


def _where(path: str, lines: Mapping[KeyPath, int], key: KeyPath) -> str:
    line = lines.get(key, lines.get(key[:-1]))
    return path if line is None else f"{path}, line {line}"


def _entry(entry: Mapping[str, object], path: str, lines: Mapping[KeyPath, int], index: int) -> KernelSpec:
    def place(*key: str) -> str:
        return _where(path, lines, (TABLE, index, *key))

    strange = [key for key in entry if key not in KEYS]
    if strange:
        raise ConfigError(
            f"unknown key {strange[0]!r}", where=place(strange[0]), hint=f"an entry has {', '.join(KEYS)}"
        )
    moved = _amount(entry.get("bytes"), BYTE_UNITS, place("bytes"))
    if moved is None:
        raise ConfigError("no bytes", where=place(), hint="say what one launch moves")
    return KernelSpec(
        match=_pattern(entry.get("match"), place("match")),
        bytes=moved,
        flop=_amount(entry.get("flop"), FLOP_UNITS, place("flop")),
        where=place(),
    )


def _pattern(value: object, where: str) -> re.Pattern[str]:
    if not isinstance(value, str) or not value:
        raise ConfigError("no match: a regular expression for the kernel's name", where=where)
    try:
        return re.compile(value)
    except re.error as exc:
        raise ConfigError(f"match is no regular expression: {exc}", where=where) from exc


def _amount(value: object, units: Mapping[str, int], where: str) -> Expression | None:
    """Read a number, a number with a unit, or an expression."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value < float("inf"):
            raise ConfigError(f"not a number of 0 or more: {value}", where=where)
        return expression(repr(value), where)
    if not isinstance(value, str):
        raise ConfigError(f"neither a number nor an expression: {value!r}", where=where)
    found = _QUANTITY.fullmatch(value)
    if found is None:
        return expression(value, where)
    if found[2] not in units:
        raise ConfigError(f"unit {found[2]!r} does not fit here", where=where, hint=f"take one of {', '.join(units)}")
    return expression(f"{found[1]} * {units[found[2]]}", where)
