"""Attention that reads the same keys and values once for each query head."""

from traceaudit.analyses.bandwidth.context import Context, indices
from traceaudit.model.findings import Finding, Severity
from traceaudit.model.results.kernels import KernelRates, KernelRow
from traceaudit.model.schema import I64

__all__ = ["re_reads"]

MATTERS_FRAC, MUCH_FRAC = 0.02, 0.1
"""Share of the op time from which on it is noted, and from which on it is a warning."""
GOOD = 0.6
"""A kernel that reaches this share of its speed of light loses little by reading twice."""


def re_reads(row: KernelRow, ops: I64, rates: KernelRates, device: Context) -> Finding | None:
    """Return the finding on an attention kernel whose grid has blocks for query heads that share keys and values.

    A side of the grid counts query heads, alone or of all requests, and none counts the heads of keys and values: so
    blocks of different query heads read the same bytes, which are counted once.
    """
    if row.grid is None or row.share_of_op_time_frac < MATTERS_FRAC or (rates.sol_frac or 0.0) >= GOOD:
        return None
    reading = ops[device.work.read_bytes[ops] > 0]
    for index in indices(reading, device):
        heads = device.work.works[index].heads
        if heads is not None and _apart(row.grid, *heads):
            return _finding(row, heads[0], heads[1], device)
    return None


def _apart(grid: tuple[int, int, int], asked: int, cached: int, requests: int) -> bool:
    """Return whether a grid has blocks for each of so many query heads, and not for each head of keys and values.

    Examples
    --------
    >>> _apart((64, 1, 1), 64, 4, 8), _apart((4, 4, 16), 16, 4, 16), _apart((1, 16, 128), 32, 8, 16)
    (True, False, False)
    """
    sides = set(grid)
    together = {cached, cached * requests} - {1}
    return asked > cached and bool(sides & {asked, asked * requests}) and not sides & together


def _finding(row: KernelRow, asked: int, cached: int, device: Context) -> Finding:
    times = asked // cached
    return Finding(
        "re_reads",
        Severity.WARNING if row.share_of_op_time_frac >= MUCH_FRAC else Severity.INFO,
        f"{row.shown_name} has blocks for each of {asked} query heads, {times} of which share a head of keys and "
        f"values: it reads {times} times the bytes counted, from the cache at best",
        "let a block serve the query heads that share a head of keys and values",
        count=row.launches,
        impact_ns=row.op_time_ns,
        rank=device.view.rank,
        device=device.view.device,
    )
