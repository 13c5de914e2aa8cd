"""Record decode steps with ``torch.profiler``, wall clock included.

The wall time of a step is measured before the first profiler session and stored in the trace, so
that the trace carries the reference which ``traceaudit reconcile`` needs. Importing this package
does not import torch.
"""

from traceaudit.capture.recorder import Recording, record
from traceaudit.capture.wall import METADATA_KEY, WallClock, measure_wall

__all__ = ["METADATA_KEY", "Recording", "WallClock", "measure_wall", "record"]
