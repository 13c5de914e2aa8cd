"""The traces that the tests of the verdict damage."""

from builders import TraceBuilder

__all__ = ["STEP_US", "calls", "decode", "kernels", "replays", "without"]

STEP_US = 1000


def decode(steps=5, *, copy_us=100) -> TraceBuilder:
    """Return steps of 1000 µs with a kernel of 600 µs, a copy, and a wait; 700 µs of op time each.

    ::

        host     launch [100, 110)                launch [730, 740)   wait [860, 990)
        device       a [120, 720)                     b [750, 850)
    """
    trace = TraceBuilder()
    for step in range(steps):
        at = STEP_US * step
        trace.annotation(f"ProfilerStep#{step}", at=at, dur=STEP_US)
        trace.launch(at=at + 100, dur=10).kernel("a", at=at + 120, dur=600)
        trace.launch("cudaMemcpyAsync", at=at + 730, dur=10).memcpy("b", at=at + 750, dur=copy_us)
        trace.call("cudaStreamSynchronize", at=at + 860, dur=130)
    return trace


def replays(steps=5, *, graph_id=None, markers=True) -> TraceBuilder:
    """Return steps of 1000 µs with one graph launch of three ops of 200 µs and one kernel of 20 µs.

    ::

        host    graph launch [50, 60)   launch [60, 64)                                          wait [745, 900)
        device       x [100, 300) y [300, 500) z [500, 700)      sample [720, 740)
    """
    trace = TraceBuilder()
    args = {} if graph_id is None else {"graph id": graph_id}
    for step in range(steps):
        at = STEP_US * step
        if markers:
            trace.annotation("step[decode bs=8]", at=at, dur=950)
        launch = trace.graph_launch(at=at + 50, dur=10)
        for place, name in enumerate("xyz"):
            launch.kernel(name, at=at + 100 + 200 * place, dur=200, **args)
        trace.launch(at=at + 60).kernel("sample", at=at + 720, dur=20)
        trace.call("cudaEventSynchronize", at=at + 745, dur=155)
    return trace


def kernels(trace, name):
    """Return the ops of a name, in order."""
    return [op for op in trace.ops if op.name == name]


def calls(trace, name):
    """Return the host rows of a name, in order."""
    return [row for row in trace.host if row.name == name]


def without(trace, *rows) -> TraceBuilder:
    """Take rows out of a trace, by identity."""
    gone = set(map(id, rows))
    trace.ops = [op for op in trace.ops if id(op) not in gone]
    trace.host = [row for row in trace.host if id(row) not in gone]
    return trace
