"""The way from the floor to the step in a sentence and in rows."""

from typing import TYPE_CHECKING

from traceaudit.report.format import duration

if TYPE_CHECKING:
    from traceaudit.model.results.distance import Distance, Part

__all__ = ["NAMES", "distance_notes", "distance_rows", "distance_text", "impossible_text"]

LEAST_FRAC = 0.0005
NAMES = {
    "weight_kernels": "matrix products",
    "attention_kernels": "attention",
    "other_kernels": "other kernels",
    "exposed_comm": "exposed comm",
    "exposed_copy": "exposed copy",
    "idle": "idle",
    "outside": "outside the trace",
}


def distance_text(distance: "Distance") -> str:
    """Write ``step = floor + …``, without the terms that no digit of the step shows."""
    steps, least_ns = distance.steps, LEAST_FRAC * distance.measured_ns
    kernels = [
        part for part in distance.parts if part.name not in ("idle", "outside") and abs(part.time_ns) >= least_ns
    ]
    inner = ", ".join(f"{NAMES[part.name]} {duration(part.time_ns / steps)}" for part in kernels)
    below = duration(distance.below_speed_of_light_ns / steps)
    text = f"{duration(distance.measured_ns / steps)} = floor {duration(distance.floor_ns / steps)}"
    text += f" + kernels below the speed of light {below}" + (f" ({inner})" if len(kernels) > 1 else "")
    for name in ("idle", "outside"):
        part = distance.part(name)
        if part is not None and abs(part.time_ns) >= least_ns:
            text += f" + {_idle_name(distance, part)} {duration(part.time_ns / steps)}"
    impossible = impossible_text(distance)
    return text + (f"; {impossible}" if impossible else "")


def impossible_text(distance: "Distance") -> str:
    """Say which kernels take less time than the hardware allows, empty where none do."""
    faster = [
        f"{NAMES[part.name]} {duration(part.took_ns / distance.steps)} of {duration(part.least_ns / distance.steps)}"
        for part in distance.impossible
    ]
    if not faster:
        return ""
    return (
        f"FASTER than their floor: {', '.join(faster)} at least, so model, batch, context or device are not this "
        "trace's (or kernels' names do not say what they do)"
    )


def distance_rows(distance: "Distance") -> tuple[tuple[str, float, float, float], ...]:
    """Give a row for each term of a step: name, time taken, floor, time over it; ns a step, with floor and sum."""
    steps = distance.steps
    rows = [
        (_idle_name(distance, part), part.took_ns / steps, part.floor_ns / steps, part.time_ns / steps)
        for part in distance.parts
        if part.took_ns or part.floor_ns
    ]
    whole = "wall" if distance.from_wall else "window"
    beyond = (distance.measured_ns - distance.floor_ns) / steps
    return (*rows, (whole, distance.measured_ns / steps, distance.floor_ns / steps, beyond))


def _idle_name(distance: "Distance", part: "Part") -> str:
    if part.name == "idle" and distance.full_speed:
        return "idle at full speed"
    return NAMES[part.name]


def distance_notes(distance: "Distance") -> tuple[str, ...]:
    """Say what the rows stand for."""
    notes = ["kernels by name: weights are the floor of the matrix products, caches that of attention"]
    impossible = impossible_text(distance)
    if impossible:
        notes.insert(0, impossible)
    if distance.full_speed:
        notes.append("idle is the wall minus busy: the profiled step is longer than the wall")
    if not distance.from_wall:
        notes.append("no wall: the step is as long as the profiler made it")
    return tuple(notes)
