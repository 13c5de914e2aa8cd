"""The way from the floor to the step that was measured: a ledger that sums exactly."""

from dataclasses import dataclass

from traceaudit.model.results.conservation import conserve

__all__ = ["Distance", "Part"]

NOISE_FRAC = 0.05
"""Kernels may seem faster than their floor by clocks and by names that do not tell all, not by more."""


@dataclass(frozen=True, slots=True)
class Part:
    """A term between floor and step, over all steps of the ledger.

    Attributes
    ----------
    name
        ``weight_kernels`` (matrix products), ``attention_kernels``, ``other_kernels``, ``exposed_comm``,
        ``exposed_copy``, ``idle``, ``outside``.
    time_ns
        Time of the term beyond what the floor allows for it; negative where it took less.
    took_ns
        Time that the term took in all.
    floor_ns
        What of the floor belongs to it; the parts' sum to the floor.
    least_ns
        The same of the minimum floor: nothing can take less.
    """

    name: str
    time_ns: int
    took_ns: int
    floor_ns: int
    least_ns: int = 0

    @property
    def impossible(self) -> bool:
        """Whether it took less time than the hardware allows."""
        return self.took_ns < (1 - NOISE_FRAC) * self.least_ns

    def __post_init__(self) -> None:
        """Check that the time beyond the floor and the floor sum to the time taken."""
        conserve(f"distance of {self.name}", self.time_ns + self.floor_ns, self.took_ns)


@dataclass(frozen=True, slots=True)
class Distance:
    """Floor plus parts is the measured time, in integers, over `steps` steps.

    Attributes
    ----------
    steps
        Steps that the times cover.
    floor_ns
        The expected floor times the steps.
    measured_ns
        The wall times the steps, or the windows where no wall is known.
    from_wall
        Whether `measured_ns` is the wall.
    full_speed
        Whether `idle` is the wall minus busy, since the profiler slowed the host down; else it is as profiled.
    """

    steps: int
    floor_ns: int
    measured_ns: int
    from_wall: bool
    full_speed: bool
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        """Check that floor and parts sum to the measured time."""
        conserve("floor and distance", self.floor_ns + sum(part.time_ns for part in self.parts), self.measured_ns)
        conserve("floors of the parts", sum(part.floor_ns for part in self.parts), self.floor_ns)

    @property
    def below_speed_of_light_ns(self) -> int:
        """Time of kernels and copies beyond the floor."""
        return sum(part.time_ns for part in self.parts if part.name not in {"idle", "outside"})

    @property
    def impossible(self) -> tuple[Part, ...]:
        """The terms that took less time than the hardware allows."""
        return tuple(part for part in self.parts if part.impossible)

    def part(self, name: str) -> Part | None:
        """Return a part by its name, None if it is not there."""
        return next((part for part in self.parts if part.name == name), None)
