"""The command line from end to end: where bytes come from, and what is refused."""

import json
from pathlib import Path

import pytest

from traceaudit.cli.main import main

TRACES = Path(__file__).parents[2] / "traces"
EAGER, REPLAY = str(TRACES / "eager-decode.json.gz"), str(TRACES / "graph-decode.json.gz")


@pytest.fixture
def kernels(capsys):
    def run(*args):
        code = main(["kernels", *args])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_rows_by_site_name_lines_of_the_model(kernels):
    code, out, _ = kernels(str(TRACES / "eager-decode-python-stacks.json.gz"), "--group-by", "site", "-f", "json")
    assert code == 0
    sites = {row["site"] for row in json.loads(out)["devices"][0]["kernels"]}
    assert any(site and site.startswith("decoder.py(") for site in sites)


def test_gains_say_what_removing_a_kernel_saves(kernels):
    _, out, _ = kernels(REPLAY, "--gains", "-f", "json")
    row = json.loads(out)["devices"][0]["kernels"][0]
    # A replay keeps the device busy, so that a kernel's time is nearly what its removal saves.
    assert row["save_ns"] == pytest.approx(row["per_step_ns"], rel=0.15)


def test_a_step_is_that_of_whatif_and_no_more_than_the_wall(kernels):
    """Ops before and after the steps are in launches and op time alone: 67 launches, 12 of them a step."""
    rows = json.loads(kernels(REPLAY, "-f", "json")[1])["devices"][0]["kernels"]
    assert (rows[0]["launches"], rows[0]["launches_per_step"]) == (67, 12)
    assert rows[0]["per_step_ns"] == pytest.approx(245_363, abs=1)
    assert rows[0]["share_of_wall_frac"] == pytest.approx(0.197, abs=5e-4)
    assert sum(row["share_of_wall_frac"] for row in rows) < 1


def test_a_model_with_other_layers_lends_no_bytes(kernels):
    report = json.loads(kernels(REPLAY, "--model", "llama-3-8b", "--batch", "16", "--context", "9", "-f", "json")[1])
    device = report["devices"][0]
    assert "a step shows 12 attention kernels and the model has 32 layers" in device["notes"][0]
    assert "model" not in device["op_time_by_source"]
    assert "unlike_runs" in {finding["code"] for finding in report["completeness"]["findings"]}


def test_options_that_nothing_asks_for_are_remarked(kernels, tmp_path):
    assert "--batch and --context change nothing" in kernels(REPLAY, "--batch", "3")[1]
    spec = tmp_path / "bytes.toml"
    spec.write_text("[[kernels]]\nmatch = 'nonesuch'\nbytes = 5\n[[kernels]]\nmatch = 'sdpa'\nbytes = 'batch*2'\n")
    notes = json.loads(kernels(REPLAY, "--spec", str(spec), "-f", "json")[1])["devices"][0]["notes"]
    assert notes[0].endswith("match 'nonesuch' decides for no kernel of the trace")
    assert notes[1].endswith("'batch*2' asks for what is not known of 67 launches, which keep their next source")
    assert len(notes) == 2
    known = json.loads(kernels(REPLAY, "--spec", str(spec), "--batch", "3", "-f", "json")[1])["devices"][0]["notes"]
    assert len(known) == 1


def test_full_names_stand_below_the_table(kernels):
    name = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, true>"
    assert name not in kernels(REPLAY)[1].replace("\n", "")
    text = " ".join(kernels(REPLAY, "--full-names")[1].split())
    assert name in text


def test_a_trace_without_shapes_lends_none(kernels):
    code, out, err = kernels(REPLAY, "--shapes-from", REPLAY)
    assert (code, out) == (3, "")
    assert "no op of this trace has shapes" in err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--model", "llama-3-8b"], "--context C is missing"),
        (["--spec", "nowhere.toml"], "nowhere.toml"),
        (["--peak-gbps", "0"], "--peak-gbps"),
        (["--group-by", "colour"], "colour"),
        (["--tp", "2"], "--tp needs --model or --spec"),
        (["--ep", "2"], "--ep needs --model"),
    ],
)
def test_what_means_nothing_is_refused(kernels, flags, words):
    code, out, err = kernels(REPLAY, *flags)
    assert (code, out) == (2, "")
    assert words in err


DENSE = str(TRACES / "transformers" / "dense.json.gz")


def test_rows_by_shape_show_operands_and_gains(kernels, monkeypatch):
    """Keys and values are copied by one kernel with equal sizes: strides tell them apart."""
    monkeypatch.setenv("COLUMNS", "80")
    text = " ".join(kernels(DENSE, "--group-by", "shape", "--gains")[1].split())
    assert "aten::cat ([8,4,1024,128]:[524800,131200,128,1] [8,4,1,128]:[512,128,128,1])" in text
    assert "aten::cat ([8,4,1024,128]:[524800,131200,128,1] [8,4,1,128]:[512,128,512,1])" in text
    assert "saves µs" in text
    device = json.loads(kernels(DENSE, "--group-by", "shape", "--gains", "-f", "json")[1])["devices"][0]
    first = device["kernels"][0]
    assert (device["group_by"], first["launches"], first["grids"], first["save_ns"]) == ("shape", 18, 1, 0.0)
    member = {"dtype": None, "dims": [8, 4, 1, 128], "strides": [512, 128, 128, 1], "members": []}
    assert first["operands"][0]["members"][1] == member
    header, row, *_ = kernels(DENSE, "--group-by", "shape", "-f", "csv")[1].splitlines()
    assert {"grids", "operands", "copied_bytes"} <= set(header.split(","))
    assert "([8,4,1024,128]:[524800,131200,128,1] [8,4,1,128]:[512,128,128,1])" in row


def test_a_trace_without_shapes_or_lines_says_so(kernels):
    assert "no op has recorded shapes" in kernels(REPLAY, "--group-by", "shape")[1]
    assert "no line of Python is recorded" in kernels(REPLAY, "--group-by", "site")[1]


@pytest.mark.parametrize("columns", ["72", "80", "100", "120"])
@pytest.mark.parametrize("flags", [(), ("--gains",)])
def test_names_are_told_apart_on_pages_of_any_width(kernels, monkeypatch, columns, flags):
    monkeypatch.setenv("COLUMNS", columns)
    _, table = kernels(DENSE, *flags)[1].split("  name\n")
    names = [line.split("  ")[-1] for line in table.splitlines()[:25]]
    assert len(set(names)) == 25
    assert all(len(name.strip("…")) > 10 for name in names)


def test_the_grid_with_most_time_is_shown_and_that_there_are_others(kernels, monkeypatch):
    """36 launches of 4x24 take 383 µs, and as many of 4x8 take 205 µs; only the latter are short of blocks for long."""
    monkeypatch.setenv("COLUMNS", "120")
    row = next(line for line in kernels(DENSE)[1].splitlines() if "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT" in line)
    assert "4x24x1 +1!" in row
    (one,) = (
        row
        for row in json.loads(kernels(DENSE, "-f", "json")[1])["devices"][0]["kernels"]
        if row["name"] == "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT"
    )
    assert (one["grid"], one["grids"], one["launches"]) == ([4, 24, 1], 2, 72)
