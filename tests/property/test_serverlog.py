"""Properties of the server log's reader and analysis."""

import tempfile
from itertools import pairwise
from pathlib import Path

import serverlogs
from hypothesis import given
from hypothesis import strategies as st

from traceaudit.analyses.serverlog.analysis import serverlog
from traceaudit.analyses.serverlog.steady import level_of
from traceaudit.errors import TraceAuditError
from traceaudit.ingest.serverlog.lines import LineCount, lines_of
from traceaudit.ingest.serverlog.reader import read_server_log
from traceaudit.model.results.serverlog import Use
from traceaudit.report.serverlog_json import serverlog as as_json
from traceaudit.report.serverlog_markdown import serverlog as as_markdown
from traceaudit.report.serverlog_table import serverlog as as_table

REAL = [
    serverlogs.decode(0, 8, 160, ranks=" DP0 TP0", queue=3, graph=True, extra="accept len: 2.31, "),
    serverlogs.prefill(1, 8),
    serverlogs.vllm(0, 8, 310, extra="Preemptions: 3, "),
    serverlogs.trtllm(3, 8),
    "[2026-01-02 03:04:00] server_args=ServerArgs(tp_size=8, dp_size=8, max_running_requests=128)",
    "(APIServer pid=1) INFO 01-02 03:04:05 [m.py:1] SpecDecoding metrics: Mean acceptance length: 2.31",
    "[2026-01-02 03:04:05 DP0] Avg thr (in/out): 1.5 / 310.2 tokens/s, Engine (running/waiting): 8 / 2, KV cache: 1%",
    'vllm:num_requests_running{engine="0"} 8 1767323045000',
    '{"status":"success","data":{"result":[{"metric":{"__name__":"tgi_queue_size"},"values":[[1,"2"]]}]}}',
]
MUTATIONS = st.lists(
    st.tuples(
        st.integers(0, 300), st.sampled_from([b"", b"9" * 30, b"-", b"nan", b"\n", b"\0", b"\xff", b"]", b"99999"])
    ),
    max_size=6,
)


def outcome(data):
    """Read and report the bytes; what is no log may end in an error of ours and in nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        path.write_bytes(data)
        try:
            report = serverlog(read_server_log([str(path)]))
        except TraceAuditError:
            return
    for write in (as_json, as_markdown, as_table):
        assert write(report).endswith("\n")


@given(st.binary(max_size=3000))
def test_any_bytes_are_a_log_or_an_error_of_ours(data):
    outcome(data)


@given(st.lists(st.sampled_from(REAL), min_size=1, max_size=12), MUTATIONS)
def test_damaged_lines_are_a_log_or_an_error_of_ours(lines, mutations):
    data = "\n".join(lines).encode()
    for place, patch in mutations:
        at = place * 7 % len(data) if data else 0
        data = data[:at] + patch + data[at + 1 :]
    outcome(data)


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=8))
def test_lines_do_not_depend_on_the_blocks(data, cuts):
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    blocks = [data[start:end] for start, end in pairwise(edges)]
    # the first block tells the encoding
    if data[:2] not in {b"\xff\xfe", b"\xfe\xff"}:
        assert list(lines_of(blocks, LineCount())) == list(lines_of([data], LineCount()))


@given(st.lists(st.integers(0, 64), min_size=1, max_size=60))
def test_every_sample_has_one_use_and_the_batch_is_one_of_them(batches):
    lines = [serverlogs.decode(2 * n, batch, 20 * batch + 1) for n, batch in enumerate(batches)]
    with tempfile.TemporaryDirectory() as folder:
        report = serverlogs.report(Path(folder), *lines)
    (engine,) = report.engines
    assert sum(stretch.samples for stretch in engine.stretches) == len(batches) == engine.samples
    assert engine.steady_batch in {0, *batches}
    assert engine.steady_min <= engine.steady_batch <= engine.steady_max <= engine.max_batch == max(batches)
    assert any(stretch.use is Use.STEADY for stretch in engine.stretches) == (max(batches) > 0)


@given(st.lists(st.integers(0, 1000), max_size=50), st.integers(1, 9))
def test_level_scales_and_is_a_batch(batches, factor):
    level = level_of(batches)
    assert level_of([factor * batch for batch in batches]) == factor * level
    assert level in batches or not batches
    assert 2 * sum(batch for batch in batches if batch <= level) >= sum(batches)
