"""Files: compression, rotation, several processes, and what is no log."""

import bz2
import gzip
import io
import lzma
import random

import pytest
import serverlogs
import zstandard

from traceaudit.analyses.serverlog.analysis import serverlog
from traceaudit.errors import TraceAuditError
from traceaudit.ingest.serverlog.lines import LINE_LIMIT
from traceaudit.ingest.serverlog.reader import read_server_log
from traceaudit.model.findings import Severity

LINES = [serverlogs.decode(2 * n, 8, 160, ranks=" TP0") for n in range(5)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()


def batches(log):
    return [sample.running for sample in log.samples]


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        lambda data: gzip.compress(data[:200]) + gzip.compress(data[200:]),
        bz2.compress,
        lzma.compress,
        zstandard.ZstdCompressor().compress,
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.decode().encode("utf-16"),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\0" * 5000 + data,
    ],
    ids=["gzip", "two members", "bzip2", "xz", "zstd", "bom", "utf-16", "crlf", "copytruncate"],
)
def test_encodings(tmp_path, pack):
    (tmp_path / "server.log").write_bytes(pack(TEXT))
    log = read_server_log([str(tmp_path / "server.log")])
    assert batches(log) == [8] * 5
    assert log.sources[0].lines == 5


def test_a_cut_gzip_gives_what_is_there(tmp_path):
    whole = gzip.compress(TEXT * 500, compresslevel=1)
    (tmp_path / "server.log.gz").write_bytes(whole[: len(whole) // 2])
    log = read_server_log([str(tmp_path / "server.log.gz")])
    assert log.samples


@pytest.mark.parametrize(
    "pack",
    [lambda data: gzip.compress(data, 1), lzma.compress, zstandard.ZstdCompressor().compress],
    ids=["gzip", "xz", "zstd"],
)
def test_a_cut_log_is_found_and_a_whole_one_is_not(tmp_path, pack):
    """Text that packs badly, so that half of the file unpacks to lines."""
    noise = random.Random(1)
    text = b"".join(TEXT + noise.randbytes(300).hex().encode() + b"\n" for _ in range(2000))
    whole, cut = pack(text), tmp_path / "cut.log"
    cut.write_bytes(whole[: len(whole) // 2])
    (tmp_path / "whole.log").write_bytes(whole)
    log = read_server_log([str(cut)])
    assert 0 < log.sources[0].lines < 6 * 2000
    assert "ends early" in (log.sources[0].damage or "")
    (finding,) = serverlog(log).findings
    assert (finding.code, finding.severity, finding.count) == ("log_truncated", Severity.WARNING, 1)
    assert f"{cut} ends early after {log.sources[0].lines:,} lines" in finding.message
    log = read_server_log([str(tmp_path / "whole.log")])
    assert (log.sources[0].lines, log.sources[0].damage, serverlog(log).findings) == (6 * 2000, None, ())


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress], ids=str
)
def test_a_log_cut_before_its_first_line_is_not_called_empty(tmp_path, pack):
    (tmp_path / "server.log").write_bytes(pack(TEXT)[:30])
    with pytest.raises(TraceAuditError, match=r"cannot be read: the \w+ stream ends early"):
        read_server_log([str(tmp_path / "server.log")])


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_the_line_that_is_cut_is_left_out(tmp_path, cut):
    """Stored, not packed: without its last 8 + 1 + `cut` bytes the file ends inside the fifth line."""
    (tmp_path / "server.log.gz").write_bytes(gzip.compress(TEXT, 0)[: -9 - cut])
    log = read_server_log([str(tmp_path / "server.log.gz")])
    assert (batches(log), log.sources[0].lines) == ([8] * 4, 4)


def test_an_empty_path_of_a_log_is_no_folder():
    with pytest.raises(TraceAuditError, match="the path of the log is empty"):
        read_server_log([""])


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    log = read_server_log(["-"])
    assert (batches(log), log.sources[0].path) == ([8] * 5, "-")


def test_rotated_parts_follow_each_other(tmp_path):
    serverlogs.write(tmp_path, serverlogs.decode(40, 3, 60), name="server.log")
    serverlogs.write(tmp_path, serverlogs.decode(20, 2, 40), name="server.log.1")
    serverlogs.write(tmp_path, serverlogs.decode(0, 1, 20), name="server.log.2.gz")
    log = read_server_log([str(tmp_path)])
    assert batches(log) == [1, 2, 3]
    assert {sample.process for sample in log.samples} == {""}


def test_logs_that_overlap_are_processes(tmp_path):
    one = serverlogs.write(tmp_path, *LINES, name="decode-0.log")
    two = serverlogs.write(tmp_path, *LINES, name="decode-1.log")
    log = read_server_log([one, two])
    assert {sample.process for sample in log.samples} == {"decode-0.log", "decode-1.log"}
    assert log.notes == ("2 logs overlap in time: taken as separate processes",)


def test_logs_of_one_run_after_the_other_are_one_process(tmp_path):
    one = serverlogs.write(tmp_path, *LINES, name="b.log")
    two = serverlogs.write(tmp_path, serverlogs.decode(500, 4, 80), name="a.log")
    log = read_server_log([two, one])
    assert batches(log) == [8, 8, 8, 8, 8, 4]


def test_a_file_given_twice_counts_once(tmp_path):
    path = serverlogs.write(tmp_path, *LINES)
    assert len(read_server_log([path, path]).samples) == 5


def test_lines_that_two_handlers_wrote_count_once(tmp_path):
    log = serverlogs.read(tmp_path, *(line for line in LINES for _ in range(2)))
    assert (batches(log), log.sources[0].duplicates) == ([8] * 5, 5)


def test_a_huge_line_is_cut(tmp_path):
    log = serverlogs.read(tmp_path, "x" * (3 * LINE_LIMIT), *LINES, "y" * (LINE_LIMIT + 1) + LINES[0])
    assert (batches(log), log.sources[0].cut_lines) == ([8] * 5, 2)


def test_samples_of_the_rarer_engine_are_left_out(tmp_path):
    log = serverlogs.read(tmp_path, *LINES, serverlogs.vllm(0, 4, 10))
    assert (log.software, len(log.samples), log.others) == ("sglang", 5, 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the log is empty"),
        (b"\n\nhello\n", "none of 3 lines tells the batch of a server"),
        (bytes(range(256)) * 40, "the file is binary, not a log"),
        (b"\x1f\x8b" + b"\xff" * 100, "the file cannot be read"),
        (b"BZh9" + b"\xff" * 100, "the file cannot be read"),
        (b"\xfd7zXZ\x00" + b"\xff" * 100, "the file cannot be read"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 100, "the file cannot be read"),
        (serverlogs.prefill(0, 4).encode(), "the log has prefill lines only"),
        (b"Decode batch, #running-req: " + b"9" * 4000, "none of 1 lines"),
    ],
)
def test_what_is_no_log(tmp_path, data, message):
    (tmp_path / "server.log").write_bytes(data)
    with pytest.raises(TraceAuditError, match=message) as caught:
        read_server_log([str(tmp_path / "server.log")])
    assert caught.value.exit_code == 2
    assert caught.value.hint


@pytest.mark.parametrize("name", ["absent.log", "absent/server.log", "with\0nul", "n" * 5000])
def test_what_is_not_there(tmp_path, name):
    with pytest.raises(TraceAuditError) as caught:
        read_server_log([f"{tmp_path}/{name}"])
    assert caught.value.exit_code == 2


def test_an_empty_folder(tmp_path):
    with pytest.raises(TraceAuditError, match="the folder has 0 files"):
        read_server_log([str(tmp_path)])


def test_no_path():
    with pytest.raises(TraceAuditError, match="no log given"):
        read_server_log([])


def test_progress_tells_the_bytes(tmp_path):
    told = []
    read_server_log([serverlogs.write(tmp_path, *LINES)], progress=lambda done, _: told.append(done))
    assert told[-1] == len(TEXT)


def test_some_equal_lines_are_engines_that_run_alike(tmp_path):
    log = serverlogs.read(tmp_path, LINES[0], LINES[0], *LINES[1:])
    assert (len(log.samples), log.sources[0].duplicates) == (6, 0)
