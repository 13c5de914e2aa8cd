"""Reads which tensors a checkpoint holds, from the headers of its safetensors files; no weight is read.

A file begins with the length of its header, 8 bytes little-endian, and the header, a JSON object of tensors with
``dtype``, ``shape`` and ``data_offsets`` [huggingface/safetensors, README].
"""

import json
from collections.abc import Iterator
from pathlib import Path

from traceaudit.errors import ConfigError
from traceaudit.ingest.jsonfaults import problem_of
from traceaudit.model.llm.checkpoint import StoredTensor

__all__ = ["read_tensors"]

LENGTH_BYTES = 8
MOST_HEADER_BYTES = 100_000_000  # the format's own limit
INDEX = "model.safetensors.index.json"


def read_tensors(path: str) -> tuple[StoredTensor, ...]:
    """Return every tensor of a checkpoint's folder, or of one file.

    Where the folder has an index, only the files that it lists are read: others hold the same weights again.

    Raises
    ------
    ConfigError
        If there are no such files, one that the index lists is missing, or one is damaged.
    """
    return tuple(tensor for file in _files(Path(path)) for tensor in _tensors(file))


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    index = path / INDEX
    if index.is_file():
        names = _listed(index)
        missing = [name for name in names if not (path / name).is_file()]
        if missing:
            raise ConfigError(
                f"{len(missing)} of {len(names)} files of the checkpoint are missing, {missing[0]!r} first",
                where=str(index),
                hint="the headers of all shards are needed; the weights behind them are not",
            )
        return [path / name for name in names]
    found = sorted(path.glob("model*.safetensors")) or sorted(path.glob("*.safetensors"))
    if not found:
        raise ConfigError("no safetensors files", where=str(path), hint="--checkpoint takes the folder that holds them")
    return found


def _listed(index: Path) -> list[str]:
    try:
        mapping = json.loads(index.read_bytes())["weight_map"]
        names = sorted({str(name) for name in mapping.values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ConfigError("the index of the checkpoint has no weight_map", where=str(index)) from exc
    if any(Path(name).name != name for name in names):
        raise ConfigError("the index of the checkpoint names files outside its folder", where=str(index))
    return names


def _tensors(file: Path) -> Iterator[StoredTensor]:
    header = _header(file)
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            start, end = (int(offset) for offset in entry["data_offsets"])
            shape = tuple(int(size) for size in entry["shape"])
            dtype = str(entry["dtype"])
        except (KeyError, TypeError, ValueError) as exc:
            raise ConfigError(f"tensor {name!r} has no dtype, shape or offsets", where=str(file)) from exc
        if not 0 <= start <= end:
            raise ConfigError(f"tensor {name!r} ends before it starts", where=str(file))
        yield StoredTensor(name, dtype, shape, end - start)


def _header(file: Path) -> dict[str, dict[str, list[int]]]:
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(LENGTH_BYTES), "little")
            if not 0 < length <= MOST_HEADER_BYTES:
                raise ConfigError("the file does not begin like safetensors", where=str(file))
            text = stream.read(length)
    except OSError as exc:
        raise ConfigError(f"cannot read the checkpoint: {exc.strerror or exc}", where=str(file)) from exc
    if len(text) < length:
        raise ConfigError("the header ends early", where=str(file))
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"the header is no JSON: {problem_of(exc)}", where=str(file)) from exc
    if not isinstance(header, dict):
        raise ConfigError("the header is no JSON object", where=str(file))
    return header
