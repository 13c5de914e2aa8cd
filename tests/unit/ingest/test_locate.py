"""Paths to trace files, names to ranks."""

import pytest

from traceaudit.errors import TraceNotFoundError
from traceaudit.ingest import locate
from traceaudit.ingest.locate import rank_in_name


def test_file_and_standard_input(tmp_path):
    path = tmp_path / "anything"
    path.touch()
    assert locate(str(path)) == (str(path),)
    assert locate("-") == ("-",)


def test_folder_gives_traces_by_rank(tmp_path):
    names = [
        "rank10.pt.trace.json.gz",
        "rank2.pt.trace.json",
        "x-TP-1.trace.json.gz",
        "host_4711.async_llm.1767.pt.trace.json.gz",
        "config.json",
        "profiler_out_0.txt",
        "snapshot-memory.pickle",
        "unnumbered.json.zst",
    ]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "nested.json").mkdir()
    found = [path.rpartition("/")[2] for path in locate(str(tmp_path))]
    assert found == ["x-TP-1.trace.json.gz", "rank2.pt.trace.json", "rank10.pt.trace.json.gz", "unnumbered.json.zst"]


def test_nothing_there(tmp_path):
    (tmp_path / "rank0.json").touch()
    with pytest.raises(TraceNotFoundError) as caught:
        locate(str(tmp_path / "rank9.json"))
    assert caught.value.hint == "did you mean 'rank0.json'?"
    with pytest.raises(TraceNotFoundError) as caught:
        locate(str(tmp_path / "no" / "rank0.json"))
    assert "no folder" in caught.value.hint
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceNotFoundError, match="no trace in the folder"):
        locate(str(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("dp0_pp0_tp1_dcp0_ep1_rank5.1767225600.pt.trace.json.gz", 5),
        ("vllm-rank-7.1767225600.pt.trace.json.gz", 7),
        ("rank12.json", 12),
        ("1767225600.5-TP-2-DP-2-DECODE.trace.json.gz", 2),
        ("1767225600.5-TP-2-PP-0.trace.json.gz", 2),
        ("1767225600.5-TP-2-PP-1.trace.json.gz", None),
        ("rpd-1767225600-TP-3.trace.json.gz", 3),
        ("worker1.1767225600.pt.trace.json", 1),
        ("host_4711.1767225600.pt.trace.json", None),
        ("frank2.json", None),
        ("trace.json", None),
    ],
)
def test_rank_in_name(name, rank):
    assert rank_in_name("/some/rank9/" + name) == rank
