"""Which host row enqueued which device op."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traceaudit.model.apis import ApiRole, role_of
from traceaudit.model.schema import I8, I32, I64

__all__ = ["find_launches", "roles_of_names"]


def find_launches(
    *,
    op_correlation: I64,
    op_rank: I32,
    host_index: I64,
    host_correlation: I64,
    host_rank: I32,
    host_role: I8,
) -> I64:
    """Return the host row that launched each op, -1 where no row has its correlation.

    One launch may own many ops (graphs). Where several rows share a correlation, the one named like a launch wins,
    then the one that began last (the innermost).

    Parameters
    ----------
    host_index
        Rows that may be launches, in order of start.
    host_correlation, host_rank, host_role
        Their correlation, rank and `ApiRole`.
    """
    launch = np.full(len(op_correlation), -1, dtype=np.int64)
    linked = op_correlation >= 0
    if not linked.any() or not len(host_index):
        return launch
    op_key, host_key = _keys(op_correlation[linked], op_rank[linked], host_correlation, host_rank)
    # Sorted by key, the best row of each key comes last.
    order = np.lexsort((host_role == ApiRole.LAUNCH, host_key))
    sorted_keys = host_key[order]
    place = np.searchsorted(sorted_keys, op_key, side="right") - 1
    hit = (place >= 0) & (sorted_keys[np.maximum(place, 0)] == op_key)
    launch[linked] = np.where(hit, host_index[order[np.maximum(place, 0)]], -1)
    return launch


def roles_of_names(names: Sequence[str], codes: I32) -> I8:
    """Return the `ApiRole` of each row, given the names' codes."""
    used = np.unique(codes)
    table = np.full(len(names), ApiRole.OTHER, dtype=np.int8)
    for code in used.tolist():
        table[code] = role_of(names[code])
    return table[codes]


def _keys(op_correlation: I64, op_rank: I32, host_correlation: I64, host_rank: I32) -> tuple[I64, I64]:
    """Make one number of correlation and rank, where there is more than one rank."""
    ranks = np.unique(np.concatenate([op_rank, host_rank]))
    if len(ranks) <= 1:
        return op_correlation, host_correlation
    values, inverse = np.unique(np.concatenate([op_correlation, host_correlation]), return_inverse=True)
    scope: npt.NDArray[np.int64] = np.searchsorted(ranks, np.concatenate([op_rank, host_rank])) * len(values) + inverse
    return scope[: len(op_correlation)], scope[len(op_correlation) :]
