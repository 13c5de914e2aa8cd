"""Columns that grow block by block, and the codes that stand for what repeats in them."""

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from traceaudit.ingest.arguments import compact

__all__ = ["Codes", "DetailCodes", "Pieces"]


class Codes(dict[Any, int]):
    """Gives each new key the next number."""

    def __missing__(self, key: object) -> int:
        """Give a new key the next number."""
        code = self[key] = len(self)
        return code


class DetailCodes(dict[bytes, int]):
    """Gives details numbers by their compact text, 0 to rows without; looked up by the text as written."""

    def __init__(self) -> None:
        super().__init__({b"{}": 0})
        self.texts = Codes({b"{}": 0})

    def __missing__(self, written: bytes) -> int:
        """Give a new text the number of its compact form."""
        code = self[written] = self.texts[compact(written)]
        return code


class Pieces:
    """Columns that grow block by block."""

    def __init__(self) -> None:
        self._columns: dict[str, list[npt.NDArray[Any]]] = defaultdict(list)

    def add(self, **columns: npt.NDArray[Any]) -> None:
        """Append one block; every block has the same columns."""
        for name, column in columns.items():
            self._columns[name].append(column)

    def take(self, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a column in one piece, and forget its pieces."""
        pieces = self._columns.pop(name, [])
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=dtype)

    def take_all(self) -> dict[str, npt.NDArray[Any]]:
        """Return every column in one piece, and forget the pieces."""
        return {name: self.take(name, np.int64) for name in tuple(self._columns)}
