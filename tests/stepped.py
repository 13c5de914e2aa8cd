"""Hypothesis strategy: small traces with steps in which everything may go wrong that the ledger has a rule for.

Ops overlap, start before their launch, have no launch or no duration, run on, wait for long; calls of a thread overlap;
steps touch or not, are empty, and rows lie outside all of them. Names of ops differ, since a row written twice is one.
"""

from builders import TraceBuilder
from hypothesis import strategies as st

__all__ = ["SHORT", "stepped_traces"]

SHORT = st.integers(0, 40)
LONG = st.sampled_from([0, 1, 7, 90, 1_000, 300_000, 900_000])
ANY = st.one_of(SHORT, SHORT, LONG)
CALLS = ["cudaLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "hipOddEnqueue"]
OTHERS = [
    ("api", "cudaStreamSynchronize"),
    ("api", "cudaMalloc"),
    ("api", "cudaLaunchKernel"),
    ("cpu_op", "aten::mm"),
    ("cpu_op", "schedule"),
    ("annotation", "schedule"),
    ("annotation", "sample"),
    ("python", "/a/scheduler.py(12): schedule"),
    ("python", "b.py(3): <lambda> at 0x7f00"),
]


@st.composite
def stepped_traces(draw, *, max_launches=7, max_steps=5, markers=True, times=ANY):
    """Return a trace with at least one step marker, or with none; `times` are lengths of rows and waits, in ns."""
    trace = TraceBuilder()
    now = 0
    if markers:
        now = _markers(draw, trace, max_steps)
    span = max(now, 60)
    at = st.one_of(st.integers(-30, span + 30), st.integers(-30, 120))
    for _ in range(draw(st.integers(1, max_launches))):
        launch = _launch(draw, trace, draw(at), times)
        for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
            _op(draw, trace, launch, launch.row.start_ns + draw(times) - draw(st.sampled_from([0, 0, 0, 5])), times)
    for _ in range(draw(st.integers(0, 2))):
        _op(draw, trace, trace.orphan(), draw(at), times)
    for _ in range(draw(st.integers(0, 6))):
        category, name = draw(st.sampled_from(OTHERS))
        trace._host(category, name, us(draw(at)), us(draw(times)), draw(st.integers(1, 2)), trace._correlation())
    for _ in range(draw(st.integers(0, 2))):
        trace.overhead(at=us(draw(at)), dur=us(draw(times)))
    for _ in range(draw(st.integers(0, 1))):
        trace.sync("Stream Wait Event", at=us(draw(at)), dur=us(draw(times)))
    if not trace.ops:
        _op(draw, trace, trace.orphan(), draw(at), times)
    last = max(op.start_ns + op.dur_ns for op in trace.ops)
    trace.annotation("end of capture", at=us(last), dur=us(draw(SHORT)), thread=3)
    return trace


def us(ns) -> str:
    """Return ns as the µs that the builder takes."""
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def _markers(draw, trace, max_steps) -> int:
    now = 0
    name = draw(st.sampled_from(["ProfilerStep#{}", "step[decode bs={}]", "execute_context_0(0)_generation_{0}({0})"]))
    apart = draw(st.booleans())
    for number in range(1, draw(st.integers(1, max_steps)) + 1):
        length = draw(st.integers(1, 60))
        trace.annotation(name.format(number), at=us(now), dur=us(length), thread=1)
        now += length + (draw(st.integers(0, 30)) if apart else 0)
    return now


def _launch(draw, trace, at, times):
    return trace.launch(draw(st.sampled_from(CALLS)), at=us(at), dur=us(draw(times)), thread=draw(st.integers(1, 2)))


def _op(draw, trace, launch, at, times) -> None:
    number = len(trace.ops)
    stream = draw(st.sampled_from([7, 7, 7, 20]))
    kind = draw(st.sampled_from(["compute", "compute", "compute", "comm", "memcpy", "memset"]))
    length = us(max(draw(times), kind == "compute"))  # a main stream of no time would be any stream
    if kind == "compute":
        launch.kernel(f"gemm_{number}", at=us(at), dur=length, stream=stream)
    elif kind == "comm":
        launch.kernel(f"ncclDevKernel_AllReduce_{number}", at=us(at), dur=length, stream=stream)
    else:
        getattr(launch, kind)(f"{kind} {number}", at=us(at), dur=length, stream=stream)
