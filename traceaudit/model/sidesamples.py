"""Samples of a side for everything that comparisons look at: kernels, the step, its accounts."""

from collections.abc import Sequence

import numpy as np

from traceaudit.model.noise import RunSamples, SideStatistic, side_statistic
from traceaudit.model.runs import KernelKey, KernelSamples, RunSummary, Side

__all__ = [
    "account_times",
    "busy_frac",
    "busy_times",
    "kernel_names",
    "kernel_samples",
    "launches",
    "op_times",
    "ops_of_step",
    "unaccounted_frac",
    "usual_kernel",
    "walls_of",
    "windows",
]


def kernel_samples(side: Side, keys: frozenset[KernelKey]) -> list[RunSamples] | None:
    """Sum the kernels with these keys in each step of each run; None without keys."""
    if not keys:
        return None
    return [_run_samples(run, [kernel for kernel in run.kernels if kernel.key in keys]) for run in side.runs]


def launches(side: Side, keys: frozenset[KernelKey]) -> int | None:
    """Return the launches a step of the kernels with these keys, None without keys."""
    if not keys:
        return None
    return round(
        float(
            np.median(
                [
                    np.median(np.sum([kernel.step_launches for kernel in run.kernels if kernel.key in keys], axis=0))
                    for run in side.runs
                ]
            )
        )
    )


def ops_of_step(side: Side) -> int:
    """Return the device ops of a step."""
    sums = [np.median(np.sum([kernel.step_launches for kernel in run.kernels], axis=0)) for run in side.runs]
    return round(float(np.median(sums)))


def usual_kernel(side: Side, keys: frozenset[KernelKey]) -> KernelSamples | None:
    """Return the samples that stand for a kernel: those with most time in the side's middle run that has it."""
    runs = [[kernel for kernel in run.kernels if kernel.key in keys] for run in side.runs]
    runs = [kernels for kernels in runs if kernels]
    if not runs:
        return None
    return max(runs[(len(runs) - 1) // 2], key=lambda kernel: (sum(kernel.step_ns), kernel.name))


def kernel_names(side: Side, keys: frozenset[KernelKey]) -> tuple[str, ...]:
    """Return the names of the kernels with these keys, most time first."""
    kernels = [usual_kernel(side, frozenset((key,))) for key in sorted(keys)]
    found = sorted((kernel for kernel in kernels if kernel is not None), key=lambda kernel: -sum(kernel.step_ns))
    return tuple(dict.fromkeys(kernel.name for kernel in found))


def windows(side: Side) -> list[RunSamples]:
    """Return the profiled windows of the steps."""
    return [RunSamples(run.window_ns) for run in side.runs]


def busy_times(side: Side) -> list[RunSamples]:
    """Return how long the device is busy in each step."""
    return [RunSamples(run.busy_ns, rounding_variance=_rounding(run, len(run.sequence))) for run in side.runs]


def account_times(side: Side, name: str) -> list[RunSamples]:
    """Return one account of each step."""
    return [RunSamples(run.accounts[name]) for run in side.runs]


def walls_of(side: Side) -> list[RunSamples]:
    """Return the unprofiled step times of the runs that recorded some."""
    return [RunSamples(tuple(map(float, run.wall_ns))) for run in side.runs if run.wall_ns]


def op_times(side: Side) -> list[RunSamples]:
    """Return the sum of all durations in each step."""
    return [_run_samples(run, run.kernels) for run in side.runs]


def busy_frac(side: Side) -> float:
    """Return the least share of its steps that the device is busy in any run."""
    return min(sum(run.busy_ns) / max(sum(run.window_ns), 1.0) for run in side.runs)


def unaccounted_frac(side: Side) -> float:
    """Return the share of the step that is idle without explanation or, with a wall, not in the trace."""
    unknown: SideStatistic = side_statistic(account_times(side, "idle_unknown"))
    window = side_statistic(windows(side)).value_ns
    walls = walls_of(side)
    wall = side_statistic(walls).value_ns if walls else window
    whole = max(wall, window)
    return (unknown.value_ns + max(wall - window, 0.0)) / whole if whole else 0.0


def _run_samples(run: RunSummary, kernels: Sequence[KernelSamples]) -> RunSamples:
    if not kernels:
        return RunSamples((0.0,) * run.steps)
    steps = np.sum([kernel.step_ns for kernel in kernels], axis=0)
    launches = [float(np.median(kernel.step_launches)) for kernel in kernels]
    spread = sum(count * (kernel.launch_sd_ns or 0.0) ** 2 for count, kernel in zip(launches, kernels, strict=True))
    return RunSamples(tuple(steps.tolist()), spread, _rounding(run, sum(launches)))


def _rounding(run: RunSummary, launches: float) -> float:
    """Return the variance that whole-microsecond times add to a sum: two rounded ends a launch."""
    return launches * run.resolution_ns**2 / 6 if run.resolution_ns > 1 else 0.0
