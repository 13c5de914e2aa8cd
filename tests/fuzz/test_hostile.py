"""Input made to exhaust memory, time or the stack: a refusal or a bounded run, with the limits that users have by
default.

Each runs in a process of its own, whose greatest memory Linux tells (what `resource` tells includes the process that
started it); the interpreter with numpy and the decoder takes 35 MB of it.
"""

import gzip
import io
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.bases import build
from fuzz.engine import base_of
from fuzz.oracle import ledger_of
from renderers import render

from traceaudit import audit
from traceaudit.ingest.container import STDIN
from traceaudit.model.options import ReconcileOptions

MIB = 1 << 20
ROW = b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.000,"dur":1.000,"args":{"stream":7,"device":0}}'
CHILD = """
import sys
from traceaudit.audit import reconcile
from traceaudit.errors import TraceAuditError
from traceaudit.model.options import ReconcileOptions
try:
    print(reconcile(sys.argv[1], ReconcileOptions()).completeness.verdict.value)
except TraceAuditError as exc:
    print(exc)
status = open("/proc/self/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024, file=sys.stderr)
"""


def bomb(head: bytes, filler: bytes, mib: int, tail: bytes = b"") -> bytes:
    """Return a gzip file of many MiB of the same, a member each, which is quickly made."""
    return gzip.compress(head) + gzip.compress(filler * MIB) * mib + gzip.compress(tail)


def nested(opening: bytes, inner: bytes, closing: bytes, depth: int) -> bytes:
    return opening * depth + inner + closing * depth


HOSTILE = {
    "1 GB of spaces": (lambda: bomb(b'{"traceEvents":[', b" ", 1024), "no event ends within", 400),
    "a string of 1 GB": (lambda: bomb(b'{"traceEvents":[{"name":"', b"a", 1024), "no event ends within", 450),
    "300 MB before the events": (lambda: bomb(b'{"x":"', b"a", 300, b'","traceEvents":[]}'), "no 'traceEvents'", 400),
    "300 MB after the events": (
        lambda: bomb(b'{"schemaVersion":1,"traceEvents":[' + ROW + b'],"x":"', b"a", 300, b'"}'),
        "partial",
        300,
    ),
    "500 MB of spaces before anything": (
        lambda: bomb(b"", b" ", 500, b'{"traceEvents":[]}'),
        "JSON without events",
        100,
    ),
    "arguments nested 10,000 deep": (
        lambda: b'{"traceEvents":[' + ROW + b',{"args":' + nested(b"[", b"", b"]", 10_000) + b"}]}",
        "unreliable",
        100,
    ),
    "a row nested 1,000,000 deep": (
        lambda: b'{"traceEvents":[' + ROW + b"," + nested(b'{"a":', b"1", b"}", 1_000_000) + b"]}",
        "unreliable",
        200,
    ),
    "10 million brackets": (lambda: b"[" * 10_000_000, "JSON without events", 150),
    "10 million tiny arguments": (
        lambda: (
            b'{"traceEvents":['
            + ROW[:-2]
            + b","
            + b",".join(b'"%d":1' % number for number in range(10_000_000))
            + b"}}]}"
        ),
        "partial",
        700,
    ),
    "10 million commas": (lambda: b'{"traceEvents":[' + ROW + b"," * 10_000_000 + b"]}", "partial", 150),
    "20,000 keys in other objects": (
        lambda: b"{" + b",".join([b'"a":{"traceEvents":[1]}'] * 20_000) + b"}",
        "keys 'traceEvents' within other values",
        100,
    ),
    "20,000 devices": (
        lambda: (
            b'{"traceEvents":['
            + b",".join(ROW.replace(b'"device":0', b'"device":%d' % n) for n in range(20_000))
            + b"]}"
        ),
        "device ops of 20000 devices",
        150,
    ),
    "100,000 ranks": (
        lambda: (
            b'{"traceEvents":['
            + b",".join(ROW.replace(b'"pid":0', b'"pid":"[TP%06d-PP%06d] 0"' % (n, n)) for n in range(100_000))
            + b"]}"
        ),
        "device ops of 100000 devices",
        300,
    ),
    "a number of 10 million digits": (
        lambda: (
            b'{"schemaVersion":1,"traceEvents":[' + ROW + b"," + ROW.replace(b"1.000", b"9" * 10_000_000, 1) + b"]}"
        ),
        "unreliable",
        200,
    ),
    "3 million quotes": (
        lambda: b'{"traceEvents":[' + ROW + b',{"name":"' + b'"' * 3_000_000 + b'"}]}',
        "unreliable",
        200,
    ),
    "3 million backslashes": (
        lambda: b'{"traceEvents":[' + ROW + b',{"name":"' + b"\\" * 3_000_001 + b'"}]}',
        "unreliable",
        200,
    ),
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the greatest memory of a process is in /proc")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input(tmp_path, name):
    make, said, most_mib = HOSTILE[name]
    path = tmp_path / "trace.json"
    path.write_bytes(make())
    done = subprocess.run(
        [sys.executable, "-c", CHILD, path], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path
    )
    assert said in done.stdout
    assert int(done.stderr) < most_mib


class Drops(io.RawIOBase):
    """A pipe that hands out one byte at a time."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._left = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._left.read(min(size, 1) if size >= 0 else 1)


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_byte_by_byte(monkeypatch, packed):
    base = base_of("graph", 0, "kineto-2.6")
    data = gzip.compress(base.data) if packed else base.data
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Drops(data)))
    assert ledger_of(audit.reconcile(STDIN, ReconcileOptions())) == ledger_of(base.report)


def test_memory_does_not_grow_with_broken_rows(tmp_path):
    """Thousands of rows that need a repair each leave nothing behind."""
    from random import Random

    data = render(build("eager", Random(1)), "python")
    first = data.index(b'{"ph":"X"')
    row = b'{"ph":"X","cat":"cpu_op","name":"a"b\x01","pid":9,"tid":9,"ts":4402211000001.000,"dur":1.000,"args":{}},\n'
    path = tmp_path / "trace.json"
    path.write_bytes(data[:first] + row * 20_000 + data[first:])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = audit.reconcile(str(path), ReconcileOptions())
    (finding,) = [found for found in report.completeness.findings if found.code == "file_repaired"]
    assert "20000" in finding.message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024
