"""`diff` and `check` from the command line, on traces written for it."""

import json

import pytest
from comparisons import BASELINE, REGRESSED, RERUN, trace_bytes

from traceaudit.cli import main as entry

FIRST = next(iter(BASELINE))


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """Run in a folder with the three recordings; `runs` holds two of the same code."""
    monkeypatch.setattr(entry, "COMMANDS", tuple(dict.fromkeys((*entry.COMMANDS, "diff", "check"))))
    monkeypatch.chdir(tmp_path)
    for name, kernels in (("base.json", BASELINE), ("rerun.json", RERUN), ("slow.json", REGRESSED)):
        (tmp_path / name).write_bytes(trace_bytes(kernels))
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "one.json").write_bytes(trace_bytes(BASELINE))
    (folder / "two.json").write_bytes(trace_bytes(RERUN))
    return tmp_path


@pytest.fixture
def judged(run):
    """Run a command with JSON output and return (exit code, document)."""

    def call(*args):
        code, out, err = run(*args, "--format", "json")
        assert err == ""
        return code, json.loads(out)

    return call


def row(document, name=FIRST):
    return next(kernel for kernel in document["kernels"] if kernel["name"] == name)


def test_the_same_code_passes(judged):
    code, document = judged("check", "base.json", "rerun.json")
    assert (code, document["verdict"]) == (0, "pass")
    assert {kernel["status"] for kernel in document["kernels"]} == {"same"}


def test_six_per_cent_in_one_kernel_fail_and_it_is_named(judged):
    code, document = judged("check", "base.json", "slow.json")
    assert (code, document["verdict"]) == (1, "fail")
    # The medians are 436.9 and 412.2 µs.
    assert row(document)["delta_ns"] == 24_700
    assert row(document)["status"] == "slower"
    assert [kernel["name"] for kernel in document["kernels"] if kernel["violates"]] == [FIRST]


def test_a_trace_against_itself_is_zero_and_passes(judged):
    code, document = judged("check", "base.json", "base.json")
    assert (code, document["verdict"], document["same_recordings"]) == (0, "pass", True)
    assert {kernel["delta_ns"] for kernel in document["kernels"]} == {0}


def test_an_improvement_passes(judged):
    code, document = judged("check", "slow.json", "base.json")
    assert (code, row(document)["status"]) == (0, "faster")


@pytest.mark.parametrize("base", [["runs"], ["runs/*.json"], ["runs/two.json", "runs/one.json", "vs"]])
def test_a_side_is_a_folder_a_glob_or_several_files(judged, base):
    code, document = judged("check", *base, "slow.json")
    assert (code, document["base"]["runs"]) == (1, 2)
    assert row(document)["base_ns"] == 412_550  # between the medians 412.2 and 412.9


def test_diff_shows_the_same_and_never_fails(judged):
    code, document = judged("diff", "base.json", "slow.json")
    assert (code, document["command"], document["verdict"]) == (0, "diff", "fail")
    assert (row(document)["launches_base"], row(document)["launches_head"]) == (1, 1)


def test_unlike_sides_are_refused_unless_allowed(judged, workplace):
    (workplace / "other.json").write_bytes(trace_bytes(BASELINE, device="NVIDIA H100"))
    for command in ("diff", "check"):
        code, document = judged(command, "base.json", "other.json")
        assert (code, document["comparable"]) == (3, False)
        assert [finding["code"] for finding in document["findings"]] == ["unlike_runs"]
    assert judged("check", "base.json", "other.json", "--allow", "device")[0] == 0
    assert judged("diff", "base.json", "other.json", "--allow", "device,batch")[0] == 0


def test_a_budget_decides(judged, workplace):
    (workplace / "b.toml").write_text(f"[[kernel]]\nmatch = '^{FIRST}$'\nmax_us = 400\n")
    code, document = judged("check", "base.json", "rerun.json", "--budget", "b.toml")
    assert code == 3  # 412.9 µs are above 400 by less than their noise of one run
    assert [ruling["line"] for ruling in document["rulings"] if ruling["rule"] == "kernel[0].max_us"] == [1]
    (workplace / "b.toml").write_text("[limits]\nrelative = 0.5\n")
    assert judged("check", "base.json", "slow.json", "--budget", "b.toml")[0] == 0
    assert judged("check", "base.json", "slow.json", "--relative", "0.5")[0] == 0
    assert judged("check", "base.json", "slow.json", "--absolute-us", "100")[0] == 0


def test_a_mistake_in_a_budget_is_named_with_its_line(run, workplace):
    (workplace / "b.toml").write_text("[limits]\nrelativ = 1\n")
    code, out, err = run("check", "base.json", "slow.json", "--budget", "b.toml")
    assert (code, out) == (2, "")
    assert err == "traceaudit: unknown key 'relativ' — b.toml:2\nhint: did you mean 'relative'?\n"


def test_init_writes_a_budget_that_its_own_runs_pass(run, workplace):
    assert run("check", "--init", "runs")[0] == 0
    assert (workplace / "traceaudit.toml").exists()
    assert run("check", "base.json", "rerun.json", "--budget", "traceaudit.toml")[0] == 0
    code, _, err = run("check", "--init", "runs")
    assert (code, "there is a budget already" in err) == (2, True)
    assert run("check", "--init", "runs", "--force", "--quiet") == (0, "", "")


def test_baselines_stand_in_for_traces(run, judged, workplace):
    code, out, err = run("check", "runs", "--save-baseline", "main")
    assert (code, out) == (0, "")
    assert "stored the baseline 'main'" in err
    assert (workplace / ".traceaudit" / "baselines" / "main.json").stat().st_size < 20_000
    code, document = judged("check", "slow.json", "--baseline", "main")
    assert (code, document["base"]["label"], document["base"]["runs"]) == (1, "main", 2)
    assert judged("check", "rerun.json", "--baseline", ".traceaudit/baselines/main.json")[0] == 0
    assert run("check", "--init", "--baseline", "main")[0] == 0


def test_a_base_slower_than_its_record_is_told(run, judged):
    run("check", "runs", "--save-baseline", "main")
    code, document = judged("check", "slow.json", "slow.json", "--baseline", "main")
    assert code == 0
    assert "baseline_regressed" in {finding["code"] for finding in document["findings"]}
    code, document = judged("check", "base.json", "rerun.json", "--baseline", "main")
    assert document["findings"] == []


def test_a_baseline_is_stored_only_if_the_check_passes(run, workplace):
    stored = workplace / ".traceaudit" / "baselines"
    code, _, err = run("check", "base.json", "slow.json", "--save-baseline", "bad", "-o", "report.md")
    assert (code, "was not stored" in err) == (1, True)
    assert not (stored / "bad.json").exists()
    assert run("check", "base.json", "rerun.json", "--save-baseline", "good", "-o", "report.md")[0] == 0
    assert (stored / "good.json").exists()


@pytest.mark.parametrize(
    ("name", "start"), [("r.md", "### "), ("r.xml", "<?xml"), ("r.json", "{"), ("r.txt", "traceaudit check")]
)
def test_the_ending_of_the_file_chooses_the_format(run, workplace, name, start):
    assert run("check", "base.json", "rerun.json", "-o", name) == (0, "", "")
    assert (workplace / name).read_text().startswith(start)


def test_annotations_go_to_stdout(run):
    code, out, _ = run("check", "base.json", "slow.json", "-f", "github")
    assert (code, out.startswith("::error ")) == (1, True)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["diff", "base.json"], "diff needs two sides"),
        (["diff", "base.json", "rerun.json", "slow.json"], "which of the 3 paths are the base"),
        (["diff", "base.json", "vs"], "nothing stands on one side of 'vs'"),
        (["check"], "check needs traces"),
        (["check", "base.json"], "check needs two sides"),
        (["check", "--init"], "check needs traces"),
        (["check", "base.json", "none.json"], "no such file"),
        (["check", "base.json", "none/*.json"], "no such file"),
        (["check", "base.json", "rerun.json", "--allow", "size"], "--allow does not know 'size'"),
        (["check", "base.json", "rerun.json", "--relative", "-1"], "--relative must be a number of 0 or more"),
        (["check", "base.json", "rerun.json", "--absolute-us", "nan"], "--absolute-us must be a number of 0 or more"),
        (["check", "base.json", "rerun.json", "--rank", "3"], "no trace of this side has the rank or device"),
        (["check", "base.json", "--baseline", "none"], "cannot read the baseline"),
        (["check", "base.json", "--save-baseline", ""], "--save-baseline is empty"),
        (["check", "base.json", "rerun.json", "--budget", "none.toml"], "cannot read the budget"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(run, args, message):
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert message in err.splitlines()[0]


def test_a_folder_that_cannot_be_made_is_one_line(run, workplace):
    (workplace / ".traceaudit").write_text("in the way")
    code, _, err = run("check", "base.json", "--save-baseline", "main")
    assert (code, "cannot make the folder" in err) == (2, True)


def test_a_trace_without_device_ops_is_unusable(run, workplace):
    (workplace / "host.json").write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}'
    )
    code, _, err = run("check", "base.json", "host.json")
    assert (code, "no device op" in err) == (2, True)


def test_one_file_named_twice_is_one_run(judged):
    code, document = judged("check", "base.json", "./base.json", "vs", "rerun.json")
    assert (code, document["base"]["runs"]) == (0, 1)


def test_damage_of_a_trace_is_told_with_its_side(judged, workplace):
    whole = (workplace / "rerun.json").read_bytes()
    (workplace / "cut.json").write_bytes(whole[: len(whole) * 2 // 3])
    _, document = judged("check", "base.json", "cut.json")
    assert any(finding["message"].startswith("head: ") for finding in document["findings"])
    assert document["head"]["verdict"] != "complete"
