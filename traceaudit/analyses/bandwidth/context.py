"""What all rows of a device share when they are rated."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceaudit.model.bytes.shares import UNKNOWN, OpWork
from traceaudit.model.bytes.work import Work
from traceaudit.model.deviceview import DeviceView
from traceaudit.model.hardware import Peaks
from traceaudit.model.llm.quantisation import COMPUTE_FALLBACK
from traceaudit.model.results.kernels import Ceilings
from traceaudit.model.schema import I64

__all__ = ["Context", "indices"]


@dataclass(frozen=True, slots=True)
class Context:
    """What all rows share."""

    view: DeviceView
    work: OpWork
    peaks: Peaks | None
    ceilings: Ceilings
    steps: int
    resolution_ns: int

    @property
    def sms(self) -> int | None:
        """Multiprocessors of the device."""
        return self.view.info.sms if self.view.info else None

    def tflops(self, work: Work) -> float | None:
        """Return the compute peak for a piece of work."""
        if self.peaks is None or work.dtype is None:
            return None
        return self.peaks.rate(COMPUTE_FALLBACK.get(work.dtype, (work.dtype,)))


def indices(ops: I64, device: Context) -> Iterator[int]:
    """Yield the pieces of work that a row's ops have a share of, in order of appearance."""
    index = device.work.work[ops]
    first = np.unique(index[index != UNKNOWN], return_index=True)
    yield from first[0][np.argsort(first[1])].tolist()
