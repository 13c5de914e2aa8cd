"""What a trace holds. Times in ns.

    host   cudaLaunchKernel x3, cudaMemcpyAsync, cudaStreamSynchronize, oddEnqueue
    ops    #0 [10, 20) by launch 0     #1 [15, 30) by launch 1     launch 2 has none
           #2 [40, 45) a copy, by the copy call     #3 [50, 60) without launch     #4 [60, 61) by oddEnqueue

Op time 10 + 15 + 5 + 10 + 1 = 41, busy 20 + 5 + 11 = 36, span 51, gaps [30, 40) and [45, 50).
"""

import numpy as np
import pytest
import samples

from traceaudit.analyses.inventory import device_inventories, launch_coverage
from traceaudit.model.results import LaunchCoverage, StepSource, Totals
from traceaudit.model.schema import (
    Collectives,
    DeviceOps,
    HostCategory,
    HostRows,
    Kind,
    OpType,
    Overheads,
    Syncs,
    Threads,
)
from traceaudit.model.steps import StepMarks
from traceaudit.model.trace import Trace

NAMES = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "oddEnqueue", "gemm", "1", "cudaMemsetAsync")


@pytest.fixture
def trace():
    count = 5
    columns = dict.fromkeys((item for item in DeviceOps.__dataclass_fields__), np.full(count, -1))
    ops = DeviceOps.of(
        **columns
        | {
            "start_ns": [10, 15, 40, 50, 60],
            "end_ns": [20, 30, 45, 60, 61],
            "clipped_ns": np.zeros(count),
            "name": np.full(count, 4),
            "op_type": [OpType.KERNEL, OpType.KERNEL, OpType.MEMCPY, OpType.KERNEL, OpType.KERNEL],
            "kind": [Kind.COMPUTE, Kind.COMM, Kind.MEMCPY, Kind.COMPUTE, Kind.COMPUTE],
            "rank": np.zeros(count),
            "device": np.zeros(count),
            "stream": [7, 8, 7, 7, 7],
            "launch": [0, 1, 3, -1, 5],
        }
    )
    host = HostRows.of(
        start_ns=[0, 2, 4, 6, 8, 9],
        end_ns=[1, 3, 5, 7, 9, 10],
        name=[0, 0, 0, 1, 2, 3],
        category=[HostCategory.API] * 5 + [HostCategory.CPU_OP],
        thread=np.zeros(6),
        correlation=np.arange(6),
        detail=np.full(6, -1),
    )
    threads = Threads.of(rank=[0], pid=[5], tid=[5])
    return Trace(
        source=samples.source(),
        names=NAMES,
        details=(),
        ops=ops,
        host=host,
        threads=threads,
        syncs=Syncs.empty(),
        overheads=Overheads.empty(),
        collectives=Collectives.empty(),
        devices=(),
        ranks=(0,),
        world_size=None,
        wall=None,
        findings=(),
    )


def test_coverage_counts_calls_with_and_without_ops(trace):
    assert launch_coverage(trace) == (
        LaunchCoverage(0, "cudaLaunchKernel", calls=3, calls_with_ops=2, ops=2, op_time_ns=25),
        LaunchCoverage(0, "cudaMemcpyAsync", calls=1, calls_with_ops=1, ops=1, op_time_ns=5),
        LaunchCoverage(0, "oddEnqueue", calls=1, calls_with_ops=1, ops=1, op_time_ns=1),
        LaunchCoverage(0, None, calls=0, calls_with_ops=0, ops=1, op_time_ns=10),
    )


def test_coverage_accounts_for_every_op(trace):
    rows = launch_coverage(trace)
    assert sum(row.ops for row in rows) == len(trace.ops)
    assert sum(row.op_time_ns for row in rows) == 41


def test_coverage_of_other_ranks_is_empty(trace):
    assert launch_coverage(trace, ranks=(1,)) == ()


def test_a_device_is_counted(trace):
    marks = StepMarks(StepSource.WHOLE_TRACE, "nothing repeats", (None,), np.array([0]), np.array([61]), touching=True)
    (device,) = device_inventories(trace, {(0, 0): marks}, {(0, 0): "NVIDIA H200"})
    assert device.totals == Totals(device_ops=5, op_time_ns=41, busy_ns=36, span_ns=51, gaps=2)
    assert device.ops_by_kind == {"compute": 3, "comm": 1, "memcpy": 1}
    assert (device.streams, device.name, device.steps) == (2, "NVIDIA H200", 1)
    assert device_inventories(trace, {}, {}) == ()
