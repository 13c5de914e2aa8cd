"""Compressed, nested, damaged and standard input."""

import gzip
import io
import sys
import zipfile

import pytest
import zstandard
from builders import TraceBuilder
from renderers import render

from traceaudit.errors import TraceError, TraceFormatError, TraceNotFoundError
from traceaudit.ingest import Limits, read


def make(kernels=3):
    trace = TraceBuilder()
    for number in range(kernels):
        trace.launch(at=100 * number).kernel(at=100 * number + 20, dur=30)
    return render(trace)


def zipped(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("_", "."), data)
    return out.getvalue()


@pytest.mark.parametrize(
    "wrap",
    [
        bytes,
        gzip.compress,
        zstandard.compress,
        lambda data: gzip.compress(data[:500]) + gzip.compress(data[500:]) + b"\0" * 512,
        lambda data: zstandard.compress(data[:500]) + zstandard.compress(data[500:]),
        lambda data: zipped(a_json=data, readme_txt=b"x"),
        lambda data: zipped(a_json_gz=gzip.compress(data)),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: b"\n" * 5000 + data + b"\0" * 9,
    ],
)
def test_first_bytes_decide_whatever_the_name(read_data, wrap):
    for name in ("trace.json", "trace.json.gz", "trace"):
        trace = read_data(wrap(make()), name, limits=Limits(block_bytes=1000))
        assert trace.ops.start_ns.tolist() == [20_000, 120_000, 220_000]
        assert trace.findings == ()


def test_standard_input(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(gzip.compress(make())))
    monkeypatch.setattr(sys, "stdin", stream)
    seen = []
    trace = read("-", progress=lambda done, total: seen.append((done, total)))
    assert len(trace.ops) == 3
    assert trace.source.path == "-"
    assert seen[-1][1] is None
    assert seen[-1][0] > 0


def test_progress_names_bytes_of_the_file(read_data, tmp_path):
    seen = []
    read_data(make(200), progress=lambda done, total: seen.append((done, total)), limits=Limits(block_bytes=5000))
    size = (tmp_path / "trace.json").stat().st_size
    assert len(seen) > 3
    assert seen == sorted(seen)
    assert seen[-1] == (size, size)


def test_truncated_gzip_keeps_what_inflates(read_data):
    data = gzip.compress(make(500))
    trace = read_data(data[: len(data) // 2], "trace.json.gz")
    assert 0 < len(trace.ops) < 500
    (finding,) = [finding for finding in trace.findings if finding.code == "file_truncated"]
    assert finding.severity == "error"
    assert "gzip stream ends early" in finding.message


@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
def test_damaged_gzip_keeps_what_inflates(read_data, place):
    data = bytearray(gzip.compress(make(500)))
    data[int(len(data) * place)] ^= 0x55
    data[int(len(data) * place) + 1] ^= 0x55
    trace = read_data(bytes(data), "trace.json.gz")
    assert trace.findings, "a damaged stream never passes in silence"
    assert len(trace.ops) > 500 * place / 3


def test_damaged_check_sum_keeps_everything(read_data):
    data = gzip.compress(make(50))
    trace = read_data(data[:-8] + b"\x01\x02\x03\x04" + data[-4:], "trace.json.gz")
    assert len(trace.ops) == 50
    assert [(finding.code, finding.severity) for finding in trace.findings] == [("file_truncated", "warning")]


def test_damaged_zstd(read_data):
    data = zstandard.compress(make(500))
    trace = read_data(data[: len(data) // 2] + b"\xff" * 40, "trace.json.zst", limits=Limits(block_bytes=4096))
    assert "file_truncated" in {finding.code for finding in trace.findings}


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("missing.json", TraceNotFoundError, "no such file"),
        ("", TraceError, "is a folder"),
        ("a\0b", TraceError, "cannot"),
    ],
)
def test_paths_that_cannot_be_read(tmp_path, name, error, message):
    with pytest.raises(error, match=message) as caught:
        read(str(tmp_path / name))
    assert caught.value.where.startswith(str(tmp_path))


def test_zip_with_many_traces_is_refused(read_data):
    with pytest.raises(TraceFormatError, match="2 traces"):
        read_data(zipped(a_json=make(), b_json=make()))
    with pytest.raises(TraceFormatError, match="cannot be read"):
        read_data(b"PK\x03\x04 and nothing else")
