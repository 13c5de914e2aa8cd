import json

import pytest
from comparisons import decode, side

from traceaudit.errors import ConfigError
from traceaudit.ingest.baseline import baseline_text, read_baseline


@pytest.fixture
def stored(tmp_path):
    """Write a document and return its path."""

    def write(document):
        path = tmp_path / "main.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return str(path)

    return write


def document(**changes):
    whole = json.loads(baseline_text(side(decode(wall_us=(900,), batch=16)), "main"))
    whole["runs"][0] |= changes
    return whole


def test_a_baseline_reads_back_as_the_side_that_was_written(stored):
    one = side(decode(source="a.json", versions={"cuda": "13"}), decode(1.1, source="b.json"))
    read = read_baseline(stored(baseline_text(one, "main")))
    assert read.label == "main"
    assert read.runs == one.runs


def test_a_baseline_keeps_no_folders():
    assert "/home/someone" not in baseline_text(side(decode(source="/home/someone/run.json")), "main")


def test_unknown_fields_of_a_later_version_are_left_alone(stored):
    assert len(read_baseline(stored(document(later=1))).runs) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no baseline"),
        ("{}", "no baseline"),
        ('{"traceEvents": []}', "no baseline"),
        ({"format": "other", "version": 1}, "this is no baseline"),
        ({"format": "traceaudit-baseline", "version": 2}, "version 2"),
        ({"format": "traceaudit-baseline", "version": 1, "name": "main", "runs": []}, "no runs"),
        (document(window_ns=["x"]), "no baseline"),
        (document(window_ns=[1.0]), "same steps"),
        (document(sequence=[99]), "kernel that is not there"),
        (document(accounts={"compute": [1.0] * 5}), "lacks the account"),
    ],
)
def test_what_is_no_baseline_is_refused(stored, content, message):
    with pytest.raises(ConfigError, match=message):
        read_baseline(stored(content))


def test_impossible_times_are_refused(stored):
    whole = document()
    whole["runs"][0]["kernels"][0]["step_ns"][0] = -1.0
    with pytest.raises(ConfigError, match="below 0"):
        read_baseline(stored(whole))


def test_a_missing_baseline_says_how_to_get_one(tmp_path):
    with pytest.raises(ConfigError) as caught:
        read_baseline(str(tmp_path / "none.json"))
    assert "--save-baseline" in caught.value.hint


def test_a_path_that_is_no_text_can_be_kept(stored):
    read = read_baseline(stored(baseline_text(side(decode(source="/data/\udcff.json")), "main")))
    assert read.runs[0].source == "\\udcff.json"
