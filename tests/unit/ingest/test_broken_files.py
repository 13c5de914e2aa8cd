"""Files that are not valid JSON: what is repaired, what is dropped, and that each is counted."""

import gzip

import pytest
from builders import TraceBuilder
from renderers import render

from traceaudit.ingest import Limits

LAYOUTS = ["kineto-2.6", "python", "cpu-wheel", "compact"]


def make(writer="kineto-2.6", count=4):
    """Return a trace of `count` launches; the framework op of the second is called MARK."""
    trace = TraceBuilder()
    for number in range(count):
        trace.op("MARK" if number == 1 else f"aten::op{number}", at=100 * number, dur=30)
        trace.launch(at=100 * number + 2).kernel(f"k{number}", at=100 * number + 20, dur=50)
    return render(trace, writer)


def by_code(trace):
    return {finding.code: finding for finding in trace.findings}


def starts(trace):
    return trace.ops.start_ns.tolist()


WHOLE = [20_000, 120_000, 220_000, 320_000]


@pytest.mark.parametrize("writer", LAYOUTS)
@pytest.mark.parametrize(
    ("name", "kind", "becomes"),
    [
        (b"a\x01b", "control characters", "a\x01b"),
        (b"two\nlines\tand a tab", "control characters", "two\nlines\tand a tab"),
        (b"caf\xe9 \xfb", "invalid UTF-8", "caf\ufffd \ufffd"),
        (b"\xed\xa0\x80", "invalid UTF-8", "\ufffd\ufffd\ufffd"),
        (rb"C:\serve\layers\norm.py(3): forward", "lone backslashes", r"C:\serve\layers\norm.py(3): forward"),
        (rb"\\host\share\x", "lone backslashes", r"\\host\share\x"),
        (b'lib("demo", "IMPL")', "unescaped quotes", 'lib("demo", "IMPL")'),
        (b'say "hi"', "unescaped quotes", 'say "hi"'),
    ],
)
def test_names_are_repaired(read_data, writer, name, kind, becomes):
    trace = read_data(make(writer).replace(b"MARK", name))
    assert becomes in trace.names
    assert starts(trace) == WHOLE
    assert len(trace.host) == 8
    finding = by_code(trace)["file_repaired"]
    assert finding.severity == "info"
    assert kind in finding.message
    assert set(by_code(trace)) == {"file_repaired"}


@pytest.mark.parametrize("writer", LAYOUTS)
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"N/A", "bare words"),
        (b"inf", "bare words"),
        (b"-nan", "bare words"),
        (b"NaN", "bare words"),
        (b"-nan(ind)", "bare words"),
        (b"0x55d0aF", "bare words"),
        (b"None", "bare words"),
        (b"True", "bare words"),
        (b"", "missing values"),
    ],
)
def test_values_are_repaired(read_data, writer, value, kind):
    """The value replaces the External id of the second op, or follows it under another key; times stay."""
    data = make(writer).replace(b"MARK", b'MARK", "extra": 0, "more": "x')
    trace = read_data(data.replace(b'"extra": 0', b'"extra": ' + value).replace(b'"extra":0', b'"extra":' + value))
    assert starts(trace) == WHOLE
    assert len(trace.host) == 8
    assert kind in by_code(trace)["file_repaired"].message
    assert by_code(trace)["file_repaired"].count == 1


def test_words_in_strings_are_left_alone(read_data):
    """Only the bare word is replaced; the same word inside the string of the same row is not."""
    data = make().replace(b"MARK", b'N/A: inf, \\"nan\\"').replace(b'"External id": 3', b'"External id": N/A', 1)
    trace = read_data(data)
    assert 'N/A: inf, "nan"' in trace.names
    assert by_code(trace)["file_repaired"].count == 1


@pytest.mark.parametrize("writer", LAYOUTS)
def test_commas(read_data, writer):
    """A comma after the last event, one too many and one too few between events, one after the last argument."""
    data = make(writer)
    place = data.rindex(b"}", 0, data.rindex(b"]") - 1 if writer != "kineto-2.6" else data.rindex(b'"traceName"'))
    last = data[:place] + b"}," + data[place + 1 :]
    trace = read_data(last)
    assert starts(trace) == WHOLE
    assert "extra commas (1)" in by_code(trace)["file_repaired"].message
    start = data.index(b"MARK")
    start = data.rindex(b"{", 0, start)
    start = start if writer != "kineto-2.6" else data.rindex(b"{", 0, start + 1)
    trace = read_data(data[:start] + b"," + data[start:])
    assert starts(trace) == WHOLE
    assert len(trace.host) == 8
    assert "extra commas (1)" in by_code(trace)["file_repaired"].message
    comma = data.rindex(b",", 0, start)
    trace = read_data(data[:comma] + data[comma + 1 :])
    assert starts(trace) == WHOLE
    assert len(trace.host) == 8
    assert "missing commas (1)" in by_code(trace)["file_repaired"].message
    end = data.index(b"}", start + 20)
    trace = read_data(data[:end] + b"," + data[end:])
    assert starts(trace) == WHOLE
    assert "extra commas (1)" in by_code(trace)["file_repaired"].message


@pytest.mark.parametrize("writer", LAYOUTS)
@pytest.mark.parametrize("block", [100, 5000, 1 << 21])
def test_rows_beyond_repair_are_dropped_and_counted(read_data, writer, block):
    """Two rows of twelve events around them are garbage; the rest is read."""
    data = make(writer, 6).replace(b'"MARK"', b"}} oops {{").replace(b'"aten::op4"', b"]]")
    trace = read_data(data, limits=Limits(block_bytes=block))
    finding = by_code(trace)["rows_dropped"]
    assert finding.count == 2
    assert finding.severity == "warning"
    assert trace.ops.start_ns.tolist() == [*WHOLE, 420_000, 520_000]
    assert len(trace.host) == 10
    assert finding.examples[0].startswith("line ")


def test_every_row_damaged_in_a_large_file(read_data):
    """Backslashes in all names, across blocks: nothing is lost, each is counted."""
    data = make("python", 500).replace(b"aten::op", rb"C:\serve\op")
    trace = read_data(data, limits=Limits(block_bytes=4096))
    assert len(trace.ops) == 500
    assert len(trace.host) == 1000
    assert by_code(trace)["file_repaired"].count == 499


@pytest.mark.parametrize("writer", LAYOUTS)
def test_truncated_anywhere(read_data, writer):
    """Cut at each byte: whole rows before the cut are there, and the cut is never passed over in silence."""
    data = make(writer, 3)
    first, end = data.index(b'"ph"'), len(data.rstrip()) - 1
    order = read_data(data).ops.start_ns.tolist()
    for size in range(first, end, 7):
        trace = read_data(data[:size])
        findings = by_code(trace)
        assert "file_truncated" in findings, size
        assert starts(trace) == order[: len(trace.ops)] or trace.ops.start_ns.size <= 3
        rows_end = data.rindex(b"]", 0, data.index(b"traceName") if b"traceName" in data else None)
        assert findings["file_truncated"].severity == ("error" if size <= rows_end else "warning")


def test_truncation_says_until_when_data_is_good(read_data):
    """The file ends inside the third kernel's row; those before it end at 70 and 170 µs, and the first begins at 20."""
    data = make("python", 3)
    trace = read_data(data[: data.index(b'"k2"')])
    message = by_code(trace)["file_truncated"].message
    assert f"after {data.index(b'k2') - 1} bytes" in message
    assert "device ops up to 0.150 ms" in message


def test_open_list_is_legal(read_data):
    data = make("open-list")
    assert not data.rstrip().endswith(b"]")
    for end in (b"", b"\n", b",", b",\n", b"\n]"):
        trace = read_data(data.rstrip() + end)
        assert starts(trace) == WHOLE
        assert set(by_code(trace)) == {"coarse_timestamps"}
    assert "file_truncated" in by_code(read_data(data.rstrip()[:-5]))


@pytest.mark.parametrize("writer", [*LAYOUTS, "bare-list"])
@pytest.mark.parametrize("join", [lambda a, b: a + b, lambda a, b: gzip.compress(a) + gzip.compress(b)])
def test_second_document(read_data, writer, join):
    first = make(writer)
    trace = read_data(join(first, make(writer, 2)))
    assert starts(trace) == WHOLE
    finding = by_code(trace)["second_document"]
    assert finding.severity == "warning"
    assert f"at byte {len(first.rstrip()) if writer != 'kineto-2.6' else len(first)}" in finding.message


def test_bytes_after_the_document_are_named(read_data):
    assert by_code(read_data(make() + b"\0" * 100)) == {}
    assert "4 bytes after the end" in by_code(read_data(make() + b"oops"))["file_repaired"].message


@pytest.mark.parametrize("keys_first", [True, False])
def test_broken_keys_around_the_events(read_data, keys_first):
    """User metadata is written verbatim; what it breaks is repaired, or the keys are found one by one."""
    trace = TraceBuilder(rank=5, world_size=8)
    trace.launch(at=0).kernel(at=10, dur=5)
    trace.keys["user"] = "METADATA"
    data = render(trace, keys_first=keys_first)
    got = read_data(data.replace(b'"METADATA"', b"nan"))
    assert got.ranks == (5,)
    assert "bare words (1) and in the keys" in by_code(got)["file_repaired"].message
    got = read_data(data.replace(b'"METADATA"', b'{{ [ "never closed '))
    assert got.ranks == (5,)
    assert got.world_size == 8
    assert got.source.origin_ns is not None
    assert by_code(got)["file_repaired"].severity == "warning"


def test_odd_types_do_not_lose_rows(read_data):
    """A number as name, a list as pid, true as tid, arguments that are no object: the row's times still count."""
    row = b'{"ph":"X","cat":"kernel","name":%s,"pid":%s,"tid":%s,"ts":%s,"dur":%s,"args":%s}'
    rows = [
        row % (b'"a"', b"0", b"7", b"1.000", b"1.000", b'{"device":0,"stream":7}'),
        row % (b"12", b"[0]", b"true", b'"3.000"', b"1.000", b"null"),
        row % (b"null", b"0.0", b"7.0", b"5.000", b'"1.5"', b"[1,2]"),
        row % (b'"d"', b'"0"', b'"stream 9"', b"7.0", b"1.0", b'{"device":"0","correlation":"12","grid":["1","2"]}'),
        b"null",
        b"17",
        row % (b'"e"', b"0", b"7", b"{}", b"1.000", b"{}"),
    ]
    trace = read_data(b"[" + b",".join(rows) + b"]")
    assert (trace.ops.end_ns - trace.ops.start_ns).tolist() == [1000, 1000, 1500, 1000]
    assert trace.ops.stream.tolist()[3] == 9
    assert trace.ops.correlation.tolist()[3] == 12
    assert (trace.ops.grid_x[3], trace.ops.grid_y[3], trace.ops.grid_z[3]) == (1, 2, 1)
    dropped = [finding.count for finding in trace.findings if finding.code == "rows_dropped"]
    assert sorted(dropped) == [1, 2]
