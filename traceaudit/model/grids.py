"""Launches of one kernel by their grid."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from traceaudit.model.schema import I64, DeviceOps

__all__ = ["ByGrid"]


@dataclass(frozen=True, slots=True)
class ByGrid:
    """The grids of some launches, most op time first.

    Attributes
    ----------
    grid
        Blocks by dimension; None for launches without a recorded grid.
    of_op
        For each launch its place in `grid`.
    """

    grid: tuple[tuple[int, int, int] | None, ...]
    of_op: npt.NDArray[np.int64]

    @classmethod
    def of(cls, ops: DeviceOps, rows: I64) -> Self:
        """Sort launches, given by their rows in `ops`."""
        triples = np.stack((ops.grid_x[rows], ops.grid_y[rows], ops.grid_z[rows]), axis=1)
        found, place = np.unique(triples, axis=0, return_inverse=True)
        place = place.reshape(-1)
        time = np.bincount(place, weights=ops.end_ns[rows] - ops.start_ns[rows], minlength=len(found))
        order = np.argsort(-time, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        grids = tuple(None if min(sizes) < 0 else (sizes[0], sizes[1], sizes[2]) for sizes in found[order].tolist())
        return cls(grids, rank[place])

    def members(self, number: int) -> npt.NDArray[np.bool_]:
        """Return which launches have a grid."""
        return np.equal(self.of_op, number)
