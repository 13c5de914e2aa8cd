"""Ranks of the processes in a file: one for a usual trace, several where an engine merged the traces of its ranks."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["process_ranks", "untagged"]

_TAGGED = re.compile(r"\[((?:[A-Z]{2}-?\d{1,6})(?:-[A-Z]{2}-?\d{1,6})*)\]\s*(.*)$", re.DOTALL)
_MAX_RANK = 1 << 31
_DIMENSION = re.compile(r"([A-Z]{2})-?(\d{1,6})")


def process_ranks(processes: Sequence[object], default: int) -> npt.NDArray[np.int32]:
    """Return the rank of each process id, `default` for those without a tag like ``[TP00-DP01]``.

    Tensor ranks count within a pipeline stage, and a data-parallel rank tells ranks apart only where those two do not
    (with attention parallel over data, it is a part of the tensor rank).

    Examples
    --------
    >>> process_ranks(["[TP00] 0", "[TP01] 0", "[TP01] 812"], 0).tolist()
    [0, 1, 1]
    >>> process_ranks(["[TP00-PP00] 1", "[TP01-PP00] 1", "[TP00-PP01] 1"], 0).tolist()
    [0, 1, 2]
    """
    tags = {text: _dimensions(text) for text in map(_tag, processes) if text is not None}
    ranks = _number(tags)
    found = [_tag(process) for process in processes]
    return np.array([default if text is None else ranks[text] for text in found], dtype=np.int32)


def untagged(process: object) -> str:
    """Return a process id as written, without the tag of its rank."""
    match = _TAGGED.match(process) if isinstance(process, str) else None
    return match.group(2) if match else ("" if process is None else str(process))


def _tag(process: object) -> str | None:
    match = _TAGGED.match(process) if isinstance(process, str) else None
    return match.group(1) if match else None


def _dimensions(tag: str) -> dict[str, int]:
    return {name: int(number) for name, number in _DIMENSION.findall(tag)}


def _number(tags: dict[str, dict[str, int]]) -> dict[str, int]:
    sizes = {
        name: 1 + max((dimensions.get(name, 0) for dimensions in tags.values()), default=0) for name in ("TP", "PP")
    }
    plain = {text: parts.get("PP", 0) * sizes["TP"] + parts.get("TP", 0) for text, parts in tags.items()}
    if _tell_apart(plain):
        return plain
    stride = sizes["PP"] * sizes["TP"]
    replicated = {text: parts.get("DP", 0) * stride + plain[text] for text, parts in tags.items()}
    if _tell_apart(replicated):
        return replicated
    return {text: index for index, text in enumerate(sorted(tags))}


def _tell_apart(numbers: dict[str, int]) -> bool:
    return len(set(numbers.values())) == len(numbers) and max(numbers.values(), default=0) < _MAX_RANK
