"""Healthy traces of the shapes that decode loops have, as code: what the mutations start from.

Each is complete by construction: every launch has its ops and every op its launch, ops of a queue follow each other,
nothing waits longer than the host makes it wait. Times are drawn, so that no two agree by chance.
"""

from random import Random

from builders import TraceBuilder

__all__ = ["SHAPES", "build"]


def build(shape: str, rng: Random) -> TraceBuilder:
    """Return a trace of a shape."""
    return SHAPES[shape](rng)


def _us(rng: Random, low: int, high: int) -> float:
    """Return a time in µs with three decimals."""
    return rng.randint(low * 1000, high * 1000) / 1000


def _eager(rng: Random) -> TraceBuilder:
    """Three to five profiler steps of a loop that waits for the device: kernels, a copy in, a copy back.

    ::

        host    |op[launch] op[launch] ... memcpy sync| next step
        device        kernel    kernel  ... copy
    """
    trace = TraceBuilder()
    now = 0.0
    for step in range(rng.randint(3, 5)):
        begin, free = now, now
        now += _us(rng, 1, 4)
        for position in range(4):
            length = _us(rng, 3, 6)
            trace.op(f"aten::op{position}", at=round(now, 3), dur=round(length + 2, 3))
            launch = trace.launch(at=round(now + 1, 3), dur=round(length, 3))
            start = max(free, now + 1 + length) + _us(rng, 1, 3)
            dur = _us(rng, 4, 12)
            if position == 3:
                launch.memcpy("Memcpy DtoH (Device -> Pinned)", at=round(start, 3), dur=round(dur, 3))
            else:
                launch.kernel(f"kernel_{position}", at=round(start, 3), dur=round(dur, 3))
            free = start + dur
            now += length + 3
        now = max(now, free) + 4
        trace.call("cudaStreamSynchronize", at=round(now - 5, 3), dur=5)
        trace.annotation(f"ProfilerStep#{step + 7}", at=round(begin, 3), dur=round(now - begin, 3))
    return trace


def _graph(rng: Random) -> TraceBuilder:
    """Four to six steps of SGLang: a marker, one graph launch of five ops, a sampling kernel, a copy back, a wait."""
    trace = TraceBuilder()
    named = rng.random() < 0.5
    now = 0.0
    lengths = [_us(rng, 5, 30) for _ in range(5)]
    for _ in range(rng.randint(4, 6)):
        begin = now
        now += _us(rng, 5, 9)
        launch = trace.graph_launch(at=round(now, 3), dur=4)
        start = now + 6
        for node, length in enumerate(lengths):
            args = {"graph id": 3, "graph node id": (3 << 32) + node} if named else {}
            name = f"layer_kernel_{node % 4}"
            launch.kernel(name, at=round(start, 3), dur=round(length + rng.random(), 3), stream=7, **args)
            start += length + 2
        trace.launch(at=round(now + 6, 3)).kernel("sample_kernel", at=round(start, 3), dur=6)
        trace.launch("cudaMemcpyAsync", at=round(now + 12, 3)).memcpy(
            "Memcpy DtoH (Device -> Pinned)", at=round(start + 7, 3), dur=2
        )
        trace.call("cudaEventSynchronize", at=round(now + 17, 3), dur=round(start + 12 - now - 17, 3))
        now = start + 14
        trace.annotation("step[decode bs=8]", at=round(begin, 3), dur=round(now - begin - 1, 3))
    return trace


def _ahead(rng: Random) -> TraceBuilder:
    """A host that runs ahead: all launches at once, the device works through them long after."""
    trace = TraceBuilder()
    host = device = 0.0
    for step in range(4):
        begin = host
        for position in range(5):
            host += _us(rng, 1, 2)
            launch = trace.launch(at=round(host, 3), dur=2)
            host += 3
            device = max(device, host) + _us(rng, 0, 2)
            length = _us(rng, 10, 20)
            launch.kernel(f"ahead_{position}", at=round(device, 3), dur=round(length, 3))
            device += length
        trace.annotation(f"ProfilerStep#{step}", at=round(begin, 3), dur=round(host - begin, 3))
    trace.call("cudaDeviceSynchronize", at=round(host + 1, 3), dur=round(device - host + 2, 3))
    return trace


def _two_streams(rng: Random) -> TraceBuilder:
    """Compute on one stream, collectives and copies on another, overlapping."""
    trace = TraceBuilder()
    now = 0.0
    for step in range(3):
        begin = now
        for _ in range(3):
            first = trace.launch(at=round(now + 1, 3), dur=3)
            second = trace.launch("cudaLaunchKernelExC", at=round(now + 5, 3), dur=3)
            length = _us(rng, 15, 25)
            first.kernel("gemm", at=round(now + 8, 3), dur=round(length, 3), stream=7)
            second.kernel(
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", at=round(now + 10 + _us(rng, 0, 8), 3), dur=20, stream=20
            )
            third = trace.launch("cudaMemsetAsync", at=round(now + 9, 3), dur=2)
            third.memset(at=round(now + 40, 3), dur=3, stream=20)
            now += 50
        trace.annotation(f"ProfilerStep#{step}", at=round(begin, 3), dur=round(now - begin, 3))
    return trace


def _unmarked(rng: Random) -> TraceBuilder:
    """A repeating sequence of kernels without any marker."""
    trace = TraceBuilder()
    now = 0.0
    for _ in range(4):
        for position in range(5):
            trace.launch(at=round(now, 3)).kernel(f"layer_{position}", at=round(now + 6, 3), dur=_us(rng, 3, 5))
            now += 12
        now += 30
    return trace


def _single(rng: Random) -> TraceBuilder:
    """One launch or a few, without steps."""
    trace = TraceBuilder()
    now = 0.0
    for index in range(rng.randint(2, 3)):
        trace.launch(at=round(now, 3)).kernel(f"k{index}", at=round(now + 5, 3), dur=_us(rng, 5, 9))
        now += 20
    return trace


SHAPES = {
    "eager": _eager,
    "graph": _graph,
    "ahead": _ahead,
    "two_streams": _two_streams,
    "unmarked": _unmarked,
    "single": _single,
}
