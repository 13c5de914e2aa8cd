"""Ceilings of one machine, measured or given: what bandwidth and matrix rates it really reaches."""

from collections.abc import Mapping
from dataclasses import dataclass

from traceaudit.model.hardware import Device, Peaks

__all__ = ["Machine"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What a machine file holds.

    Attributes
    ----------
    name
        Device, as the runtime calls it.
    gbps
        Bandwidth in GB/s by access: ``read``, ``copy``, ``triad``, or ``any`` where the file has one number.
    tflops
        Matrix rates by data type, in TFLOP/s.
    source
        Where this comes from, for reports.
    """

    name: str
    gbps: Mapping[str, float]
    tflops: Mapping[str, float]
    source: str

    def peaks(self, device: Device | None) -> Peaks:
        """Return ceilings to hold rates against; of the accesses the fastest, so that no mix of them exceeds it."""
        best = max(self.gbps, key=lambda access: self.gbps[access])
        which = "" if best == "any" else f", {best} ceiling"
        return Peaks(
            name=self.name,
            device=device,
            mem_bw_gbs=self.gbps[best],
            mem_bw_source=f"{self.source}{which}",
            tflops=self.tflops,
            tflops_source=self.source if self.tflops else None,
            uncertain=False,
        )
