"""Rows to tables: categories, devices, streams, collectives, step markers, devices listed, the recorder's wall."""

import json

from builders import TraceBuilder
from renderers import render
from views import trace_of

from traceaudit.model.schema import HostCategory, OpType
from traceaudit.model.trace import DeviceInfo, RecordedWall

ROW = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10.5, "dur": 2.0}


def rows(*changes, **keys):
    """Return a file whose rows are `ROW` with changes."""
    events = [{**ROW, "ts": 10.5 + 10 * number, **change} for number, change in enumerate(changes)]
    return json.dumps({"schemaVersion": 1, "traceEvents": events, **keys}).encode()


def test_only_device_categories_are_device_ops(read_data):
    others = ["gpu_user_annotation", "gpu_user_Annotation", "cuda_event", "graph_event_node", "Trace", "unknown"]
    categories = ["kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events", *others]
    trace = read_data(rows(*({"cat": category} for category in categories)))
    kinds = [OpType.KERNEL, OpType.KERNEL, OpType.MEMCPY, OpType.MEMCPY, OpType.MEMSET, OpType.MEMSET, OpType.KERNEL]
    assert trace.ops.op_type.tolist() == kinds
    assert trace.source.events == len(categories)
    assert trace.source.categories["unknown", "X"] == 1


def test_host_categories(read_data):
    expected = {
        "cuda_runtime": HostCategory.API,
        "cuda_driver": HostCategory.API,
        "Runtime": HostCategory.API,
        "xpu_driver": HostCategory.API,
        "privateuse1_runtime": HostCategory.API,
        "mtia_runtime": HostCategory.API,
        "cpu_op": HostCategory.CPU_OP,
        "Operator": HostCategory.CPU_OP,
        "user_annotation": HostCategory.ANNOTATION,
        "User": HostCategory.ANNOTATION,
        "python_function": HostCategory.PYTHON,
    }
    trace = read_data(rows(*({"cat": category, "pid": 0, "tid": 1} for category in expected)))
    assert trace.host.category.tolist() == list(expected.values())
    assert len(trace.threads) == 1


def test_step_markers_among_the_ops_and_annotations_on_device_tracks(read_data):
    """1.8 writes both under categories that mean something else later."""
    trace = read_data(
        rows(
            {"cat": "Operator", "name": "ProfilerStep#7"},
            {"cat": "User", "name": "mine", "tid": "stream 7 user"},
            {"cat": "User", "name": "mine", "tid": "123"},
        )
    )
    assert trace.host.category.tolist() == [HostCategory.ANNOTATION] * 2


def test_device_and_stream(read_data):
    """Arguments win over pid and tid; the stream really used over the display lane; text over nothing."""
    trace = read_data(
        rows(
            {"pid": 3, "args": {"device": 1, "stream": 20}},
            {"pid": 3, "args": {"stream": 9, "original_stream": 13}},
            {"pid": "2", "tid": "stream 7"},
            {"cat": "gpu_memcpy", "pid": 5, "args": {"fromDevice": 4, "inDevice": 5, "toDevice": 6}},
            {"pid": "nowhere", "tid": "queue A"},
            {"tid": 2**63 + 5},
        )
    )
    assert trace.ops.device.tolist() == [1, 3, 2, 4, 0, 0]
    assert trace.ops.stream.tolist()[:4] == [20, 13, 7, 7]
    assert trace.ops.stream[4] < -1
    assert trace.ops.stream[5] == 5 - 2**63


def test_numbers_beyond_64_bits_do_not_matter(read_data):
    trace = read_data(rows({"args": {"Comms Id": 18446744073709551557, "correlation": 12, "bytes": 5}}))
    assert (trace.ops.correlation.tolist(), trace.ops.copied.tolist()) == ([12], [5])


def test_collectives_in_both_spellings(read_data):
    new = {
        "Collective name": "allreduce",
        "In msg nelems": 8,
        "Out msg nelems": 8,
        "Group size": 2,
        "dtype": "BFloat16",
    }
    old = {"In msg size": 8, "Out msg size": 16, "Group size": 2, "dtype": "Float"}
    named = {**new, "Process Group Name": "tp"}
    trace = read_data(rows({"args": new}, {"args": old}, {"args": new}, {}, {"args": named}))
    assert trace.ops.collective.tolist() == [0, 1, 0, -1, 2]
    table = trace.collectives
    assert table.in_elements.tolist() == [8, 8, 8]
    assert table.out_elements.tolist() == [8, 16, 8]
    assert table.group_size.tolist() == [2, 2, 2]
    assert [trace.names[code] if code >= 0 else None for code in table.name] == ["allreduce", None, "allreduce"]
    assert [trace.names[code] if code >= 0 else None for code in table.group] == [None, None, "tp"]


def test_details_are_kept_once(read_data):
    shapes = {"Input Dims": [[2, 3]], "Input type": ["float"], "External id": 1}
    trace = read_data(
        rows(
            {"cat": "cpu_op", "args": shapes},
            {"cat": "cpu_op", "args": {**shapes, "External id": 2}},
            {"cat": "cpu_op", "args": {"External id": 3}},
            {"cat": "cpu_op", "args": {"kernel_num_gb": 0.5, "kernel_file": "a.py"}},
        )
    )
    assert trace.host.detail.tolist() == [0, 0, -1, 1]
    assert trace.details == (
        b'{"Input Dims":[[2,3]],"Input type":["float"]}',
        b'{"kernel_file":"a.py","kernel_num_gb":0.5}',
    )


def test_sync_and_overhead_rows(read_data):
    sync = {"device": 0, "stream": 4294967295, "correlation": 5, "wait_on_stream": 20}
    trace = read_data(
        rows({}, {"cat": "cuda_sync", "name": "Context Sync", "args": sync}, {"cat": "overhead", "pid": -1})
    )
    assert trace.syncs.stream.tolist() == [-1]
    assert trace.syncs.wait_on_stream.tolist() == [20]
    assert trace.syncs.wait_on_correlation.tolist() == [-1]
    assert len(trace.overheads) == 1
    assert len(trace.ops) == 1


def test_number_and_text_name_one_thread(read_data):
    trace = read_data(rows({"cat": "cpu_op", "pid": 4, "tid": 9}, {"cat": "cpu_op", "pid": "4", "tid": "9"}))
    assert len(trace.threads) == 1
    assert trace.host.thread.tolist() == [0, 0]


def test_host_rows_that_start_together_nest(read_data):
    """Longest first; of equally long ones the outer category first."""
    same = {"ts": 5.0, "dur": 3.0}
    trace = read_data(
        rows(
            {**same, "cat": "cuda_runtime", "name": "api"},
            {**same, "cat": "cpu_op", "name": "op"},
            {**same, "cat": "python_function", "name": "frame"},
            {"ts": 5.0, "dur": 9.0, "cat": "cpu_op", "name": "outer"},
            {"ts": 4.0, "dur": 1.0, "cat": "cpu_op", "name": "before"},
        )
    )
    assert [trace.names[code] for code in trace.host.name] == ["before", "outer", "frame", "op", "api"]


def test_devices_listed_and_used(read_data):
    """Device 9 is used but not listed; both listed ones have one name, so it has the same."""
    listed = [
        {"id": 0, "name": "AMD Instinct MI300X", "numSms": 304, "totalGlobalMem": 5},
        {"id": 1, "name": "AMD Instinct MI300X"},
    ]
    trace = read_data(rows({"args": {"device": 9}}, deviceProperties=listed))
    assert trace.devices == (
        DeviceInfo(0, 0, "AMD Instinct MI300X", sms=304, memory_bytes=5),
        DeviceInfo(0, 1, "AMD Instinct MI300X"),
        DeviceInfo(0, 9, "AMD Instinct MI300X"),
    )
    listed[1]["name"] = "another"
    assert read_data(rows({"args": {"device": 9}}, deviceProperties=listed)).devices[2].name is None
    xpu = [{"id": 0, "name": "Intel(R) Data Center GPU Max 1550", "maxComputeUnits": 512}]
    assert read_data(rows({}, deviceProperties=xpu)).devices[0].sms == 512


def test_wall_stored_by_the_recorder(read_data):
    wall = {"schema_version": 1, "wall_ns_per_step": [3300000, 3310000], "batch": 16, "context": 512}
    expected = RecordedWall((3300000, 3310000), 16, 512)
    assert read_data(rows({}, traceaudit=wall)).wall == expected
    assert read_data(rows({}, traceaudit=json.dumps(wall))).wall == expected
    for bad in (
        None,
        5,
        "no",
        {"schema_version": 1},
        {**wall, "wall_ns_per_step": []},
        {**wall, "wall_ns_per_step": [-1]},
    ):
        assert read_data(rows({}, traceaudit=bad)).wall is None


def test_rank_from_the_file_then_the_caller_then_the_name(read_data):
    trace = TraceBuilder(rank=3, world_size=4)
    trace.launch(at=0).kernel(at=10, dur=5)
    assert read_data(render(trace), "rank7.json", rank=5).ranks == (3,)
    trace.rank = None
    assert read_data(render(trace), "rank7.json", rank=5).ranks == (5,)
    assert read_data(render(trace), "rank7.json").ranks == (7,)
    assert read_data(render(trace), "trace.json").ranks == (0,)
    assert read_data(render(trace), "trace.json").ops.rank.tolist() == [0]


def test_grids_in_work_items_become_blocks():
    """HIP's call for modules counts threads: 115,000 of 256 along x are 450 blocks; other calls count blocks."""
    made = TraceBuilder()
    for at, api in ((0, "hipExtModuleLaunchKernel"), (100, "hipModuleLaunchKernel")):
        made.launch(api, at=at).kernel("gemm", at=at + 10, dur=5, grid=[115_000, 1, 2], block=[256, 1, 1])
    ops = trace_of(made).ops
    grids = list(zip(ops.grid_x.tolist(), ops.grid_y.tolist(), ops.grid_z.tolist(), strict=True))
    assert grids == [(450, 1, 2), (115_000, 1, 2)]
