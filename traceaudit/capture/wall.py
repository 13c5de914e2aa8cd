"""The wall time of a step as it runs without the profiler."""

import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["METADATA_KEY", "SCHEMA_VERSION", "WallClock", "measure_wall"]

METADATA_KEY = "traceaudit"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class WallClock:
    """Unprofiled wall time per step, one value for each repeat.

    ``ns_per_step[i]`` is the time of repeat ``i`` divided by ``steps``, rounded to whole ns. A
    repeat starts on an idle device and ends when the device is idle again.
    """

    ns_per_step: tuple[int, ...]
    steps: int

    def __post_init__(self) -> None:
        if not self.ns_per_step or min(self.ns_per_step) <= 0:
            raise ValueError(f"wall times must be positive, found {self.ns_per_step!r}")
        if self.steps < 1:
            raise ValueError(f"steps must be at least 1, found {self.steps!r}")

    @property
    def median_ns(self) -> float:
        """Median over the repeats, in ns: the step's wall.

        >>> WallClock((3_310_000, 3_290_000, 3_300_000), steps=50).median_ns
        3300000
        """
        return statistics.median(self.ns_per_step)

    def to_json(
        self,
        *,
        batch: int | None = None,
        context: int | None = None,
        details: Mapping[str, object] | None = None,
    ) -> str:
        """Return the document that a recording keeps under the top-level key ``traceaudit``.

        ``batch`` (requests) and ``context`` (tokens in each request's KV cache) describe the step;
        ``details`` is free and must be JSON serialisable.

        >>> WallClock((2000, 2002), steps=10).to_json(batch=16)
        '{"schema_version": 1, "wall_ns_per_step": [2000, 2002], "wall_steps": 10, "batch": 16}'
        """
        document: dict[str, object] = {
            "schema_version": SCHEMA_VERSION,
            "wall_ns_per_step": list(self.ns_per_step),
            "wall_steps": self.steps,
        }
        optional = {"batch": batch, "context": context, "details": details}
        document |= {key: value for key, value in optional.items() if value is not None}
        return json.dumps(document, allow_nan=False)


def measure_wall(
    step: Callable[[], object],
    *,
    steps: int,
    repeats: int,
    synchronize: Callable[[], object],
) -> WallClock:
    """Time ``repeats`` runs of ``steps`` steps each.

    ``synchronize`` waits for the device. It runs before and after each repeat and not between
    steps, so a loop that runs ahead of its device is timed as it runs in service.
    """
    if steps < 1 or repeats < 1:
        raise ValueError(f"steps and repeats must be at least 1, found {steps!r} and {repeats!r}")
    times = []
    for _ in range(repeats):
        synchronize()
        begin_ns = time.perf_counter_ns()
        for _ in range(steps):
            step()
        synchronize()
        times.append(round((time.perf_counter_ns() - begin_ns) / steps))
    return WallClock(tuple(times), steps)
