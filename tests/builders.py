"""Tiny traces as code, independent of the writer that will render them (see `renderers`).

Times are microseconds with up to three decimals, counted from an arbitrary 0 of the trace::

    t = TraceBuilder()
    t.launch(at=0, dur=4).kernel(at=10, dur=5, stream=7)
    t.op("aten::mm", at=-2, dur=8)
    path.write_bytes(render(t, "kineto-2.6"))
"""

from dataclasses import dataclass, field
from decimal import Decimal

__all__ = ["HostRow", "Launch", "Op", "TraceBuilder", "ns"]


def ns(us) -> int:
    """Return microseconds as whole nanoseconds."""
    return int((Decimal(str(us)) * 1000).to_integral_value())


@dataclass
class Op:
    """A device op."""

    type: str
    name: str
    start_ns: int
    dur_ns: int
    stream: int
    device: int
    correlation: int
    args: dict = field(default_factory=dict)


@dataclass
class HostRow:
    """A row of a host thread; category is api, cpu_op, annotation or python."""

    category: str
    name: str
    start_ns: int
    dur_ns: int
    thread: int
    correlation: int = 0
    args: dict = field(default_factory=dict)


class Launch:
    """A call that enqueues; its methods add what it enqueued."""

    def __init__(self, trace: "TraceBuilder", row: HostRow, device: int) -> None:
        self.row = row
        self._trace = trace
        self._device = device

    @property
    def correlation(self) -> int:
        return self.row.correlation

    def kernel(self, name="gemm_kernel", *, at, dur, stream=7, **args) -> "Launch":
        return self._add("kernel", name, at, dur, stream, args)

    def memcpy(self, name="Memcpy HtoD (Pinned -> Device)", *, at, dur, stream=7, size=4096) -> "Launch":
        return self._add("memcpy", name, at, dur, stream, {"bytes": size})

    def memset(self, name="Memset (Device)", *, at, dur, stream=7, size=4096) -> "Launch":
        return self._add("memset", name, at, dur, stream, {"bytes": size})

    def _add(self, kind, name, at, dur, stream, args) -> "Launch":
        self._trace.ops.append(Op(kind, name, ns(at), ns(dur), stream, self._device, self.row.correlation, args))
        return self


class TraceBuilder:
    """A logical trace of one rank.

    Attributes
    ----------
    ops, host
        Device ops and host rows, in the order in which they were added.
    overheads, syncs
        (name, start, duration) in ns; syncs also have (device, stream, correlation).
    keys
        Further top-level keys.
    """

    def __init__(self, *, rank=None, world_size=None, device="NVIDIA H100 80GB HBM3", devices=1, first_correlation=101):
        self.ops: list[Op] = []
        self.host: list[HostRow] = []
        self.overheads: list[tuple[str, int, int]] = []
        self.syncs: list[tuple[str, int, int, int, int, int]] = []
        self.rank = rank
        self.world_size = world_size
        self.device_name = device
        self.devices = devices
        self.keys: dict = {}
        self._next = first_correlation

    def launch(self, name="cudaLaunchKernel", *, at, dur=4, thread=1, device=0) -> Launch:
        return Launch(self, self.call(name, at=at, dur=dur, thread=thread), device)

    def graph_launch(self, *, at, dur=4, thread=1, device=0) -> Launch:
        return self.launch("cudaGraphLaunch", at=at, dur=dur, thread=thread, device=device)

    def orphan(self, *, device=0) -> Launch:
        """Return a launch that the trace does not show; only what it enqueued is there."""
        row = HostRow("api", "cudaLaunchKernel", 0, 0, 1, self._correlation())
        return Launch(self, row, device)

    def call(self, name, *, at, dur=4, thread=1) -> HostRow:
        return self._host("api", name, at, dur, thread, self._correlation())

    def op(self, name, *, at, dur, thread=1, **args) -> HostRow:
        return self._host("cpu_op", name, at, dur, thread, args=args)

    def annotation(self, name, *, at, dur, thread=1) -> HostRow:
        return self._host("annotation", name, at, dur, thread)

    def python(self, name, *, at, dur, thread=1) -> HostRow:
        return self._host("python", name, at, dur, thread)

    def overhead(self, name="Activity Buffer Request", *, at, dur) -> None:
        self.overheads.append((name, ns(at), ns(dur)))

    def sync(self, name="Stream Wait Event", *, at, dur, device=0, stream=7, correlation=0) -> None:
        self.syncs.append((name, ns(at), ns(dur), device, stream, correlation))

    def _host(self, category, name, at, dur, thread, correlation=0, args=None) -> HostRow:
        row = HostRow(category, name, ns(at), ns(dur), thread, correlation, args or {})
        self.host.append(row)
        return row

    def _correlation(self) -> int:
        self._next += 1
        return self._next - 1
