"""One logical trace through every writer, layout and compression gives the same facts."""

import pytest
from builders import TraceBuilder
from hypothesis import given
from hypothesis import strategies as st
from renderers import COARSE, KINETO, WRITERS, compress, render, render_merged
from strategies import traces

from traceaudit.ingest import Limits, read
from traceaudit.model.schema import HostCategory

FINE = [name for name in KINETO if name not in COARSE]


def facts(trace, *, host=True):
    """Return what a trace says, without order and codes."""
    names, ops, rows = trace.names, trace.ops, trace.host
    table = trace.threads
    threads = [(int(r), names[p], names[t]) for r, p, t in zip(table.rank, table.pid, table.tid, strict=True)]
    hosts = [
        (
            int(rows.start_ns[i]),
            int(rows.end_ns[i]),
            names[rows.name[i]],
            rows.category[i].item(),
            threads[rows.thread[i]],
        )
        for i in range(len(rows))
    ]
    columns = (ops.start_ns, ops.end_ns, ops.op_type, ops.kind, ops.rank, ops.device, ops.stream)
    device = [
        (
            *(int(column[i]) for column in columns),
            names[ops.name[i]],
            None if ops.launch[i] < 0 else hosts[ops.launch[i]][: None if host else 3],
        )
        for i in range(len(ops))
    ]
    return sorted(device, key=repr), sorted(hosts, key=repr) if host else None


def read_bytes(tmp_path_factory, data, **options):
    path = tmp_path_factory.mktemp("t") / "trace.json"
    path.write_bytes(data)
    return read(str(path), **options)


def codes(trace):
    return {finding.code for finding in trace.findings} - {"coarse_timestamps", "zero_duration"}


@given(trace=traces(), writer=st.sampled_from(FINE), how=st.sampled_from(["plain", "gz", "members", "zst"]))
def test_fine_writers_agree(tmp_path_factory, trace, writer, how):
    expected = read_bytes(tmp_path_factory, render(trace, "kineto-2.6"))
    got = read_bytes(tmp_path_factory, compress(render(trace, writer), how))
    assert facts(got) == facts(expected)
    assert codes(got) == codes(expected)
    assert got.source.time_resolution_ns == 1
    assert got.source.origin_ns == expected.source.origin_ns


@given(trace=traces(unit_us="1"), writer=st.sampled_from([*COARSE, "kineto-2.6"]))
def test_coarse_writers_agree_on_whole_microseconds(tmp_path_factory, trace, writer):
    expected = read_bytes(tmp_path_factory, render(trace, "kineto-2.2"))
    got = read_bytes(tmp_path_factory, render(trace, writer))
    if writer == "legacy":
        # Device ops alone; times count from the first row that this writer has, streams are not recorded.
        def lengths(it):
            return sorted((it.ops.end_ns - it.ops.start_ns).tolist())

        assert lengths(got) == lengths(expected)
        return
    assert facts(got) == facts(expected)
    assert got.source.time_resolution_ns == (1 if writer == "kineto-2.6" else 1000)


@given(
    trace=traces(),
    writer=st.sampled_from(FINE),
    seed=st.integers(),
    keys_first=st.sampled_from([None, True, False]),
    space=st.sampled_from(["", " ", "\n\n", "\r\n\t"]),
)
def test_order_of_events_and_keys_and_space_do_not_matter(tmp_path_factory, trace, writer, seed, keys_first, space):
    expected = read_bytes(tmp_path_factory, render(trace, "kineto-2.6"))
    shuffle = None if writer == "begin-end" else seed
    got = read_bytes(tmp_path_factory, render(trace, writer, shuffle=shuffle, keys_first=keys_first, space=space))
    assert facts(got) == facts(expected)
    assert codes(got) == codes(expected)


@given(trace=traces(max_launches=4), writer=st.sampled_from(KINETO[3:]), block=st.integers(min_value=1, max_value=700))
def test_size_of_blocks_does_not_matter(tmp_path_factory, trace, writer, block):
    if writer in COARSE:
        writer = "cpu-wheel"
    data = render(trace, writer)
    expected = read_bytes(tmp_path_factory, data)
    got = read_bytes(tmp_path_factory, data, limits=Limits(block_bytes=block))
    assert facts(got) == facts(expected)
    assert got.findings == expected.findings
    assert got.source.events == expected.source.events


@given(trace=traces())
def test_rpd_keeps_calls_and_ops(tmp_path_factory, trace):
    for row in trace.host:
        row.name = row.name.replace("cudaLaunch", "hipLaunch")
    # A marker shorter than the trace must not be mistaken for a launch; framework ops do not exist in this format.
    trace.host = [row for row in trace.host if row.category in {"api", "annotation"}]
    expected = read_bytes(tmp_path_factory, render(trace, "kineto-2.6"))
    got = read_bytes(tmp_path_factory, render(trace, "rpd"))
    assert facts(got, host=False)[0] == facts(expected, host=False)[0]
    assert got.source.writer.startswith("rpd2tracing")


@given(first=traces(), second=traces())
def test_merged_ranks_stay_apart(tmp_path_factory, first, second):
    """Correlations of both ranks are the same numbers; each op still finds the launch of its own rank."""
    merged = read_bytes(tmp_path_factory, render_merged([first, second]))
    assert merged.ranks == (0, 1)
    for rank, trace in enumerate((first, second)):
        mine = merged.ops.take(merged.ops.rank == rank)
        assert len(mine) == len(trace.ops)
        assert (merged.threads.rank[merged.host.thread[mine.launch]] == rank).all()


def test_every_writer_is_tried():
    assert set(WRITERS) == {*KINETO, "rpd", "legacy"}


@pytest.mark.parametrize("writer", KINETO)
def test_tables_by_hand(tmp_path_factory, writer):
    """One op, one call, one kernel.

    ::

        host    aten::mm [0, 10)   cudaLaunchKernel [2, 6)
        device                     gemm [15, 20) on stream 7
    """
    trace = TraceBuilder(rank=3, world_size=8)
    trace.op("aten::mm", at=0, dur=10, **{"Input Dims": [[2, 3], [3, 4]]})
    trace.launch(at=2, dur=4).kernel("gemm", at=15, dur=5)
    got = read_bytes(tmp_path_factory, render(trace, writer))
    is_list = writer in {"bare-list", "open-list"}
    assert got.ranks == ((0,) if is_list else (3,))
    assert got.world_size == (None if is_list else 8)
    assert (got.ops.start_ns.tolist(), got.ops.end_ns.tolist()) == ([15_000], [20_000])
    assert got.host.category.tolist() == [HostCategory.CPU_OP, HostCategory.API]
    assert got.host.start_ns.tolist() == [0, 2_000]
    assert got.ops.launch.tolist() == [1]
    assert got.details == (b'{"Input Dims":[[2,3],[3,4]]}',)
    assert got.host.detail.tolist() == [0, -1]
    assert got.ops.grid_x.tolist() == [-1 if writer == "xpu" else 108]
    assert got.source.capture_ns == (-20_000, 40_000)
    assert got.source.origin_ns == 1_767_225_600_000_000_000
    assert not codes(got)
