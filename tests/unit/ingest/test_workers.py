"""A file that is shared with other processes reads as if one had read it."""

import dataclasses
import gzip
import json
import time

import numpy as np
import pytest

from traceaudit.errors import TraceFormatError
from traceaudit.ingest import Limits, gather, read, workers

BLOCK = 4096


@pytest.fixture
def shared(monkeypatch):
    """Share files of any size with one worker that is ready from the start, and count the blocks it was asked for."""
    asked = []
    share, ask = gather._share, workers.Worker.ask

    def once_ready(reader, collected, crew, report):
        deadline = time.monotonic() + 60
        while not all(worker.is_idle for worker in crew) and time.monotonic() < deadline:
            time.sleep(0.01)
        share(reader, collected, crew, report)

    def counting(self, texts):
        asked.append(len(texts))
        ask(self, texts)

    monkeypatch.setattr(gather, "LARGE_BYTES", 0)
    monkeypatch.setattr(gather, "_share", once_ready)
    monkeypatch.setattr(workers, "spare_processors", lambda: 1)
    monkeypatch.setattr(workers.Worker, "ask", counting)
    return asked


def rows(count=600):
    """Rows of every part, of which neighbours share names, threads and streams."""
    made = []
    for i in range(count):
        at = {"ts": 1_000_000 + 10 * i + 0.125, "dur": 4.5}
        shapes = {"Input Dims": [[i % 5, 2]], "Input type": ["float"]}
        made += [
            {"ph": "X", "cat": "cpu_op", "name": f"aten::op{i % 7}", "pid": 1, "tid": 1 + i % 2, **at, "args": shapes},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, **at,
             "args": {"correlation": i + 1}},
            {"ph": "s", "id": i, "pid": 1, "tid": 1, "ts": at["ts"], "cat": "ac2g", "name": "ac2g"},
            {"ph": "X", "cat": "kernel", "name": f"kernel{i % 11}", "pid": 0, "tid": 7, "ts": at["ts"] + 2, "dur": 3,
             "args": {"device": 0, "stream": 7 + i % 2, "correlation": i + 1, "grid": [i, 1, 1], "block": [32, 1, 1]}},
        ]  # fmt: skip
        if i % 40 == 0:
            group = {"Collective name": "allreduce", "Process Group Name": f"tp{i % 3}", "dtype": "Half"}
            made.append({"ph": "X", "cat": "kernel", "name": "nccl", "pid": 0, "tid": 9, "ts": at["ts"] + 5, "dur": 1,
                         "args": {"device": 0, "stream": 9, **group, "Group size": 2, "In msg nelems": i}})  # fmt: skip
    return made


def text_of(made, **around):
    return json.dumps({"traceEvents": made, **around}, separators=(",", ":")).encode()


def both(tmp_path, data, *, name="trace.json", **options):
    """Read in one process, and shared; return both."""
    path = tmp_path / name
    path.write_bytes(data)
    alone = read(str(path), limits=Limits(block_bytes=BLOCK, max_workers=0), **options)
    return alone, read(str(path), limits=Limits(block_bytes=BLOCK), **options)


def assert_same(one, other):
    for item in dataclasses.fields(one):
        left, right = getattr(one, item.name), getattr(other, item.name)
        if not hasattr(left, "take"):
            assert left == right, item.name
            continue
        for column in dataclasses.fields(left):
            np.testing.assert_array_equal(getattr(left, column.name), getattr(right, column.name), column.name)


def test_the_same_tables(tmp_path, shared):
    assert_same(*both(tmp_path, text_of(rows())))
    assert sum(shared) > 4


def test_without_details(tmp_path, shared):
    alone, other = both(tmp_path, text_of(rows()), details=False)
    assert_same(alone, other)
    assert other.details == ()
    assert shared


def test_compressed(tmp_path, shared):
    assert_same(*both(tmp_path, gzip.compress(text_of(rows())), name="trace.json.gz"))
    assert shared


MIDDLE = 1000
ODD = {
    "halves": [
        {"ph": "B", "cat": "cpu_op", "name": "half", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "E", "cat": "cpu_op", "name": "half", "pid": 1, "tid": 1, "ts": 9},
    ],
    "no category": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}],
    "a queue without a number": [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": "default", "ts": 5, "dur": 1, "args": {}}
    ],
    "an element that is no row": [7],
    "a type that no writer gives": [{"ph": "X", "cat": "kernel", "name": ["k"], "pid": {}, "ts": 5, "dur": 1}],
    "rows inside a row": [
        {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 5, "dur": 1,
         "args": {"calls": [{"ph": "X", "name": f"call{i}"} for i in range(400)]}}
    ],
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_rows_that_are_unlike_the_others(tmp_path, shared, odd):
    made = rows()
    assert_same(*both(tmp_path, text_of([*made[:MIDDLE], *odd, *made[MIDDLE:]])))
    assert shared


def test_a_broken_row(tmp_path, shared):
    data = text_of(rows()).replace(b'"name":"kernel5"', b'"name":kernel5', 3)
    alone, other = both(tmp_path, data)
    assert_same(alone, other)
    assert "rows_dropped" in {finding.code for finding in other.findings}
    assert shared


def test_a_file_that_ends_early(tmp_path, shared):
    data = text_of(rows())
    assert_same(*both(tmp_path, data[: len(data) // 2]))
    assert shared


def test_objects_after_the_rows(tmp_path, shared):
    devices = [{"id": i, "name": f"device {i}"} for i in range(200)]
    assert_same(*both(tmp_path, text_of(rows(), deviceProperties=devices)))
    assert shared


def test_a_worker_that_dies(tmp_path, shared, monkeypatch):
    ask = workers.Worker.ask

    def dying(self, texts):
        ask(self, texts)
        self._process.kill()
        self._process.wait()

    monkeypatch.setattr(workers.Worker, "ask", dying)
    assert_same(*both(tmp_path, text_of(rows())))
    assert len(shared) == 1


def test_a_worker_that_never_starts(tmp_path, shared, monkeypatch):
    monkeypatch.setattr(workers, "_PROGRAM", "raise SystemExit")
    monkeypatch.setattr(gather, "_share", lambda *_: None)
    assert_same(*both(tmp_path, text_of(rows())))
    monkeypatch.setattr(workers.sys, "executable", str(tmp_path / "absent"))
    assert_same(*both(tmp_path, text_of(rows())))
    assert not shared


def test_limits_hold_all_the_same(tmp_path, shared):
    path = tmp_path / "trace.json"
    path.write_bytes(text_of(rows()))
    with pytest.raises(TraceFormatError, match="more than 1000 events"):
        read(str(path), limits=Limits(block_bytes=BLOCK, max_events=1000))
    assert shared


def test_progress(tmp_path, shared):
    seen = []
    data = text_of(rows())
    (tmp_path / "trace.json").write_bytes(data)
    read(str(tmp_path / "trace.json"), limits=Limits(block_bytes=BLOCK), progress=lambda *at: seen.append(at))
    assert seen[-1] == (len(data), len(data))
    assert seen == sorted(seen)
    assert shared


def test_where_there_is_no_processor_to_spare(monkeypatch):
    monkeypatch.setattr(workers.sys, "frozen", True, raising=False)
    assert workers.spare_processors() == 0
