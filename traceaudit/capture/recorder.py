"""Record a step function: first its wall time, then a profiler trace that carries it."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from traceaudit.capture.wall import METADATA_KEY, WallClock, measure_wall

if TYPE_CHECKING:
    from torch.profiler import profile

__all__ = ["Recording", "record"]


@dataclass(frozen=True, slots=True)
class Recording:
    """A trace on disk and the unprofiled wall time of the steps in it."""

    path: Path
    wall: WallClock
    profiled_steps: int


def record(
    step: Callable[[], object],
    *,
    path: str | Path,
    warmup_steps: int = 3,
    wall_steps: int = 50,
    wall_repeats: int = 5,
    profile_steps: int = 5,
    step_markers: bool = True,
    record_shapes: bool = False,
    with_stack: bool = False,
    batch: int | None = None,
    context: int | None = None,
    details: Mapping[str, object] | None = None,
) -> Recording:
    """Measure ``step`` without the profiler, then profile it and write one Kineto trace.

    Call it in a process that has not been profiled: after a first session the host side stays
    slower, and the wall time would no longer be that of the step in service.

    Parameters
    ----------
    step
        Runs one step. It need not wait for the device.
    path
        Where the trace goes. A name that ends in ``.gz`` is compressed, reproducibly.
    warmup_steps
        Steps run first and not timed.
    wall_steps, wall_repeats
        Steps in each timed repeat, and the number of repeats.
    profile_steps
        Steps in the trace. With ``step_markers`` one more runs before them, unrecorded, while the
        profiler starts.
    step_markers
        Whether the profiler marks each step with a ``ProfilerStep#N`` row.
    record_shapes, with_stack
        As in ``torch.profiler.profile``.
    batch, context, details
        Stored beside the wall time, see `WallClock.to_json`.

    Raises
    ------
    ModuleNotFoundError
        torch is not installed.
    ValueError
        A count is below 1.
    """
    if profile_steps < 1:
        raise ValueError(f"profile_steps must be at least 1, found {profile_steps!r}")
    for _ in range(warmup_steps):
        step()
    wall = measure_wall(step, steps=wall_steps, repeats=wall_repeats, synchronize=_device_synchronize())
    document = wall.to_json(batch=batch, context=context, details=details)
    session = _session(
        profile_steps=profile_steps,
        step_markers=step_markers,
        record_shapes=record_shapes,
        with_stack=with_stack,
    )
    if step_markers:
        _run_marked(session, step, profile_steps, document)
    else:
        _run_unmarked(session, step, profile_steps, document)
    target = Path(path)
    _export(session, target)
    return Recording(target, wall, profile_steps)


def _device_synchronize() -> Callable[[], object]:
    """Return what waits for the accelerator, or does nothing where there is none."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("recording needs torch: pip install torch", name=error.name) from error
    if not torch.cuda.is_available():
        return lambda: None
    synchronize: Callable[[], object] = torch.cuda.synchronize
    return synchronize


def _session(*, profile_steps: int, step_markers: bool, record_shapes: bool, with_stack: bool) -> profile:
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    return profile(
        activities=activities,
        # Without a schedule torch writes no ProfilerStep rows.
        schedule=schedule(wait=0, warmup=1, active=profile_steps, repeat=1) if step_markers else None,
        record_shapes=record_shapes,
        with_stack=with_stack,
    )


def _run_marked(session: profile, step: Callable[[], object], profile_steps: int, document: str) -> None:
    session.start()
    step()
    session.step()
    # Kineto keeps metadata only if it is added while a session collects.
    session.add_metadata_json(METADATA_KEY, document)
    for _ in range(profile_steps):
        step()
        session.step()
    session.stop()


def _run_unmarked(session: profile, step: Callable[[], object], profile_steps: int, document: str) -> None:
    session.start()
    session.add_metadata_json(METADATA_KEY, document)
    for _ in range(profile_steps):
        step()
    session.stop()


def _export(session: profile, target: Path) -> None:
    if target.suffix != ".gz":
        session.export_chrome_trace(str(target))
        return
    # torch's own gzip step keeps a temporary path and a time stamp in the file.
    plain = target.with_suffix("")
    session.export_chrome_trace(str(plain))
    with target.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(plain.read_bytes())
    plain.unlink()
