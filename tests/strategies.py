"""Hypothesis strategies: logical traces, healthy or not."""

from builders import TraceBuilder
from hypothesis import strategies as st

__all__ = ["traces"]

_NAMES = st.sampled_from(
    ["gemm_kernel", "void softmax<float>(int)", "ncclDevKernel_AllReduce", 'quote"d', "Größe 😀", "a\\b"],
)
_OPS = st.sampled_from(["aten::mm", "aten::add", "vllm::attention", 'with "quotes"', "back\\slash\nline"])


@st.composite
def traces(draw, *, unit_us="0.001", max_launches=8):
    """Return a healthy trace: calls of a thread do not overlap, ops follow their launch and never overlap on a stream.

    Parameters
    ----------
    unit_us
        All times are multiples of this.
    """
    from decimal import Decimal

    unit = Decimal(unit_us)
    trace = TraceBuilder()
    steps = st.integers(min_value=1, max_value=5000)
    now = Decimal(0)
    free_at: dict[int, Decimal] = {}
    for _ in range(draw(st.integers(min_value=1, max_value=max_launches))):
        now += draw(steps) * unit
        dur = (draw(steps) + 10) * unit
        thread = draw(st.integers(min_value=1, max_value=2))
        if draw(st.booleans()):
            trace.op(draw(_OPS), at=now - unit, dur=dur + 2 * unit, thread=thread)
        launch = trace.launch(at=now, dur=dur, thread=thread)
        for _ in range(draw(st.integers(min_value=1, max_value=3))):
            stream = draw(st.sampled_from([7, 20]))
            start = max(free_at.get(stream, now), now) + draw(steps) * unit
            length = draw(steps) * unit
            kind = draw(st.sampled_from([launch.kernel, launch.kernel, launch.memcpy, launch.memset]))
            if kind == launch.kernel:
                launch.kernel(draw(_NAMES), at=start, dur=length, stream=stream)
            else:
                kind(at=start, dur=length, stream=stream)
            free_at[stream] = start + length
        now += dur + 2 * unit
    if draw(st.booleans()):
        trace.annotation("ProfilerStep#3", at=-unit, dur=now + 5 * unit)
    return trace
