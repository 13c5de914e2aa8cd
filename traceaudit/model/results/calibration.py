"""What `calibrate` answers: the rates that one machine really reaches."""

from collections.abc import Mapping
from dataclasses import dataclass

from traceaudit.model.results.completeness import Completeness

__all__ = ["Calibration"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measured ceilings of a device.

    Attributes
    ----------
    name
        Device, as the runtime calls it.
    measured
        When, with what, and how often.
    gbps
        Bandwidth by access: ``read``, ``copy``, ``triad``; GB/s, reads and writes together.
    tflops
        Matrix rates by data type.
    skipped
        Data types that this machine cannot multiply, with the reason.
    peak_gbps
        What the device table says; None where it does not know the device.
    """

    name: str
    measured: str
    gbps: Mapping[str, float]
    tflops: Mapping[str, float]
    skipped: Mapping[str, str]
    peak_gbps: float | None

    @property
    def completeness(self) -> Completeness:
        """Nothing is missing: there is no trace."""
        return Completeness.of(())
