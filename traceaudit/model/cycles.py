"""Periods in sequences of codes: how a trace without step markers shows where its steps begin."""

import numpy as np

from traceaudit.model.schema import I64

__all__ = ["anchor_positions", "period_of"]

MIN_AGREEMENT = 0.9
"""A sequence repeats with a period if this share of its codes equals the code one period later."""

TIE = 0.002
"""Agreements closer than this are equal; the shortest period wins, since its multiples agree as well."""

RAREST = 16
"""Codes looked at for candidate periods."""

MAX_STRIDE = 16
"""A code may occur this often in a cycle for its distances to give the period."""


def period_of(codes: I64) -> int | None:
    """Return the period of a sequence, None if it does not repeat.

    Candidates are the usual distances between occurrences of the same code, at most half the sequence. The best
    agreement wins and not the first that is good enough: the layers of a deep model nearly repeat as well.

    Examples
    --------
    >>> period_of(np.array([1, 2, 2, 3, 1, 2, 2, 3, 1, 2, 2, 3]))
    4
    """
    candidates = _distances(codes)
    if not len(candidates):
        return None
    agreement = np.array([np.mean(codes[:-p] == codes[p:]) for p in candidates])
    best = agreement.max()
    if best < MIN_AGREEMENT:
        return None
    return int(candidates[agreement >= best - TIE].min())


def anchor_positions(codes: I64, period: int, before_ns: I64) -> I64:
    """Return the positions at which cycles begin.

    A sequence of whole cycles begins with one. Else, of the codes that occur once a cycle, the one with the longest
    typical pause before it begins the cycle: engines sample and schedule between steps. If no code occurs once a cycle,
    cycles are cut at equal lengths.

    Parameters
    ----------
    codes
        The sequence.
    period
        Its period.
    before_ns
        Pause before each element, ns.
    """
    if len(codes) % period == 0:
        return np.arange(0, len(codes), period, dtype=np.int64)
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    cycles = len(codes) / period
    once = np.flatnonzero(np.abs(counts - cycles) <= 1)
    best: tuple[float, I64] | None = None
    for value in once:
        positions = np.flatnonzero(inverse == value)
        if len(positions) < 2 or np.median(np.diff(positions)) != period:  # noqa: PLR2004  (a cycle has two ends)
            continue
        pause = float(np.median(before_ns[positions[positions > 0]]))
        if best is None or pause > best[0]:
            best = pause, positions
    return best[1] if best else np.arange(0, len(codes), period, dtype=np.int64)


def _distances(codes: I64) -> I64:
    """Return the usual distances between occurrences of the rarest codes that repeat: a step's period is among them."""
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    repeated = np.flatnonzero(counts > 1)
    rarest = repeated[np.argsort(counts[repeated], kind="stable")][:RAREST]
    found: set[int] = set()
    for value in rarest:
        positions = np.flatnonzero(inverse == value)
        for stride in range(1, min(len(positions), MAX_STRIDE + 1)):
            found.add(int(np.median(positions[stride:] - positions[:-stride])))
    return np.array(sorted(p for p in found if 0 < p <= len(codes) // 2), np.int64)
