"""Which graph launches replay the same graph where no writer says so: by step markers, or by their order."""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from traceaudit.model.markers import PROFILER_STEP, source_of
from traceaudit.model.schema import HostCategory, HostRows

__all__ = ["markers_tell_batch", "places_in_steps", "repeating_order"]

MIN_AGREEMENT = 0.5
"""Share of launches that must be like the one a period later. Damage breaks two pairs a launch, so in a trace of four
replays one damaged replay leaves half of the pairs at the right period."""

MAX_PERIOD = 512


def markers_tell_batch(host: HostRows, names: Sequence[str]) -> bool:
    """Return whether step markers say what ran, so that steps of one text replay one graph; a number does not."""
    used = np.unique(host.name[host.category == HostCategory.ANNOTATION]).tolist()
    return not any(PROFILER_STEP.fullmatch(names[code]) for code in used)


def places_in_steps(rows: npt.NDArray[np.int64], host: HostRows, names: Sequence[str]) -> npt.NDArray[np.int64] | None:
    """Return a number for the place of each launch in its step.

    Launches of one number share the text of the marker, the launches in the step, and the position among them;
    -1 before the first marker. None if fewer than two steps hold a launch.
    """
    used = np.unique(host.name[host.category == HostCategory.ANNOTATION]).tolist()
    known = [code for code in used if source_of(names[code]) is not None]
    markers = np.flatnonzero((host.category == HostCategory.ANNOTATION) & np.isin(host.name, known))
    step = np.searchsorted(host.start_ns[markers], host.start_ns[rows], side="right") - 1
    inside, held = np.unique(step[step >= 0], return_counts=True)
    if len(inside) < 2:  # noqa: PLR2004  (siblings are two at least)
        return None
    keys: dict[Hashable, int] = {}
    places = np.full(len(rows), -1, np.int64)
    for one, count in zip(inside.tolist(), held.tolist(), strict=True):
        text = names[host.name[markers[one]]]
        label = "" if PROFILER_STEP.fullmatch(text) else text
        for position, index in enumerate(np.flatnonzero(step == one).tolist()):
            places[index] = keys.setdefault((label, count, position), len(keys))
    return places


def repeating_order(contents: Sequence[tuple[int, ...]]) -> int | None:
    """Return the period after which contents repeat, None if they do not; an empty one is like any other.

    The best agreement wins and not the first that is good enough, since the layers of a model nearly repeat as well.

    Examples
    --------
    >>> repeating_order([(1,), (2, 2), (2, 2), (3,)] * 3)
    4
    """
    codes: dict[tuple[int, ...], int] = {(): 0}
    order = np.array([codes.setdefault(content, len(codes)) for content in contents], np.int64)
    best, period = 0.0, None
    for candidate in range(1, min(len(order) // 2, MAX_PERIOD) + 1):
        early, late = order[:-candidate], order[candidate:]
        shown = (early > 0) & (late > 0)
        agreement = float((early == late)[shown].mean()) if shown.any() else 0.0
        if agreement > best:
            best, period = agreement, candidate
    return period if best >= MIN_AGREEMENT else None
