"""Reads what a machine reaches: the file that ``traceaudit calibrate`` writes, or an architecture file of TraceLens.

.. code-block:: toml

    [machine]
    name = "NVIDIA H200"
    measured = "2026-11-29, torch 2.11.0, 15 repeats"

    [memory]                 # GB/s, 1 GB = 1e9 bytes
    read_gbps = 4380.1
    copy_gbps = 4251.9
    triad_gbps = 4433.0

    [tflops]                 # dense
    bf16 = 742.3

TraceLens files are JSON with ``mem_bw_gbps`` and ``max_achievable_tflops``, whose keys are ``matrix_`` or ``vector_``
and a data type.
"""

import json
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path

from traceaudit.errors import ConfigError
from traceaudit.ingest.jsonfaults import problem_of
from traceaudit.ingest.tomllines import key_lines
from traceaudit.model.hardware import DTYPES
from traceaudit.model.machine import Machine

__all__ = ["read_machine"]

MOST_BYTES = 1 << 20
MEMORY = {"read_gbps": "read", "copy_gbps": "copy", "triad_gbps": "triad", "gbps": "any"}
MATRIX = "matrix_"


def read_machine(path: str) -> Machine:
    """Return what the file says of a machine.

    Raises
    ------
    ConfigError
        If it cannot be read, or holds no bandwidth; the message names the line where there is one.
    """
    text = _text(path)
    name = path.rsplit("/", 1)[-1]
    if text.lstrip().startswith("{"):
        return _tracelens(text, path, name)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"no TOML: {exc}", where=path) from exc
    lines = {key: number for key, number in key_lines(text) if len(key) > 1}

    def place(*key: str) -> str:
        return f"{path}, line {lines[key]}" if key in lines else path

    strange = sorted(set(content) - {"machine", "memory", "tflops"})
    if strange:
        raise ConfigError(f"unknown table {strange[0]!r}", where=path, hint="it has [machine], [memory], [tflops]")
    memory = _table(content, "memory", path)
    gbps = {_access(key, place("memory", key)): _rate(value, place("memory", key)) for key, value in memory.items()}
    if not gbps:
        raise ConfigError("no bandwidth in the file", where=path, hint=f"[memory] has one of {', '.join(MEMORY)}")
    tflops = {
        _dtype(key, place("tflops", key)): _rate(value, place("tflops", key))
        for key, value in _table(content, "tflops", path).items()
    }
    about = _table(content, "machine", path)
    measured = about.get("measured")
    source = f"machine file {name}" + (f", measured {measured}" if isinstance(measured, str) else "")
    return Machine(str(about.get("name", name)), gbps, tflops, source)


def _tracelens(text: str, path: str, name: str) -> Machine:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"no JSON: {problem_of(exc)}", where=path) from exc
    if not isinstance(content, dict) or "mem_bw_gbps" not in content:
        raise ConfigError("no mem_bw_gbps in the file", where=path, hint="TraceLens architecture files have one")
    rates = content.get("max_achievable_tflops", {})
    tflops = {
        key.removeprefix(MATRIX): _rate(value, path)
        for key, value in (rates.items() if isinstance(rates, dict) else ())
        if key.startswith(MATRIX) and key.removeprefix(MATRIX) in DTYPES
    }
    return Machine(
        str(content.get("name", name)),
        {"any": _rate(content["mem_bw_gbps"], path)},
        tflops,
        f"architecture file {name}",
    )


def _text(path: str) -> str:
    file = Path(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise ConfigError(f"more than {MOST_BYTES >> 20} MiB are no machine file", where=path)
        return file.read_text("utf-8")
    except OSError as exc:
        raise ConfigError(f"cannot read the machine file: {exc.strerror or exc}", where=path) from exc
    except UnicodeDecodeError as exc:
        raise ConfigError("the machine file is no UTF-8 text", where=path) from exc


def _table(content: Mapping[str, object], name: str, path: str) -> Mapping[str, object]:
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{name} is no table", where=path)
    return table


def _access(key: str, where: str) -> str:
    if key not in MEMORY:
        raise ConfigError(f"unknown key {key!r}", where=where, hint=f"take one of {', '.join(MEMORY)}")
    return MEMORY[key]


def _dtype(key: str, where: str) -> str:
    if key not in DTYPES:
        raise ConfigError(f"unknown data type {key!r}", where=where, hint=f"take one of {', '.join(DTYPES)}")
    return key


def _rate(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise ConfigError(f"no positive rate: {value!r}", where=where)
    return float(value)
