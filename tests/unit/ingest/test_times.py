"""Exact conversion of times."""

from decimal import Decimal

from builders import TraceBuilder
from hypothesis import given
from hypothesis import strategies as st
from renderers import render

from traceaudit.ingest.times import MISSING, text_to_ns, to_ns


def convert(values):
    texts = [str(value).encode() for value in values]
    return to_ns(values, lambda: texts)


@given(st.lists(st.integers(min_value=-(10**15), max_value=8 * 10**15), min_size=1))
def test_decimals_below_2_43_come_back_exactly(times_ns):
    values = [float(f"{time_ns / 1000:.3f}") if abs(time_ns) < 2**43 else time_ns // 1000 * 1.0 for time_ns in times_ns]
    expected = [int(Decimal(f"{value:.3f}") * 1000) for value in values]
    got, decimals = convert(values)
    assert got.tolist() == expected
    assert decimals


def test_times_far_apart_keep_their_nanoseconds():
    """50 days lie between the two."""
    assert convert([4402444557616.0, 4398046511.095])[0].tolist() == [4402444557616000, 4398046511095]


@given(st.integers(min_value=0, max_value=4 * 10**18))
def test_epoch_decimals_come_from_their_text(time_ns):
    text = f"{time_ns // 1000}.{time_ns % 1000:03d}"
    assert text_to_ns(text.encode()) == time_ns
    got, _ = to_ns([float(text), text], lambda: [text.encode(), b""])
    assert got.tolist() == [time_ns, time_ns]


def test_kinds_of_values():
    """5, 5.25, text, none, nonsense, and a time that no clock shows."""
    got, decimals = convert([5, 5.25, "5.001", None, "soon", 10**30, -3])
    assert got.tolist() == [5000, 5250, 5001, MISSING, MISSING, MISSING, -3000]
    assert decimals
    assert convert([5, 6, "7"])[1] is False
    assert convert([])[0].tolist() == []


def test_exponents_cost_no_time():
    assert text_to_ns(b"1e999999999") == MISSING
    assert text_to_ns(b"1e-999999999") == 0
    assert text_to_ns(b"1.5e3") == 1_500_000
    assert text_to_ns(b"9" * 5000) == MISSING


def test_coarse_is_told_by_the_text_not_the_value(read_data):
    """Whole times with a decimal point are exact; whole times without one are cut off."""
    trace = TraceBuilder()
    trace.launch(at=0, dur=4).kernel(at=10, dur=5)
    fine, coarse = read_data(render(trace, "python")), read_data(render(trace, "kineto-2.2"))
    assert fine.source.time_resolution_ns == 1
    assert fine.findings == ()
    assert coarse.source.time_resolution_ns == 1000
    assert [(finding.code, finding.count, finding.impact_ns) for finding in coarse.findings] == [
        ("coarse_timestamps", 1, 1000)
    ]


def test_time_zero_is_the_earliest_row_kept(read_data):
    trace = TraceBuilder()
    trace.overhead(at=3, dur=1)
    trace.launch(at=10, dur=4).kernel(at=20, dur=5)
    got = read_data(render(trace))
    assert got.overheads.start_ns.tolist() == [0]
    assert got.ops.start_ns.tolist() == [17_000]
    assert got.source.origin_ns == 1_767_225_600_000_003_000
