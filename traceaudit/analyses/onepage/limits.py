"""How short a step can become: the floor, and what it leaves to kernels of which nothing is known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traceaudit.analyses.onepage.bound import without
from traceaudit.model.options import Speedup
from traceaudit.model.results.onepage import FloorSide, KernelLine

__all__ = ["Limits", "limits_of"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What no fix gets below; times in ns a step.

    Attributes
    ----------
    floor_ns
        The floor at the batch that ran, and `asked_ns` at the batch that was asked for; 0 where it is not known.
    unknown_ns
        By kernel of which no bytes are known, its time.
    carried_ns
        Time of the floor's bytes that all other kernels can carry: their speed of light, or all of their time.
    """

    floor_ns: float = 0.0
    asked_ns: float = 0.0
    unknown_ns: tuple[tuple[str, float], ...] = ()
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
        took = sum(time for name, time in self.unknown_ns if name in names)
        left = sum(time for name, time in self.unknown_ns if name not in names)
        needed = min(max(self.floor_ns - self.carried_ns - left, 0.0), took)
        change = without(*names) if not needed else replace(without(*names), factor=took / needed)
        return (*chosen, change), needed > 0


def limits_of(
    floor: FloorSide | None, lines: Sequence[KernelLine], light: Sequence[KernelLine], baseline_ns: float
) -> Limits:
    """Work the limits out; a step below the expected floor is held against the minimum.

    Parameters
    ----------
    floor
        The floor; None leaves everything open.
    lines, light
        The kernels, and those of them that read neither weights nor cache.
    baseline_ns
        The step as it is.
    """
    if floor is None:
        return Limits()
    bounds, asked = floor.roofline.floor, (floor.asked or floor.roofline).floor
    expected = baseline_ns >= bounds.expected_ns
    floor_ns = bounds.expected_ns if expected else bounds.minimum_ns
    if baseline_ns < floor_ns:
        return Limits()
    asked_ns = asked.expected_ns if expected else asked.minimum_ns
    if floor.roofline.setting.pp > 1:  # its stages run one after the other, on several devices
        return Limits(floor_ns, asked_ns)
    heavy = [line for line in lines if line not in light]
    unknown = tuple((line.row.name, line.op_time_ns) for line in heavy if line.row.rates.sol_frac is None)
    known = sum(line.op_time_ns * min(line.row.rates.sol_frac or 0.0, 1.0) for line in heavy)
    share = sum(line.share_of_busy_frac for line in lines)
    unlisted = sum(line.op_time_ns for line in lines) * (1 / share - 1) if 0 < share < 1 else 0.0
    return Limits(floor_ns, asked_ns, unknown, known + unlisted)
