"""Nothing that a command writes takes the place of what it reads."""

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("x.json", "s.toml", "m.toml", "g.log", "b.json", "budget.toml", "y.json"):
        Path(name).write_text(name)
    for folder in ("ranks", "logs", "model"):
        Path(folder).mkdir()
    for name in ("ranks/rank0.json", "logs/server.log", "model/config.json", "model/model.safetensors"):
        Path(name).write_text(name)
    Path("link.json").symlink_to("x.json")
    os.link("x.json", "hard.json")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "line",
    [
        "reconcile x.json -o x.json",
        "reconcile x.json -o ./model/../x.json",
        "reconcile x.json -o link.json",
        "reconcile link.json -o x.json",
        "reconcile x.json -o hard.json",
        "reconcile ranks -o ranks/rank0.json",
        "reconcile x.json --server-log g.log -o g.log",
        "reconcile x.json --server-log logs -o logs/server.log",
        "reconcile x.json --bench-result b.json -o b.json",
        "reconcile x.json --model model -o model/config.json",
        "reconcile x.json --model model/config.json -o model/config.json",
        "kernels x.json -o x.json",
        "kernels x.json --spec s.toml -o s.toml",
        "kernels x.json --machine m.toml -o m.toml",
        "kernels x.json --shapes-from y.json -o y.json",
        "kernels x.json --model y.json --batch 1 --context 2 -o y.json",
        "gaps x.json -o x.json",
        "whatif x.json -o x.json",
        "whatif x.json --bench-result b.json -o b.json",
        "inspect x.json -o x.json",
        "roofline --model y.json --batch 1 --context 2 -o y.json",
        "roofline --checkpoint model --batch 1 --context 2 -o model/model.safetensors",
        "roofline --model y.json --trace x.json -o x.json",
        "serverlog g.log -o g.log",
        "serverlog logs -o logs/server.log",
        "diff x.json y.json -o y.json",
        "diff ranks y.json -o ranks/rank0.json",
        "diff ranks/*.json y.json -o ranks/rank0.json",
        "check x.json y.json -o x.json",
        "check x.json y.json --budget budget.toml -o budget.toml",
        "check y.json --baseline ./b.json -o b.json",
        "check x.json --save-baseline ./x.json",
        "check x.json y.json --budget budget.toml --save-baseline ./budget.toml",
        "check x.json --init --force --budget x.json",
    ],
)
def test_an_output_that_is_an_input_is_refused(run, place, line):
    before = contents(place)
    code, out, err = run(*line.split())
    assert (code, out) == (2, "")
    assert err.startswith("traceaudit: the output is an input — ")
    assert "\nhint: name another file after --" in err
    assert contents(place) == before


@pytest.mark.parametrize(
    "line", ["check x.json y.json --save-baseline ./z.json -o z.json", "calibrate --save z -o ./z"]
)
def test_two_outputs_are_not_one_file(run, place, line):
    before = contents(place)
    code, _, err = run(*line.split())
    assert code == 2
    assert err.startswith("traceaudit: two outputs are one file — ")
    assert contents(place) == before


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("name", ["new.json", "b.json", "-", os.devnull, "ranks/report.md"])
def test_other_outputs_are_written(run, name):
    assert run("reconcile", "ranks", "-o", name)[0] == 0


def test_a_report_beside_the_ranks_may_be_written_again(run, calls):
    Path("ranks/report.md").write_text("old")
    assert run("reconcile", "ranks", "-o", "ranks/report.md")[0] == 0
    assert len(calls) == 1


def test_standard_input_that_comes_from_the_output(place):
    before = contents(place)
    with Path("x.json").open("rb") as stdin:
        done = subprocess.run(
            [sys.executable, "-m", "traceaudit", "reconcile", "-", "-o", "x.json"],
            stdin=stdin, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("traceaudit: the output is an input — x.json")
    assert contents(place) == before


def test_a_real_trace_survives(run, place):
    trace = place / "t.json.gz"
    shutil.copy(ROOT / "traces" / "graph-decode.json.gz", trace)
    before = trace.read_bytes()
    assert run("reconcile", trace, "-o", trace)[0] == 2
    assert trace.read_bytes() == before
    assert gzip.decompress(before)
