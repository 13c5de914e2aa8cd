"""Hostile input: a clear refusal or a bounded run."""

import gzip
import resource
import subprocess
import sys

import pytest
from builders import TraceBuilder
from renderers import render

from traceaudit.errors import TraceFormatError
from traceaudit.ingest import Limits

KERNEL = b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.000,"dur":2.000,"args":{"device":0}}'


@pytest.mark.parametrize(
    ("data", "limits", "message"),
    [
        (b"[" + KERNEL + b',{"name":"' + b"x" * 5000, Limits(max_event_bytes=1000, block_bytes=500), "no event ends"),
        (b"[" + b" " * 9000, Limits(max_bytes=5000, block_bytes=500), "more than 5000 bytes"),
        (gzip.compress(b"[" + b" " * 10**6), Limits(max_bytes=10**5, block_bytes=500), "more than 100000 bytes"),
        (b'{"a":"' + b"x" * 5000, Limits(max_metadata_bytes=1000, block_bytes=500), "no 'traceEvents' in the first"),
        (b"[" + b",".join([KERNEL] * 20) + b"]", Limits(max_events=10, block_bytes=500), "more than 10 events"),
        (
            b"[" + b",".join(KERNEL.replace(b'"k"', b'"k%d"' % n) for n in range(20)) + b"]",
            Limits(max_names=10, block_bytes=500),
            "more than 10 names",
        ),
    ],
)
def test_beyond_a_limit(read_data, data, limits, message):
    with pytest.raises(TraceFormatError) as caught:
        read_data(data, limits=limits)
    assert message in caught.value.message
    assert "Limits." in caught.value.hint


@pytest.mark.parametrize("inner", [b"[" * 10_000 + b"]" * 10_000, b'{"a":' * 10_000 + b"1" + b"}" * 10_000])
@pytest.mark.parametrize("writer", ["kineto-2.6", "compact"])
def test_deep_nesting_costs_one_row(read_data, inner, writer):
    trace = TraceBuilder()
    trace.op("MARK", at=0, dur=50)
    trace.launch(at=2).kernel(at=10, dur=5)
    data = render(trace, writer).replace(b'"External id": 1', b'"External id": ' + inner)
    got = read_data(data)
    assert got.ops.start_ns.tolist() == [8_000]
    assert [(finding.code, finding.count) for finding in got.findings] == [("rows_dropped", 1)]


def test_deep_nesting_before_the_events(read_data):
    data = render(TraceBuilder(), "compact").replace(b"[]", b"[" + KERNEL + b"]")
    deep = b'{"deep":' + b"[" * 10_000 + b"]" * 10_000 + b","
    got = read_data(data.replace(b"{", deep, 1))
    assert len(got.ops) == 1


def test_many_tiny_arguments(read_data):
    """A kernel row with a million arguments is one row."""
    args = b",".join(b'"%d":1' % n for n in range(300_000))
    got = read_data(b"[" + KERNEL.replace(b'"device":0', b'"device":0,' + args) + b"]")
    assert len(got.ops) == 1


BOMBS = {
    "spaces": "b'[' + b' ' * 30_000_000",
    "string": "b'[{\"name\":\"' + b'x' * 30_000_000",
    "empty events": "b'[{}' + b',{}' * 3_000_000 + b']'",
    "open objects": "b'{\"a\":' * 5_000_000",
    "backslashes": "b'[{\"name\":\"' + b'\\\\\\\\' * 5_000_000",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_memory_stays_bounded(tmp_path, bomb):
    """In a process of its own; the limit is 8 MB for what surrounds a row, so 200 MB leave room for the interpreter."""
    script = f"""
import gzip, resource
from traceaudit.ingest import Limits, read
from traceaudit.errors import TraceFormatError
path = {str(tmp_path / "bomb.json.gz")!r}
with gzip.open(path, "wb", compresslevel=1) as file:
    file.write({BOMBS[bomb]})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read(path, limits=Limits(max_event_bytes=1 << 23, max_metadata_bytes=1 << 23))
except TraceFormatError:
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert int(done.stdout) < 200_000
    assert resource.RUSAGE_SELF == 0
