"""Inputs that are no traces of the PyTorch profiler: one line, a place and a hint each."""

import gzip

import pytest

from traceaudit.errors import TraceFormatError

KERNEL = b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.000,"dur":2.000,"args":{"device":0}}'


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"", "a.json", "is empty"),
        (b" \n ", "a.json", "is empty"),
        (gzip.compress(b""), "a.json.gz", "is empty"),
        (b"hello", "a.json", "not JSON: it starts with 'hello'"),
        (b"<html>", "a.json", "not JSON"),
        (b"\x0a\x8f\x02\x0a\x03abc\x00\xff", "a.pftrace", "Perfetto"),
        (b"\x0a\x8f\x02\x0a\x03abc\x00\xff", "a.json", "Perfetto"),
        (b"SQLite format 3\0" + b"\0" * 80, "a.sqlite", "SQLite"),
        (b"\x01\x02NV\x00\xff", "a.nsys-rep", "Nsight Systems"),
        (b"\x12\x00\x01\xff", "host.xplane.pb", "TensorBoard"),
        (b"\x7fELF\x00\xff", "a.json", "binary"),
        ('{"traceEvents":[]}'.encode("utf-16"), "a.json", "UTF-16"),
        (b"{}", "a.json", "empty JSON object"),
        (b'{"model_type": "llama", "hidden_size": 4096}', "a.json", "'model_type', 'hidden_size'"),
        (b'{"a": 1,\n "b": oops}', "a.json", "not JSON"),
        (b'{"schemaVersion": 1, "deviceProp', "a.json", "ends before its events, after 32 bytes"),
        (b'{"traceEvents": {"a": 1}}', "a.json", "'traceEvents' is not a list"),
        (b'{"traceEvents": null}', "a.json", "'traceEvents' is not a list"),
        (b'{"traceEvents": []}', "a.json", "without events"),
        (b"[]", "a.json", "without events"),
        (b"[1, 2, 3]", "a.json", "none that the PyTorch profiler writes"),
        (b'[{"ph":"X","name":"x","ts":1,"dur":2,"pid":1,"tid":1}]', "a.json", "none that the PyTorch profiler writes"),
        (
            b'{"displayTimeUnit":"ns","traceEvents":[{"ph":"M","pid":7,"name":"process_name","args":{"name":"/device:GPU:0"}}]}',
            "a.trace.json",
            "XLA",
        ),
    ],
)
def test_refused_with_reason(read_data, tmp_path, data, name, message):
    with pytest.raises(TraceFormatError) as caught:
        read_data(data, name)
    assert message in caught.value.message
    assert caught.value.where.startswith(str(tmp_path / name))
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_place_of_an_error_is_named(read_data):
    with pytest.raises(TraceFormatError) as caught:
        read_data(b'{"a": 1,\n "b": oops}')
    assert "line 2, column 7 (byte 15)" in caught.value.where


def test_nested_and_quoted_keys_are_not_the_events(read_data):
    """Only the key of the outermost object counts."""
    inner = b'{"note": "\\"traceEvents\\": [", "copy": {"traceEvents": [{"ph":"X"}]}, "traceEvents" : \n [' + KERNEL
    trace = read_data(inner + b"]}")
    assert len(trace.ops) == 1
    assert trace.source.events == 1
    assert trace.findings[0].code == "op_without_launch"


def test_valid_trace_without_device_rows_is_no_error(read_data):
    """Ingest says so; commands that need a device refuse later."""
    trace = read_data(b'{"schemaVersion": 1, "traceEvents": [{"ph":"M","name":"process_name","pid":1,"args":{}}]}')
    assert len(trace.ops) == 0
    assert [(finding.code, finding.severity) for finding in trace.findings] == [("device_without_ops", "error")]
