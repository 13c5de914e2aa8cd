"""The script that turns folders of real runs into false-alarm and detection rates."""

import importlib.util
import json
from pathlib import Path

import pytest
from comparisons import BASELINE, REGRESSED, RERUN, decode, trace_bytes


@pytest.fixture(scope="module")
def rates():
    path = Path(__file__).parents[1] / "bench" / "gate_rates.py"
    if not path.exists():
        pytest.skip("the benchmarks are not here")
    spec = importlib.util.spec_from_file_location("gate_rates", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folders(tmp_path):
    for name, recordings in (("same", (BASELINE, RERUN, BASELINE)), ("slow", (REGRESSED,))):
        (tmp_path / name).mkdir()
        for number, kernels in enumerate(recordings):
            (tmp_path / name / f"{number}.json").write_bytes(trace_bytes(kernels))
    return tmp_path


def test_rates_of_folders(rates, folders, capsys):
    args = [str(folders / "same"), "--changed", f"6pct={folders / 'slow'}", "--kernel", "nvjet", "--runs", "1,2"]
    assert rates.main([*args, "--json", str(folders / "rates.json")]) == 0
    table = {(row["head"], row["runs"]): row for row in json.loads((folders / "rates.json").read_text())}
    assert table["identical code", 1]["draws"] == 6
    assert "fail" not in table["identical code", 1]
    assert (table["6pct", 1]["draws"], table["6pct", 1]["fail"]) == (3, 3)
    assert table["identical code", 2]["draws"] == 0
    assert "not enough runs" in capsys.readouterr().out


def test_a_failure_that_names_another_kernel_is_no_detection(rates, folders):
    args = [str(folders / "same"), "--changed", f"6pct={folders / 'slow'}", "--kernel", "flash", "--runs", "1"]
    assert rates.main([*args, "--json", str(folders / "rates.json")]) == 0
    assert json.loads((folders / "rates.json").read_text())[1]["fail elsewhere"] == 3


@pytest.mark.parametrize("disjoint", [True, False])
def test_draws_are_of_the_size_asked_for_and_disjoint_where_they_must_be(rates, disjoint):
    runs = [decode(source=str(number)) for number in range(12)]
    pairs = rates.drawn_pairs(runs, runs, 3, 50, disjoint=disjoint)
    assert len(pairs) == 50
    assert all(len(base) == len(head) == 3 for base, head in pairs)
    overlaps = [{run.source for run in base} & {run.source for run in head} for base, head in pairs]
    assert not disjoint or not any(overlaps)
    assert pairs == rates.drawn_pairs(runs, runs, 3, 50, disjoint=disjoint)


def test_the_interval_of_a_rate(rates):
    low, high = rates.wilson(0, 100)
    assert (round(low, 3), round(high, 3)) == (0.0, 0.037)
