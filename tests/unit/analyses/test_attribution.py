"""Device time by kernel. Times in µs.

gemm    [10, 40) [50, 90) on 132 multiprocessors, 264 blocks      copy [35, 55) on another stream
step 0 holds the first gemm and the copy, step 1 the second gemm
"""

from dataclasses import replace

import numpy as np
import pytest
from builders import TraceBuilder
from views import trace_of, view_of

from traceaudit.analyses.attribution import attribute, chosen_ops
from traceaudit.model.kernelgroups import KernelGroup
from traceaudit.model.trace import DeviceInfo

LIMITS = {"grid": [264, 1, 1], "block": [128, 1, 1]}


@pytest.fixture
def view():
    trace = TraceBuilder()
    trace.annotation("ProfilerStep#0", at=0, dur=45)
    trace.annotation("ProfilerStep#1", at=45, dur=55)
    trace.launch(at=5, dur=2).kernel("gemm", at=10, dur=30, **LIMITS)
    trace.launch("cudaMemcpyAsync", at=8, dur=2).memcpy("Memcpy HtoD", at=35, dur=20, stream=9)
    trace.launch(at=46, dur=2).kernel("gemm", at=50, dur=40, **LIMITS)
    return view_of(trace)


def groups(*members):
    return tuple(KernelGroup(np.array(rows, np.int64), None, None) for rows in members)


def test_rows_of_all_ops(view):
    """Op time 30 + 20 + 40, busy 80 ([10, 90)); two steps."""
    device = attribute(view, groups([0, 2], [1]))
    assert (device.op_time_ns, device.busy_ns, device.steps) == (90_000, 80_000, 2)
    gemm, copy = device.kernels
    assert (gemm.name, gemm.kind, gemm.launches, gemm.op_time_ns) == ("gemm", "compute", 2, 70_000)
    assert (gemm.mean_ns, gemm.min_ns, gemm.p50_ns, gemm.max_ns) == (35_000, 30_000, 35_000, 40_000)
    assert gemm.share_of_op_time_frac == pytest.approx(7 / 9)
    assert gemm.share_of_busy_frac == pytest.approx(7 / 8)
    assert (gemm.per_step_ns, gemm.launches_per_step, gemm.share_of_wall_frac) == (35_000, 1, None)
    assert (gemm.grid, gemm.block, gemm.blocks_per_sm) == ((264, 1, 1), (128, 1, 1), 2)
    assert (copy.kind, copy.grid, copy.block, copy.blocks_per_sm) == ("memcpy", None, None, None)
    assert copy.rule == "a copy row"
    assert copy.flags == ()


def test_rows_of_one_step(view):
    assert chosen_ops(view, 1).tolist() == [2]
    assert chosen_ops(view, None).tolist() == [0, 1, 2]
    device = attribute(view, groups([2]), step=1, wall_ns=80_000)
    assert (device.op_time_ns, device.busy_ns, device.steps) == (40_000, 40_000, 1)
    assert device.kernels[0].share_of_wall_frac == 0.5


def test_the_wall_of_all_steps_is_shared(view):
    """70 of 2 x 140."""
    gemm, _ = attribute(view, groups([0, 2], [1]), wall_ns=140_000).kernels
    assert gemm.share_of_wall_frac == pytest.approx(0.25)


def test_a_step_is_the_mean_of_the_used_steps_own_ops(view):
    """Step 1 alone is used: the 40 of its gemm, not the 70 of both; an op outside the steps counts in none."""
    gemm, copy = attribute(view, groups([0, 2], [1]), used=[False, True], wall_ns=80_000).kernels
    assert (gemm.launches, gemm.op_time_ns) == (2, 70_000)
    assert (gemm.launches_per_step, gemm.per_step_ns, gemm.share_of_wall_frac) == (1, 40_000, 0.5)
    assert (copy.launches_per_step, copy.per_step_ns, copy.share_of_wall_frac) == (0, 0, 0)
    outside = replace(view, windows=replace(view.windows, step=np.array([-1, 0, 1], np.int64)))
    gemm, _ = attribute(outside, groups([0, 2], [1])).kernels
    assert (gemm.launches_per_step, gemm.per_step_ns) == (0.5, 20_000)


def test_without_a_used_step_nothing_is_said_of_a_step(view):
    device = attribute(view, groups([0, 2], [1]), used=[False, False], wall_ns=80_000)
    gemm = device.kernels[0]
    assert (device.steps, gemm.per_step_ns, gemm.launches_per_step, gemm.share_of_wall_frac) == (None, None, None, None)


def test_ops_that_were_cut_are_flagged(view):
    clipped = view.ops.replace(clipped_ns=np.array([0, 0, 7], np.int64))
    gemm, copy = attribute(replace(view, ops=clipped), groups([0, 2], [1])).kernels
    assert gemm.flags == ("impossible_overlap",)
    assert copy.flags == ()


def test_ops_of_no_length_have_no_share():
    trace = TraceBuilder()
    trace.launch(at=0).kernel("gemm", at=10, dur=0)
    view = view_of(trace)
    (row,) = attribute(view, groups([0])).kernels
    assert (row.op_time_ns, row.share_of_op_time_frac, row.share_of_busy_frac) == (0, 0.0, None)


@pytest.mark.parametrize("devices", [(), (DeviceInfo(0, 0, "odd", None),)])
def test_an_unknown_device_has_no_blocks_per_multiprocessor(view, devices):
    unknown = replace(view, trace=replace(view.trace, devices=devices))
    gemm, _ = attribute(unknown, groups([0, 2], [1])).kernels
    assert (gemm.grid, gemm.blocks_per_sm, gemm.fill.waves) == ((264, 1, 1), None, None)


def test_the_usual_shape_of_several():
    trace = TraceBuilder()
    for i, blocks in enumerate((8, 16, 16)):
        trace.launch(at=20 * i).kernel("gemm", at=20 * i + 5, dur=5, grid=[blocks, 1, 1], block=[32, 1, 1])
    view = view_of(trace_of(trace))
    (row,) = attribute(view, groups([0, 1, 2])).kernels
    assert row.grid == (16, 1, 1)
