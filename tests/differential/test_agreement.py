"""Where a trace is clean, HTA and traceaudit agree to the microsecond.

The traces look like the published A100 training trace on which the two agree: whole microseconds since 1970, profiler
steps that touch, three streams, a launch for every op, nothing damaged. HTA is told to keep the last step.
"""

from random import Random

import pytest
from builders import TraceBuilder
from renderers import render

from traceaudit.model import intervals
from traceaudit.model.options import ReconcileOptions, StepOptions
from traceaudit.model.schema import Kind

pytest.importorskip("hta")

COMPUTE, COMM, COPY = 7, 20, 24
WHOLE = ReconcileOptions(steps=StepOptions(divide_by=1))


def training(seed: int) -> TraceBuilder:
    """Return some steps of a training loop: layers on one stream, collectives on a second, copies on a third."""
    rng = Random(seed)
    trace = TraceBuilder(rank=0, world_size=8, device="NVIDIA A100-SXM4-40GB")
    free = dict.fromkeys((COMPUTE, COMM, COPY), 0)
    now = 100

    def run(stream, begun, dur):
        start = max(free[stream] + rng.randint(0, 3), begun + rng.randint(5, 30))
        free[stream] = start + dur
        return start

    for step in range(rng.randint(3, 6)):
        begin = now
        for layer in range(rng.randint(10, 30)):
            trace.op("aten::linear", at=now, dur=12)
            dur = rng.randint(1, 60)
            launch = trace.launch(at=now + 1, dur=rng.randint(3, 9), thread=rng.choice([1, 1, 1, 2]))
            launch.kernel(f"ampere_gemm_{layer % 7}", at=run(COMPUTE, now + 1, dur), dur=dur, stream=COMPUTE)
            if layer % 4 == 0:
                dur = rng.randint(20, 90)
                launch = trace.launch("cudaLaunchKernelExC", at=now + 14, dur=5)
                name = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"
                launch.kernel(name, at=run(COMM, now + 14, dur), dur=dur, stream=COMM)
            if layer % 5 == 0:
                dur = rng.randint(1, 25)
                launch = trace.launch("cudaMemcpyAsync", at=now + 20, dur=4)
                launch.memcpy(at=run(COPY, now + 20, dur), dur=dur, stream=COPY)
            if layer % 6 == 0:
                launch = trace.launch("cudaMemsetAsync", at=now + 25, dur=2)
                launch.memset(at=run(COMPUTE, now + 25, 2), dur=2, stream=COMPUTE)
            now += rng.randint(28, 50)
        now = max(now, *free.values()) + 10
        trace.call("cudaDeviceSynchronize", at=now - 8, dur=8)
        trace.annotation(f"ProfilerStep#{step + 3}", at=begin, dur=now - begin)
    return trace


@pytest.fixture(params=range(8))
def data(request):
    return render(training(request.param), "kineto-2.2")


def test_busy_idle_and_span(ours, theirs, data):
    (device,) = ours(data).devices
    hta = theirs(data).temporal()
    assert device.totals.busy_ns == hta["busy"] * 1000
    assert device.totals.idle_ns == hta["idle"] * 1000
    assert device.totals.span_ns == hta["span"] * 1000


def test_compute_and_what_it_does_not_hide(ours, theirs, data):
    """HTA's `non_compute` is the time in which ops run and none of them computes: exposed communication and copies."""
    (device,) = ours(data, WHOLE).devices
    accounts = device.ledger.accounts
    hta = theirs(data).temporal()
    assert accounts.compute == hta["compute"] * 1000
    assert accounts.exposed_comm + accounts.exposed_copy == hta["non_compute"] * 1000


def test_overlap_of_communication_with_compute(ours, tables, theirs, data):
    (device,) = ours(data, WHOLE).devices
    ops = tables(data).ops
    rows = ops.kind == Kind.COMM
    comm = intervals.measure(intervals.union(ops.start_ns[rows], ops.end_ns[rows]))
    hidden = comm - device.ledger.accounts.exposed_comm
    assert round(100 * hidden / comm, 2) == theirs(data).overlap_percent()


def test_time_of_each_kernel(tables, theirs, data):
    trace = tables(data)
    ops = trace.ops
    length = ops.end_ns - ops.start_ns
    sums = {trace.names[code]: int(length[ops.name == code].sum()) for code in set(ops.name.tolist())}
    assert len(sums) <= 10, "above ten names of a type HTA's statistics are something else"
    assert {name: row["sum"] * 1000 for name, row in theirs(data).kernels().items()} == sums


def test_the_traces_are_of_the_kind_on_which_both_agree(ours, data):
    report = ours(data)
    assert {finding.code for finding in report.completeness.findings} <= {
        "coarse_timestamps",
        "rank_missing",
        "zero_duration",
    }
    accounts = report.devices[0].ledger.accounts
    assert accounts.exposed_comm
    assert accounts.exposed_copy
