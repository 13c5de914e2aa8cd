"""What work on kernels can buy at most: by the profile's share, by the share of the wall, and re-timed."""

import math
import re
from collections.abc import Callable, Sequence

from traceaudit.model.options import Speedup
from traceaudit.model.results import DeviceAudit, DeviceKernels, KernelRow
from traceaudit.model.results.onepage import GainBound, KernelLine
from traceaudit.model.results.whatif import DeviceWhatIf

__all__ = ["Retime", "gain_bound", "hidden_kernels", "kernel_lines", "without"]

Retime = Callable[[tuple[Speedup, ...], bool], float]
"""Gives the step in ns with kernels or host rows made faster, and with its launches replaced by a graph's."""

MOST_OF_IT = 0.75
LARGEST = 3
NOTABLE_FRAC = 0.05
HIDDEN_FRAC = 0.25
LISTED = 15


def kernel_lines(kernels: DeviceKernels, prediction: DeviceWhatIf | None, audit: DeviceAudit) -> tuple[KernelLine, ...]:
    """Join what the kernels cost with what their removal would save; most op time first.

    Times are of the used steps; where the trace cannot be re-timed, nothing is known of savings. Only the largest
    kernels are listed.
    """
    steps = audit.ledger.steps
    if not steps:
        return ()
    total = sum(item.op_time_ns for item in audit.steps.items if item.used) / steps
    rows = {row.name: row for row in reversed(kernels.kernels)}
    times: list[tuple[KernelRow, float, float | None]]
    if prediction is None:
        times = [(row, row.per_step_ns or 0.0, None) for row in kernels.kernels[:LISTED]]
    else:
        times = [(rows[gain.name], gain.op_time_ns, gain.save_ns) for gain in prediction.kernels if gain.name in rows]
    lines = (
        KernelLine(
            row=row,
            op_time_ns=time_ns,
            launches=row.launches_per_step or 0.0,
            share_of_busy_frac=time_ns / total if total else 0.0,
            save_ns=save_ns,
        )
        for row, time_ns, save_ns in times
    )
    return tuple(sorted(lines, key=lambda line: -line.op_time_ns))


def hidden_kernels(lines: Sequence[KernelLine]) -> tuple[KernelLine, ...]:
    """Return the kernels that hold a notable share of the op time and whose removal would save little of it."""
    return tuple(
        line
        for line in lines
        if line.share_of_busy_frac >= NOTABLE_FRAC
        and line.save_ns is not None
        and line.save_ns < HIDDEN_FRAC * line.op_time_ns
    )


def gain_bound(
    lines: Sequence[KernelLine], prediction: DeviceWhatIf, retime: Retime, tokens_per_second: float | None
) -> GainBound | None:
    """Bound what the largest kernels can buy: those that together hold three quarters of the op time, three at most.

    With f the busy share of the baseline and s their share of the op time, removing them gives ``1 / (1 - f s)`` if no
    other work hides them; ``1 / (1 - s)`` would hold only for f = 1.
    """
    chosen: list[KernelLine] = []
    for line in lines[:LARGEST]:
        if sum(one.share_of_busy_frac for one in chosen) < MOST_OF_IT:
            chosen.append(line)
    if not chosen:
        return None
    share = sum(line.share_of_busy_frac for line in chosen)
    retimed = retime(tuple(without(line.row.name) for line in chosen), False)  # noqa: FBT003  (Callable has no names)
    return GainBound(
        baseline_ns=prediction.baseline_ns,
        busy_share_frac=prediction.busy_share_frac,
        names=tuple(line.row.name for line in chosen),
        top_share_frac=share,
        profile_factor=_factor_without(share),
        naive_factor=_factor_without(share * prediction.busy_share_frac),
        retimed_ns=retimed,
        retimed_factor=prediction.baseline_ns / retimed if retimed > 0 else None,
        tokens_per_second=tokens_per_second,
    )


def without(*names: str, factor: float = math.inf, ops: tuple[int, ...] | None = None) -> Speedup:
    """Return the change by which exactly these names, or of them only these ops, take 1 / `factor` of their time.

    Examples
    --------
    >>> without("gemm", "a(b)").pattern.fullmatch("a(b)") is not None
    True
    """
    return Speedup(" or ".join(names), re.compile("^(?:" + "|".join(map(re.escape, names)) + ")$"), factor, ops)


def _factor_without(share: float) -> float | None:
    """Return how much faster a whole is without a share of it.

    Examples
    --------
    >>> round(_factor_without(0.78), 1), _factor_without(1.0)
    (4.5, None)
    """
    return 1 / (1 - share) if share < 1 else None
