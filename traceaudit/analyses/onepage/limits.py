"""How short a step can become: the floor, and what it leaves to kernels of which nothing is known."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from traceaudit.analyses.onepage.bound import without
from traceaudit.model.options import Speedup
from traceaudit.model.results.kernels import KernelPart, LaunchUse
from traceaudit.model.results.onepage import FloorSide, KernelLine

__all__ = ["Limits", "limits_of"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What no fix gets below; times in ns a step.

    Attributes
    ----------
    floor_ns
        The floor at the batch that ran, and `asked_ns` at the batch that was asked for; 0 where it is not known.
    working
        By kernel, those of its launches that may carry bytes of the floor.
    carried_ns
        Time of the floor's bytes that kernels of known bytes can carry: their speed of light. Copies of the cache
        carry none: attention reads the cache after them.
    """

    floor_ns: float = 0.0
    asked_ns: float = 0.0
    working: tuple[tuple[str, KernelPart], ...] = ()
    carried_ns: float = 0.0

    def speedups(self, chosen: Sequence[Speedup], names: Sequence[str]) -> tuple[tuple[Speedup, ...], bool]:
        """Return changes that leave to the kernels of these names the bytes that no other kernel can carry.

        Parameters
        ----------
        chosen
            Changes of kernels whose least time is known.
        names
            Kernels to shorten of which no bytes are known.

        Returns
        -------
        tuple[Speedup, ...]
            The changes.
        bool
            Whether the floor keeps the named kernels from taking no time.
        """
        if not names:
            return tuple(chosen), False
        unknown = [(name, part.per_step_ns) for name, part in self.working if part.rates.sol_frac is None]
        took = sum(time_ns for name, time_ns in unknown if name in names)
        left = sum(time_ns for name, time_ns in unknown if name not in names)
        needed = min(max(self.floor_ns - self.carried_ns - left, 0.0), took)
        ops = tuple(op for name, part in self.working if name in names for op in part.ops)
        change = without(*names, factor=took / needed if needed else math.inf, ops=ops)
        return (*chosen, change), needed > 0


def limits_of(floor: FloorSide | None, lines: Sequence[KernelLine], baseline_ns: float) -> Limits:
    """Work the limits out; a step below the expected floor is held against the minimum.

    Parameters
    ----------
    floor
        The floor; None leaves everything open.
    lines
        The kernels, with their launches by use.
    baseline_ns
        The step as it is.
    """
    working = tuple((line.row.name, part) for line in lines for part in line.row.parts if part.use is LaunchUse.WORK)
    if floor is None:
        return Limits(working=working)
    bounds, asked = floor.roofline.floor, (floor.asked or floor.roofline).floor
    expected = baseline_ns >= bounds.expected_ns
    floor_ns = bounds.expected_ns if expected else bounds.minimum_ns
    if baseline_ns < floor_ns:
        return Limits(working=working)
    asked_ns = asked.expected_ns if expected else asked.minimum_ns
    if floor.roofline.setting.pp > 1:  # its stages run one after the other, on several devices
        return Limits(floor_ns, asked_ns, working)
    known = sum(part.per_step_ns * min(part.rates.sol_frac or 0.0, 1.0) for _, part in working)
    share = sum(line.share_of_busy_frac for line in lines)
    unlisted = sum(line.op_time_ns for line in lines) * (1 / share - 1) if 0 < share < 1 else 0.0
    return Limits(floor_ns, asked_ns, working, known + unlisted)
